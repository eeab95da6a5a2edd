//! The closed set of key types: one variant for each group, and RSA. Code that is generic over the group gets its types from here.

use std::sync::Arc;

use theta_groups::{Ed448, Ed25519, Group, P256, Ristretto255, Secp256k1, bls12_381, bn254};

use super::{KeyShare, PublicKeySet, PublicMaterial, SecretMaterial};
use crate::signatures::sh00::{RsaKeyShare, RsaPublicKey};

/// Key material that is one of a closed set of types.
pub trait Typed: Sized {
    /// The enum of all types.
    type Any;
    /// Wraps the value in the enum.
    fn erase(this: Arc<Self>) -> Self::Any;
    /// The value of this type in the enum; `None` if it has another.
    fn of(any: &Self::Any) -> Option<&Arc<Self>>;
}

/// A group that keys are elements of.
pub trait KeyGroup: Group {
    /// As [`Typed::erase`].
    fn erase_key(key: Arc<PublicKeySet<Self>>) -> TypedPublicKey;
    /// As [`Typed::of`].
    fn key_of(any: &TypedPublicKey) -> Option<&Arc<PublicKeySet<Self>>>;
    /// As [`Typed::erase`].
    fn erase_share(share: Arc<KeyShare<Self>>) -> TypedKeyShare;
    /// As [`Typed::of`].
    fn share_of(any: &TypedKeyShare) -> Option<&Arc<KeyShare<Self>>>;
}

macro_rules! key_groups {
    ($($variant:ident = $group:ty, $doc:literal;)*) => {
        /// The public material of a key; clones share it.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum TypedPublicKey {
            $(#[doc = $doc] $variant(Arc<PublicKeySet<$group>>),)*
            /// RSA.
            Rsa(Arc<RsaPublicKey>),
        }

        /// One party's secret share of a key.
        #[derive(Debug)]
        pub enum TypedKeyShare {
            $(#[doc = $doc] $variant(Arc<KeyShare<$group>>),)*
            /// RSA.
            Rsa(Arc<RsaKeyShare>),
        }

        impl TypedPublicKey {
            /// The material, of whatever type.
            #[must_use]
            pub fn material(&self) -> &dyn PublicMaterial {
                match self {
                    $(Self::$variant(key) => key.as_ref(),)*
                    Self::Rsa(key) => key.as_ref(),
                }
            }
        }

        impl TypedKeyShare {
            /// The share, of whatever type.
            #[must_use]
            pub fn material(&self) -> &dyn SecretMaterial {
                match self {
                    $(Self::$variant(share) => share.as_ref(),)*
                    Self::Rsa(share) => share.as_ref(),
                }
            }
        }

        $(impl KeyGroup for $group {
            fn erase_key(key: Arc<PublicKeySet<Self>>) -> TypedPublicKey {
                TypedPublicKey::$variant(key)
            }

            fn key_of(any: &TypedPublicKey) -> Option<&Arc<PublicKeySet<Self>>> {
                if let TypedPublicKey::$variant(key) = any { Some(key) } else { None }
            }

            fn erase_share(share: Arc<KeyShare<Self>>) -> TypedKeyShare {
                TypedKeyShare::$variant(share)
            }

            fn share_of(any: &TypedKeyShare) -> Option<&Arc<KeyShare<Self>>> {
                if let TypedKeyShare::$variant(share) = any { Some(share) } else { None }
            }
        })*
    };
}

key_groups! {
    Ristretto255 = Ristretto255, "On ristretto255.";
    Ed25519 = Ed25519, "On the group of Ed25519.";
    Ed448 = Ed448, "On the group of Ed448.";
    P256 = P256, "On P-256.";
    Secp256k1 = Secp256k1, "On secp256k1.";
    Bls12381G1 = bls12_381::G1, "On G1 of BLS12-381.";
    Bls12381G2 = bls12_381::G2, "On G2 of BLS12-381.";
    Bn254G1 = bn254::G1, "On G1 of BN254.";
    Bn254G2 = bn254::G2, "On G2 of BN254.";
}

impl<G: KeyGroup> Typed for PublicKeySet<G> {
    type Any = TypedPublicKey;

    fn erase(this: Arc<Self>) -> TypedPublicKey {
        G::erase_key(this)
    }

    fn of(any: &TypedPublicKey) -> Option<&Arc<Self>> {
        G::key_of(any)
    }
}

impl<G: KeyGroup> Typed for KeyShare<G> {
    type Any = TypedKeyShare;

    fn erase(this: Arc<Self>) -> TypedKeyShare {
        G::erase_share(this)
    }

    fn of(any: &TypedKeyShare) -> Option<&Arc<Self>> {
        G::share_of(any)
    }
}

impl Typed for RsaPublicKey {
    type Any = TypedPublicKey;

    fn erase(this: Arc<Self>) -> TypedPublicKey {
        TypedPublicKey::Rsa(this)
    }

    fn of(any: &TypedPublicKey) -> Option<&Arc<Self>> {
        if let TypedPublicKey::Rsa(key) = any { Some(key) } else { None }
    }
}

impl Typed for RsaKeyShare {
    type Any = TypedKeyShare;

    fn erase(this: Arc<Self>) -> TypedKeyShare {
        TypedKeyShare::Rsa(this)
    }

    fn of(any: &TypedKeyShare) -> Option<&Arc<Self>> {
        if let TypedKeyShare::Rsa(share) = any { Some(share) } else { None }
    }
}
