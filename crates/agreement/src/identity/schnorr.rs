//! Schnorr signatures over ristretto255 with nonces derived from key and message: signing twice gives the same
//! signature, so a replayed journal repeats itself to the byte.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
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

/// The claim that a signature is a key's on a message.
pub struct Claim<'a> {
    /// The key.
    pub key: &'a Encoded<Ristretto255>,
    /// The message.
    pub message: Message,
    /// The signature.
    pub signature: &'a Signature,
}

/// Whether all claims are true. It takes one multi-scalar multiplication with 128-bit weights, about a fifth of the time
/// of checking each signature by itself. The weights are a hash of all claims, so whoever made the claims could not choose
/// them; if a signature is false, the answer is wrong with probability 2^-128.
pub fn vartime_verify_all(claims: &[Claim<'_>]) -> bool {
    if let [claim] = claims {
        return vartime_verify(claim.key, &claim.message, claim.signature);
    }
    let mut seed = Transcript::new("theta/ceremony/batch/v1");
    let mut terms = Vec::with_capacity(claims.len());
    for Claim { key, message, signature } in claims {
        let (commitment, response) = signature.split_at(32);
        let (Ok(point), Ok(s)) =
            (Ristretto255::decode_allowing_identity(commitment), RistrettoScalar::decode(response))
        else {
            return false;
        };
        // The challenge is a hash of key, message and commitment.
        let e = challenge(key, message, commitment);
        seed.append("challenge", e.encode().as_ref());
        seed.append("response", response);
        terms.push((key, point, e, s));
    }
    let mut rng = ChaCha20Rng::from_seed(seed.finish32());
    let (mut sum, mut scalars, mut points) = (RistrettoScalar::ZERO, Vec::new(), Vec::new());
    for (key, point, e, s) in terms {
        let mut weight = [0; 16];
        rng.fill_bytes(&mut weight);
        let weight = RistrettoScalar::from_u128(u128::from_le_bytes(weight));
        sum += weight * s;
        scalars.extend([weight, weight * e]);
        points.extend([point, *key.element()]);
    }
    scalars.push(-sum);
    points.push(Ristretto255::generator());
    Ristretto255::is_identity(&Ristretto255::vartime_msm(&scalars, &points))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u8) -> Message {
        Transcript::new("theta/ceremony/test/v1").with("number", &[number])
    }

    #[test]
    fn all_are_true_if_each_is() {
        let secrets: Vec<_> = (1..=9_u64).map(|number| Secret::new(RistrettoScalar::from_u64(number))).collect();
        let keys: Vec<_> = secrets.iter().map(|s| Encoded::new(Ristretto255::mul_base(s.expose()))).collect();
        let signed = |(place, secret)| sign(secret, &keys[place], &message(u8::try_from(place).unwrap()));
        let signatures: Vec<Signature> = secrets.iter().enumerate().map(signed).collect();
        let claims = |signatures: &[Signature]| {
            let claim = |(place, signature)| {
                let message = message(u8::try_from(place).unwrap());
                vartime_verify_all(&[Claim { key: &keys[place], message, signature }])
            };
            let each = signatures.iter().enumerate().all(claim);
            let claim = |(place, signature)| {
                let message = message(u8::try_from(place).unwrap());
                Claim { key: &keys[place], message, signature }
            };
            let all = vartime_verify_all(&signatures.iter().enumerate().map(claim).collect::<Vec<_>>());
            assert_eq!(all, each);
            all
        };
        for count in 0..=signatures.len() {
            assert!(claims(&signatures[..count]), "{count}");
        }
        for (place, byte) in [(0, 0), (3, 20), (8, 33), (5, 63)] {
            let mut wrong = signatures.clone();
            wrong[place][byte] ^= 1;
            assert!(!claims(&wrong), "{place} {byte}");
        }
        // Two errors that cancel without weights.
        let mut wrong = signatures;
        for (place, difference) in [(1, RistrettoScalar::ONE), (2, -RistrettoScalar::ONE)] {
            let response = RistrettoScalar::decode(&wrong[place][32..]).unwrap() + difference;
            wrong[place][32..].copy_from_slice(response.encode().as_ref());
        }
        assert!(!claims(&wrong));
    }
}
