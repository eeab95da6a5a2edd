//! The traits of all schemes' keys.

use core::fmt::Debug;

use theta_groups::{Group, Secret};
use theta_sharing::{ShareIndex, Threshold};

use super::{KeyGroup, KeyId, KeyShare, PublicKeySet, PublicParts, Typed, TypedKeyShare, TypedPublicKey};
use crate::Suite;
use crate::registry::{Curve, Family, Kind};

/// The public material of a key of any kind.
pub trait PublicMaterial: Debug + Send + Sync + 'static {
    /// The key's suite.
    fn suite(&self) -> Suite;
    /// k and n.
    fn threshold(&self) -> Threshold;
    /// The key's id.
    fn key_id(&self) -> &KeyId;
    /// The canonical encoding of the public key, of which the key's id is a hash.
    fn public_key_bytes(&self) -> &[u8];
    /// The parts from which the rest follows.
    fn parts(&self) -> PublicParts;
    /// Length in bytes of the secret in each share of the key.
    fn share_secret_len(&self) -> usize;
}

/// One party's share of a key of any kind.
pub trait SecretMaterial: Debug + Send + Sync + 'static {
    /// Whose share this is.
    fn index(&self) -> ShareIndex;
    /// The key that this is a share of.
    fn key_id(&self) -> &KeyId;
    /// The secret's canonical bytes.
    fn secret_bytes(&self) -> Secret<Vec<u8>>;
}

/// A scheme's keys. Every suite has one type that implements it.
pub trait KeyScheme: Sized + Send + Sync + 'static {
    /// A key's public material with the verification keys of all parties.
    type PublicKey: PublicMaterial + Typed<Any = TypedPublicKey>;
    /// One party's secret share.
    type KeyShare: SecretMaterial + Typed<Any = TypedKeyShare>;
    /// The kind of keys: [`Curve`] or [`Rsa`](crate::Rsa).
    type Kind: Kind<Self>;
    /// The family of operations: [`Ciphers`](crate::Ciphers), [`Signatures`](crate::Signatures), [`Coins`](crate::Coins) or
    /// [`TwoRounds`](crate::TwoRounds).
    type Family: Family<Self>;
    /// The suite's name.
    const SUITE: Suite;

    /// The public key as standard verifiers take it; for all suites but Taproot this is the key's own encoding.
    fn verifying_key_bytes(public: &Self::PublicKey) -> &[u8] {
        public.public_key_bytes()
    }
}

/// Keys that are Shamir sharings in the exponent of a prime-order group: all but RSA.
pub trait CurveScheme:
    KeyScheme<PublicKey = PublicKeySet<Self::KeyGroup>, KeyShare = KeyShare<Self::KeyGroup>, Kind = Curve>
{
    /// The group of the public key.
    type KeyGroup: KeyGroup;
    /// Whether keys have a proof of possession of their secret.
    const PROVES_POSSESSION: bool = false;

    /// The proof of possession of a secret key, for schemes that have one.
    fn prove_possession(
        _secret: &Secret<<Self::KeyGroup as Group>::Scalar>,
        _public_key: &<Self::KeyGroup as Group>::Element,
    ) -> Option<Vec<u8>> {
        None
    }

    /// Whether the proof is valid, or absent in schemes that have none.
    fn check_possession(_public_key: &<Self::KeyGroup as Group>::Element, proof: Option<&[u8]>) -> bool {
        proof.is_none()
    }

    /// Whether `share` is what [`prove_possession`](Self::prove_possession) gives for the group's public key and the key
    /// share of `verification_key`: one party's share of the proof for a key that nobody knows.
    fn check_possession_share(
        _public_key: &<Self::KeyGroup as Group>::Element,
        _verification_key: &<Self::KeyGroup as Group>::Element,
        _share: &[u8],
    ) -> bool {
        false
    }

    /// The proof of possession from k parties' shares of it, which are not verified here. `None` if the scheme has no proofs, or
    /// for shares that are no group elements.
    fn combine_possession(_shares: &[(ShareIndex, Vec<u8>)]) -> Option<Vec<u8>> {
        None
    }
}
