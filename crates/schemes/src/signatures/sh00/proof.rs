//! Proofs that a share is right: equality of discrete logarithms modulo N (section 2.2 of the paper).

use rand_core::{CryptoRng, Rng as _};
use theta_groups::modular::{Integer, Residue};
use theta_groups::{Secret, SecretRng, Transcript};
use theta_sharing::ShareIndex;

use super::{RsaKeyShare, RsaPublicKey, RsaRequest};

/// Bytes of a challenge, the paper's L_1 = 128 bits.
const CHALLENGE_LEN: usize = 16;
/// By how many bytes a response is longer than N: 16 for the challenge, and 16 to hide the secret.
pub(super) const RESPONSE_EXCESS: usize = 2 * CHALLENGE_LEN;

/// A proof that log_v v_i = log_(x^4) x_i^2. Unlike in the paper, it has the commitments v' = v^r and x' = x^(4 r) instead of the
/// challenge, so that many proofs can be verified at once.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    pub(super) commitment_base: Vec<u8>,
    pub(super) commitment_message: Vec<u8>,
    /// r + s_i c, in [`RESPONSE_EXCESS`] bytes more than N.
    pub(super) response: Vec<u8>,
}

/// The transcript of everything that the proof is about.
fn statement(public: &RsaPublicKey, request: &RsaRequest, index: ShareIndex, value: &[u8]) -> Transcript {
    let modulus = public.modulus();
    let own_key = public.verification_key(index).map(|key| modulus.encode(key)).unwrap_or_default();
    Transcript::new("theta/sh00/proof/v1")
        .with("key id", public.key_id().as_bytes())
        .with("index", &index.get().to_le_bytes())
        .with("verification base", &modulus.encode(public.verification_base()))
        .with("verification key", &own_key)
        .with("message", &modulus.encode(request.message()))
        .with("share", value)
}

/// The first 128 bits of a hash over the statement and both commitments.
fn challenge(statement: Transcript, [commitment_base, commitment_message]: [&[u8]; 2]) -> Integer {
    let hash = statement
        .with("commitment to the base", commitment_base)
        .with("commitment to the message", commitment_message)
        .finish();
    Integer::from_be_bytes(hash.split_at(CHALLENGE_LEN).0)
}

/// The source of the nonce r: a stream that follows from random bytes, the secret and the statement. A random generator that repeats itself, as one
/// whose seed follows from the request does, then makes no two challenges for one nonce, from which anyone could compute the secret.
fn nonces(statement: Transcript, key: &RsaKeyShare, rng: &mut dyn CryptoRng) -> SecretRng {
    let mut random = Secret::new([0; 32]);
    rng.fill_bytes(random.expose_mut());
    let seed = statement.with("nonce: random", random.expose()).with("nonce: secret", key.secret().expose());
    SecretRng::new(&Secret::new(seed.finish32()))
}

impl Proof {
    /// Proves that `value` is x_i. Constant-time in the secret and the nonce.
    pub(super) fn create(
        public: &RsaPublicKey,
        key: &RsaKeyShare,
        request: &RsaRequest,
        index: ShareIndex,
        value: &[u8],
        rng: &mut dyn CryptoRng,
    ) -> Self {
        let modulus = public.modulus();
        let len = modulus.encoded_len() + RESPONSE_EXCESS;
        let secret = Secret::new(Integer::from_be_bytes(key.secret().expose()));
        let statement = statement(public, request, index, value);
        let mut nonces = nonces(statement.clone(), key, rng);
        loop {
            let mut nonce = Secret::new(vec![0; len]);
            nonces.fill_bytes(nonce.expose_mut());
            let commitment_base = modulus.encode(&modulus.pow(public.verification_base(), nonce.expose()));
            let commitment_message = modulus.encode(&modulus.pow(request.fourth_power(), nonce.expose()));
            let challenge = challenge(statement.clone(), [&commitment_base, &commitment_message]);
            let masked = Secret::new(secret.expose().mul(&challenge));
            let nonce = Secret::new(Integer::from_be_bytes(nonce.expose()));
            // The response does not fit with probability 2^-130; then another nonce is drawn.
            if let Some(response) = nonce.expose().add(masked.expose()).to_be_bytes(len) {
                return Self { commitment_base, commitment_message, response };
            }
        }
    }
}

/// A share with all values of its equations, which are in range.
pub(super) struct Claim<'a> {
    pub(super) index: ShareIndex,
    key: &'a Residue,
    value: Residue,
    commitment_base: Residue,
    commitment_message: Residue,
    response: Integer,
    challenge: Integer,
}

impl<'a> Claim<'a> {
    /// `None` if the party does not exist or a number is out of range: the share is false.
    pub(super) fn new(
        public: &'a RsaPublicKey,
        request: &RsaRequest,
        index: ShareIndex,
        value: &[u8],
        proof: &Proof,
    ) -> Option<Self> {
        let modulus = public.modulus();
        if proof.response.len() != modulus.encoded_len() + RESPONSE_EXCESS {
            return None;
        }
        Some(Self {
            index,
            key: public.verification_key(index)?,
            value: modulus.decode(value).ok()?,
            commitment_base: modulus.decode(&proof.commitment_base).ok()?,
            commitment_message: modulus.decode(&proof.commitment_message).ok()?,
            response: Integer::from_be_bytes(&proof.response),
            challenge: challenge(
                statement(public, request, index, value),
                [&proof.commitment_base, &proof.commitment_message],
            ),
        })
    }
}

/// Checks claims together and, where that fails, in halves, down to the false ones.
pub(super) fn find_false(
    public: &RsaPublicKey,
    request: &RsaRequest,
    claims: &[Claim<'_>],
    rng: &mut dyn CryptoRng,
    culprits: &mut Vec<ShareIndex>,
) {
    if claims.is_empty() || vartime_all_hold(public, request, claims, rng) {
        return;
    }
    if let [claim] = claims {
        culprits.push(claim.index);
        return;
    }
    let (left, right) = claims.split_at(claims.len() / 2);
    find_false(public, request, left, rng, culprits);
    find_false(public, request, right, rng, culprits);
}

/// Whether, for all claims, v^z = v' v_i^c and x^(4 z) = x' x_i^(2 c) up to signs: one product for all, each equation with
/// a random weight of 128 bits, both sides squared.
///
/// The squares are a cyclic group of order p' q', so errors cancel with probability 2^-128 only. Squaring both sides loses nothing,
/// because v_i and x_i^2 are squares and squaring is one-to-one on squares. The left side is coprime to N, so all factors on the
/// right are, too, unless a weight or a challenge is zero.
fn vartime_all_hold(
    public: &RsaPublicKey,
    request: &RsaRequest,
    claims: &[Claim<'_>],
    rng: &mut dyn CryptoRng,
) -> bool {
    let mut weight = || {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        Integer::from_be_bytes(&bytes)
    };
    let (mut sum_base, mut sum_message) = (Integer::from_u64(0), Integer::from_u64(0));
    let mut exponents = Vec::with_capacity(claims.len());
    for claim in claims {
        let (base, message) = (weight(), weight());
        sum_base.add_assign(&base.mul(&claim.response));
        sum_message.add_assign(&message.mul(&claim.response));
        let on_key = base.mul(&claim.challenge);
        let mut on_value = message.mul(&claim.challenge);
        on_value.mul_u64(2);
        exponents.push([base, on_key, message, on_value]);
    }
    let right: Vec<_> = claims
        .iter()
        .zip(&exponents)
        .flat_map(|(claim, [base, on_key, message, on_value])| {
            [
                (&claim.commitment_base, base),
                (claim.key, on_key),
                (&claim.commitment_message, message),
                (&claim.value, on_value),
            ]
        })
        .collect();
    let modulus = public.modulus();
    let left = [(public.verification_base(), &sum_base), (request.fourth_power(), &sum_message)];
    let square = |factors: &[(&Residue, &Integer)]| modulus.square(&modulus.vartime_product(factors));
    square(&left) == square(&right)
}

#[cfg(test)]
pub(super) mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng as _;
    use theta_sharing::Threshold;

    use super::*;
    use crate::keys::{PublicMaterial as _, SecretMaterial as _};
    use crate::signatures::sh00::dealer::{RsaDealt, RsaPrimes, deal_primes};
    use crate::signatures::sh00::{Pkcs1Sha256, Sh00, create_bare};

    /// A key of 1,024 bits; the primes are those of `vectors/sh00`.
    pub(in crate::signatures::sh00) fn dealt() -> RsaDealt {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/sh00/safe_primes.json");
        let stored: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let prime = |name: &str| {
            let digits = hex::decode(stored["primes"]["1024"][name].as_str().unwrap()).unwrap();
            Secret::new(Integer::from_be_bytes(&digits))
        };
        let primes = RsaPrimes::new(prime("p"), prime("q")).unwrap();
        deal_primes::<Sh00<Pkcs1Sha256>>(&primes, Threshold::new(2, 3).unwrap(), &mut ChaCha20Rng::seed_from_u64(1))
    }

    /// The same key with v^2 and v_i^2 for v and v_i: it has the same id, and the same shares fit it.
    fn squared(public: &RsaPublicKey) -> RsaPublicKey {
        let (modulus, square) = (public.modulus(), |residue| public.modulus().square(residue));
        RsaPublicKey::assemble(
            public.suite(),
            public.threshold(),
            modulus.clone(),
            square(public.verification_base()),
            public.verification_keys().iter().map(square).collect(),
        )
    }

    /// Two proofs from one seed. With one nonce for two challenges c and c', z - z' would be s (c - c').
    #[test]
    fn no_nonce_has_two_challenges() {
        let RsaDealt { public, shares, .. } = dealt();
        let (other, key) = (squared(&public), &shares[0]);
        assert_eq!(public.key_id(), other.key_id());
        assert!(public.matches(key) && other.matches(key));
        let request = RsaRequest::new::<Pkcs1Sha256>(&public, b"message").unwrap();
        let value = create_bare(&public, key, &request);
        let [(z, c), (other_z, other_c)] = [&public, &other].map(|public| {
            let mut rng = ChaCha20Rng::seed_from_u64(2);
            let proof = Proof::create(public, key, &request, key.index(), value.value(), &mut rng);
            let claim = Claim::new(public, &request, key.index(), value.value(), &proof).unwrap();
            let mut false_ones = Vec::new();
            find_false(public, &request, core::slice::from_ref(&claim), &mut rng, &mut false_ones);
            assert_eq!(false_ones, []);
            (claim.response, claim.challenge)
        });
        let difference = |one: &Integer, other: &Integer| one.sub(other).or_else(|| other.sub(one)).unwrap();
        let challenges = difference(&c, &other_c);
        assert!(!challenges.is_zero());
        assert!(!difference(&z, &other_z).rem(&challenges).is_zero());
    }
}
