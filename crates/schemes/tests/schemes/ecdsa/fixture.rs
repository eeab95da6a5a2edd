//! Keys of one party, and what it signs with them.

use sha2::{Digest as _, Sha256};
use theta_groups::{Group, Scalar, Secret};
use theta_schemes::keys::{AnyPublicKey, import_any};
use theta_schemes::signatures::ecdsa::EcdsaCurve;
use theta_sharing::Threshold;

use crate::suites::fixture::rng;

pub(crate) type ScalarOf<C> = <<C as EcdsaCurve>::Group as Group>::Scalar;

/// A key and its secret.
pub(crate) struct Key<C: EcdsaCurve> {
    pub(crate) secret: ScalarOf<C>,
    pub(crate) public: AnyPublicKey,
}

impl<C: EcdsaCurve> Key<C> {
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(ScalarOf::<C>::random(&mut rng(seed)))
    }

    pub(crate) fn of(secret: ScalarOf<C>) -> Self {
        let bytes = Secret::new(secret.encode().as_ref().to_vec());
        let (public, _) = import_any(C::SUITE, Threshold::new(2, 3).unwrap(), &bytes, &mut rng(1)).unwrap();
        Self { secret, public }
    }

    /// FIPS 186-5, section 6.4.1, with a nonce that follows from the number.
    pub(crate) fn sign(&self, message: &[u8], number: u64) -> [u8; 64] {
        self.sign_digest(&Sha256::digest(message), number)
    }

    pub(crate) fn sign_digest(&self, digest: &[u8], number: u64) -> [u8; 64] {
        self.sign_with(digest, ScalarOf::<C>::random(&mut rng(1_000 + number)))
    }

    pub(crate) fn sign_with(&self, digest: &[u8], nonce: ScalarOf<C>) -> [u8; 64] {
        let element = C::Group::encode(&C::Group::mul_base(&nonce));
        let r = ScalarOf::<C>::from_uniform_bytes(&element.as_ref()[1..]);
        let e = ScalarOf::<C>::from_uniform_bytes(digest);
        let s = nonce.invert() * (e + r * self.secret);
        raw::<C>(r, s)
    }
}

pub(crate) fn raw<C: EcdsaCurve>(r: ScalarOf<C>, s: ScalarOf<C>) -> [u8; 64] {
    [r.encode().as_ref(), s.encode().as_ref()].concat().try_into().unwrap()
}

/// The other signature: (r, q - s).
pub(crate) fn other<C: EcdsaCurve>(signature: &[u8; 64]) -> [u8; 64] {
    let number = |bytes: &[u8]| ScalarOf::<C>::decode(bytes).unwrap();
    raw::<C>(number(&signature[..32]), -number(&signature[32..]))
}

/// The one of both with the lower s.
pub(crate) fn low<C: EcdsaCurve>(signature: [u8; 64]) -> [u8; 64] {
    signature.min(other::<C>(&signature))
}
