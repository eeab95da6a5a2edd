//! The secret scalar from the 32 or 57 bytes that RFC 8032 calls a private key. It is reduced modulo the order of the base
//! point, which does not change the public key.

use sha2::{Digest, Sha512};
use shake::Shake256;
use shake::digest::{ExtendableOutput, Update, XofReader};
use theta_groups::{Ed448Scalar, Ed25519Scalar, Scalar, Secret};

/// RFC 8032, section 5.1.5, steps 1 to 3.
pub(super) fn ed25519_scalar(seed: &[u8]) -> Secret<Vec<u8>> {
    let mut hash = Secret::new([0; 64]);
    Sha512::new().chain_update(seed).finalize_into(hash.expose_mut().into());
    let (scalar, _prefix) = hash.expose_mut().split_at_mut(32);
    if let [first, .., last] = scalar {
        *first &= 0b1111_1000;
        *last = *last & 0b0111_1111 | 0b0100_0000;
    }
    encoded(&Secret::new(Ed25519Scalar::from_uniform_bytes(scalar)))
}

/// RFC 8032, section 5.2.5, steps 1 to 3.
pub(super) fn ed448_scalar(seed: &[u8]) -> Secret<Vec<u8>> {
    let mut hash = Secret::new([0; 114]);
    Shake256::default().chain(seed).finalize_xof().read(hash.expose_mut());
    let (scalar, _prefix) = hash.expose_mut().split_at_mut(57);
    if let [first, .., high, last] = scalar {
        *first &= 0b1111_1100;
        *high |= 0b1000_0000;
        *last = 0;
    }
    encoded(&Secret::new(Ed448Scalar::from_uniform_bytes(scalar)))
}

fn encoded<S: Scalar>(scalar: &Secret<S>) -> Secret<Vec<u8>> {
    let encoding = Secret::new(scalar.expose().encode());
    Secret::new(encoding.expose().as_ref().to_vec())
}
