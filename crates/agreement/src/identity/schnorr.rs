//! Schnorr signatures over ristretto255 with nonces derived from key and message: signing twice gives the same
//! signature, so a replayed journal repeats itself to the byte.

use theta_groups::{Group, Ristretto255, RistrettoScalar, Scalar, Secret, Transcript};
use theta_sharing::Encoded;

/// Length of a signature: R || s.
pub const SIGNATURE_LEN: usize = 64;
/// A signature.
pub type Signature = [u8; SIGNATURE_LEN];
/// What is hashed: purpose and parts are the caller's.
pub type Message = Transcript;

fn challenge(key: &Encoded<Ristretto255>, message: &Message, commitment: &[u8]) -> RistrettoScalar {
    message.clone().with("key", key.bytes()).with("r", commitment).challenge()
}

/// Signs with the secret key whose public key is `key`; the same as proving knowledge of the secret.
pub fn sign(secret: &Secret<RistrettoScalar>, key: &Encoded<Ristretto255>, message: &Message) -> Signature {
    let encoded = Secret::new(secret.expose().encode());
    let nonce = message.clone().with("key", key.bytes()).with("nonce", encoded.expose());
    let nonce = Secret::new(nonce.challenge::<RistrettoScalar>());
    let commitment = Ristretto255::encode(&Ristretto255::mul_base(nonce.expose()));
    let e = challenge(key, message, commitment.as_ref());
    let response = *nonce.expose() + e * *secret.expose();
    let mut signature = [0; SIGNATURE_LEN];
    let (left, right) = signature.split_at_mut(32);
    left.copy_from_slice(commitment.as_ref());
    right.copy_from_slice(response.encode().as_ref());
    signature
}

/// Whether the signature is the key's on the message.
pub fn vartime_verify(key: &Encoded<Ristretto255>, message: &Message, signature: &Signature) -> bool {
    let (commitment, response) = signature.split_at(32);
    let Ok(response) = RistrettoScalar::decode(response) else { return false };
    let e = challenge(key, message, commitment);
    let expected = Ristretto255::vartime_double_mul(&response, key.element(), &-e);
    Ristretto255::encode(&expected).as_ref() == commitment
}
