//! What every scheme says of itself.

use super::{Family, Kind};
use crate::Suite;
use crate::keys::{PublicMaterial, SecretMaterial, Typed, TypedKeyShare, TypedPublicKey};

/// A scheme's keys. Every suite has one type that implements it.
pub trait KeyScheme: Sized + Send + Sync + 'static {
    /// A key's public material with the verification keys of all parties.
    type PublicKey: PublicMaterial + Typed<Any = TypedPublicKey>;
    /// One party's secret share.
    type KeyShare: SecretMaterial + Typed<Any = TypedKeyShare>;
    /// The kind of keys: [`Curve`](crate::Curve) or [`Rsa`](crate::Rsa).
    type Kind: Kind<Self>;
    /// The family of operations: [`Ciphers`](crate::Ciphers), [`Signatures`](crate::Signatures), [`Coins`](crate::Coins),
    /// [`TwoRounds`](crate::TwoRounds) or [`Preprocessed`](crate::Preprocessed).
    type Family: Family<Self>;
    /// The suite's name.
    const SUITE: Suite;
    /// Whether holders multiply shared values with the shares that they have, which takes n >= 2 k - 1 of them, k >= 2:
    /// [`Suite::check_threshold`].
    const HONEST_MAJORITY: bool = false;

    /// The public key as standard verifiers take it; for all suites but Taproot this is the key's own encoding.
    fn verifying_key_bytes(public: &Self::PublicKey) -> &[u8] {
        public.public_key_bytes()
    }
}
