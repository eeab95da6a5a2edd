//! What every scheme says of itself.

use super::{PublicMaterial, SecretMaterial, Typed, TypedKeyShare, TypedPublicKey};
use crate::Suite;

/// A scheme's keys. Every suite has one type that implements it. What keys of the kind and the family can do is known to
/// [`Kind`](crate::Kind) and [`Family`](crate::Family), which schemes need not know: see [`Registered`](crate::Registered).
pub trait KeyScheme: Sized + Send + Sync + 'static {
    /// A key's public material with the verification keys of all parties.
    type PublicKey: PublicMaterial + Typed<Any = TypedPublicKey>;
    /// One party's secret share.
    type KeyShare: SecretMaterial + Typed<Any = TypedKeyShare>;
    /// The kind of keys: [`Curve`] or [`Rsa`].
    type Kind;
    /// The family of operations: [`Ciphers`], [`Signatures`], [`Coins`], [`TwoRounds`] or [`Preprocessed`].
    type Family;
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

/// Keys that are Shamir sharings in the exponent of a prime-order group: those of a [`CurveScheme`](super::CurveScheme).
#[derive(Clone, Copy, Debug)]
pub struct Curve;

/// Shared RSA keys.
#[derive(Clone, Copy, Debug)]
pub struct Rsa;

/// Ciphers: [`ThresholdCipher`](crate::ThresholdCipher).
#[derive(Clone, Copy, Debug)]
pub struct Ciphers;

/// Signatures in one round: [`ThresholdScheme`](crate::ThresholdScheme) and [`SignatureScheme`](crate::SignatureScheme).
#[derive(Clone, Copy, Debug)]
pub struct Signatures;

/// Coins: [`ThresholdCoin`](crate::ThresholdCoin).
#[derive(Clone, Copy, Debug)]
pub struct Coins;

/// FROST, whose signatures take two rounds.
#[derive(Clone, Copy, Debug)]
pub struct TwoRounds;

/// ECDSA, whose signatures take what the holders have made together before: shared nonces, and their products with the key.
#[derive(Clone, Copy, Debug)]
pub struct Preprocessed;
