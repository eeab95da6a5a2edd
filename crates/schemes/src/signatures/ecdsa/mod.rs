//! ECDSA (FIPS 186-5, section 6; SEC1, section 4.1) with keys that n holders share: the keys, and the signatures' verification. How k
//! or more holders make a signature is a protocol's matter; see `spec/ecdsa.md`.
//!
//! A key is shared as all keys on curves are, by a polynomial of degree t = k - 1, so that every ceremony serves it. A product of two
//! shared values has degree 2 t, and it takes 2 t + 1 holders to bring it down again: [`KeyScheme::HONEST_MAJORITY`].
//!
//! A result is r and s, 32 bytes each, big-endian; [`to_der`] and [`from_der`] convert to and from what most other software takes.

mod any;
mod curve;
mod der;
mod ecdsa_key;
mod keyed;
mod verify;

use core::marker::PhantomData;

use crate::keys::scheme::{Curve, Preprocessed};
use crate::keys::{CurveScheme, KeyScheme, KeyShare, PublicKeySet};
use crate::{MessageDigest, SignatureScheme, Suite, VerifyError};

pub use any::{uncompressed_key, vartime_recovery_id};
pub use curve::{EcdsaCurve, P256Sha256, Secp256k1Sha256};
pub use der::{from_der, to_der};
pub use ecdsa_key::EcdsaKey;

/// Length of a result in bytes.
pub const SIGNATURE_LEN: usize = 64;

/// The scheme on one of its curves.
#[derive(Clone, Copy, Debug)]
pub struct Ecdsa<C>(PhantomData<C>);

impl<C: EcdsaCurve> KeyScheme for Ecdsa<C> {
    type PublicKey = PublicKeySet<C::Group>;
    type KeyShare = KeyShare<C::Group>;
    type Kind = Curve;
    type Family = Preprocessed;
    const SUITE: Suite = C::SUITE;
    const HONEST_MAJORITY: bool = true;
}

impl<C: EcdsaCurve> CurveScheme for Ecdsa<C> {
    type KeyGroup = C::Group;
}

impl<C: EcdsaCurve> SignatureScheme for Ecdsa<C> {
    fn verify(public: &Self::PublicKey, message: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
        Self::verify_digest(public, &MessageDigest::Sha256.of(message), signature)
    }

    const DIGEST: Option<MessageDigest> = Some(MessageDigest::Sha256);

    fn verify_digest(public: &Self::PublicKey, digest: &[u8], signature: &[u8]) -> Result<(), VerifyError> {
        verify::vartime_verify::<C>(public.fixed_public_key(), digest, signature)
    }
}
