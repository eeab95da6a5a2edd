//! FROST in every suite: what is generic over the suite is instantiated here, once for each, and nowhere above.

use core::fmt;
use std::sync::Arc;

use bytes::Bytes;
use theta_groups::Secret;
use theta_rounds::{Driver, PartyId};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};
use theta_schemes::signatures::frost::{
    Ed448Shake256, Ed25519Sha512, Frost, FrostSuite, P256Sha256, Ristretto255Sha512, Secp256k1Sha256, Secp256k1Taproot,
    SigningNonces,
};

use super::message::Numbered;
use super::protocol::RobustFrost;
use super::setting::Setting;
use crate::AnyMachine;
use crate::parties::parties;

/// A message to sign, the key and this party's share.
#[derive(Clone, Copy)]
pub(super) struct Signing<'a> {
    pub(super) public: &'a AnyPublicKey,
    pub(super) share: &'a AnyKeyShare,
    pub(super) message: &'a Bytes,
    pub(super) options: &'a super::Options,
}

/// A suite whose nonces and commitments a stock keeps.
pub(super) trait StockSuite: FrostSuite {
    /// Nonces of this suite in the stock's type.
    fn any_nonces(nonces: SigningNonces<Self>) -> AnyNonces;
    /// Those of this suite; `None` for another's.
    fn nonces(nonces: AnyNonces) -> Option<SigningNonces<Self>>;
    /// Commitments of this suite in the stock's type.
    fn any_numbered(numbered: Numbered<Self>) -> AnyNumbered;
    /// Those of this suite; `None` for another's.
    fn numbered(numbered: AnyNumbered) -> Option<Numbered<Self>>;
}

macro_rules! suites {
    ($($name:ident: $suite:ty),* $(,)?) => {
        /// The nonces of one signature, in whichever suite. Dropping them wipes them.
        pub enum AnyNonces {
            $(#[doc = concat!("In ", stringify!($name), ".")] $name(Box<SigningNonces<$suite>>),)*
        }

        /// Commitments with their number, in whichever suite.
        #[derive(Clone)]
        #[allow(clippy::large_enum_variant, reason = "a key has one suite, and its stock keeps a few dozen")]
        pub enum AnyNumbered {
            $(#[doc = concat!("In ", stringify!($name), ".")] $name(Numbered<$suite>),)*
        }

        impl AnyNonces {
            /// The commitments that were published for them: no other nonces have the same.
            #[must_use]
            pub fn encoded_commitments(&self) -> Vec<u8> {
                match self { $(Self::$name(nonces) => nonces.commitments().encode(),)* }
            }
        }

        $(impl StockSuite for $suite {
            fn any_nonces(nonces: SigningNonces<Self>) -> AnyNonces {
                AnyNonces::$name(Box::new(nonces))
            }

            fn nonces(nonces: AnyNonces) -> Option<SigningNonces<Self>> {
                if let AnyNonces::$name(nonces) = nonces { Some(*nonces) } else { None }
            }

            fn any_numbered(numbered: Numbered<Self>) -> AnyNumbered {
                AnyNumbered::$name(numbered)
            }

            fn numbered(numbered: AnyNumbered) -> Option<Numbered<Self>> {
                if let AnyNumbered::$name(numbered) = numbered { Some(numbered) } else { None }
            }
        })*

        /// The machine that signs; `None` for a key that is not one of FROST, and for a share of another suite.
        pub(super) fn machine(signing: Signing<'_>) -> Option<AnyMachine> {
            None$(.or_else(|| machine_of::<$suite>(signing)))*
        }
    };
}

suites! {
    Ristretto255: Ristretto255Sha512,
    Ed25519: Ed25519Sha512,
    Ed448: Ed448Shake256,
    P256: P256Sha256,
    Secp256k1: Secp256k1Sha256,
    Taproot: Secp256k1Taproot,
}

impl fmt::Debug for AnyNonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyNonces(<redacted>)")
    }
}

impl fmt::Debug for AnyNumbered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyNumbered").finish_non_exhaustive()
    }
}

fn machine_of<C: StockSuite>(Signing { public, share, message, options }: Signing<'_>) -> Option<AnyMachine> {
    // Looked up by suite and not by group: two suites may share a group.
    let public: Arc<_> = Arc::clone(public.get::<Frost<C>>()?);
    let key = Arc::clone(share.get::<Frost<C>>()?);
    let (local, threshold) = (PartyId::of_share(key.index()), public.threshold());
    let seed: Option<Arc<Secret<Vec<u8>>>> = options.seed.clone();
    let setting = Setting::new(local, (public, key), message.clone(), seed, (options.per_peer, options.day));
    Some(Box::new(Driver::new(local, parties(threshold), RobustFrost::<C>::new(setting))))
}
