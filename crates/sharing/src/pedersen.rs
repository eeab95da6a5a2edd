//! Hiding commitments to polynomials (Pedersen, CRYPTO 1991), and the step from them to public keys.
//!
//! C_j = g a_j + h b_j hides a_j perfectly. Once it is settled which dealings count, the holder of a share
//! (u, v) = (f(i), f'(i)) publishes g u and proves that the commitments hide u. Then the elements of k parties give the public
//! key by interpolation in the exponent, as in the key derivation of Das, Yurek, Xiang, Miller, Kokoris-Kogias and Ren,
//! *Practical Asynchronous Distributed Key Generation*, IEEE S&P 2022.

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group, Scalar, Secret, Transcript};

use crate::{Commitments, Encoded, Polynomial};

/// The second generator h, a hash of the group's name, so that nobody knows its logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blinding<G: Group>(G::Element);

impl<G: Group> Blinding<G> {
    /// Hashes to the group.
    #[must_use]
    pub fn new() -> Self {
        Self(G::hash_to_group(b"theta/pedersen/h/v1", &[G::NAME.as_bytes()]))
    }

    /// h.
    #[must_use]
    pub const fn element(&self) -> &G::Element {
        &self.0
    }

    /// Commitments to `values`, hidden by `blinding`, a polynomial with as many coefficients.
    #[must_use]
    pub fn commit(&self, values: &Polynomial<G::Scalar>, blinding: &Polynomial<G::Scalar>) -> Commitments<G> {
        let pairs = values.coefficients().expose().iter().zip(blinding.coefficients().expose());
        Commitments::new(pairs.map(|(a, b)| G::mul_base(a) + self.0 * *b).collect())
    }
}

impl<G: Group> Default for Blinding<G> {
    fn default() -> Self {
        Self::new()
    }
}

/// A proof that a commitment C hides the discrete logarithm of an element H: knowledge of u and v with H = g u and
/// C - H = h v. It consists of two of Schnorr's proofs under one challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningProof<S> {
    challenge: S,
    responses: [S; 2],
}

impl<S: Scalar> OpeningProof<S> {
    /// Length of an encoded proof in bytes: three scalars.
    pub const ENCODED_LEN: usize = 3 * S::ENCODED_LEN;

    /// Appends challenge and responses.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let [value, blinding] = &self.responses;
        [&self.challenge, value, blinding].into_iter().for_each(|s| out.extend_from_slice(s.encode().as_ref()));
    }

    /// Reads what [`OpeningProof::encode_into`] wrote.
    ///
    /// # Errors
    /// [`DecodeError::Length`] or [`DecodeError::NotCanonical`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong_length = DecodeError::Length { expected: Self::ENCODED_LEN, got: bytes.len() };
        let mut scalars = bytes.chunks(S::ENCODED_LEN).map(S::decode);
        let mut next = || scalars.next().unwrap_or(Err(wrong_length));
        let proof = Self { challenge: next()?, responses: [next()?, next()?] };
        if bytes.len() == Self::ENCODED_LEN { Ok(proof) } else { Err(wrong_length) }
    }
}

fn challenge<G: Group>(
    context: &Transcript,
    image: &Encoded<G>,
    commitment: &G::Element,
    nonces: [&G::Element; 2],
) -> G::Scalar {
    let [value, blinding] = nonces;
    context
        .clone()
        .with("proof", b"theta/opening/v1")
        .with("group", G::NAME.as_bytes())
        .with("image", image.bytes())
        .with("commitment", G::encode(commitment).as_ref())
        .with("a", G::encode(value).as_ref())
        .with("b", G::encode(blinding).as_ref())
        .challenge()
}

/// Proves that `commitment` = `image` + h * `blinding` and `image` = g * `value`. The proof is bound to the context.
pub fn prove_opening<G: Group>(
    context: &Transcript,
    generator: &Blinding<G>,
    image: &Encoded<G>,
    commitment: &G::Element,
    [value, blinding]: [&Secret<G::Scalar>; 2],
    rng: &mut (impl CryptoRng + ?Sized),
) -> OpeningProof<G::Scalar> {
    // The nonces depend on secrets and statement too: a random generator that repeats itself must not make two proofs with one.
    let mut random = Secret::new([0; 32]);
    rng.fill_bytes(random.expose_mut());
    let nonce = |label: &[u8]| {
        let encoded = [value, blinding].map(|secret| Secret::new(secret.expose().encode()));
        let [u, v] = &encoded;
        let transcript = context
            .clone()
            .with("nonce", label)
            .with("image", image.bytes())
            .with("commitment", G::encode(commitment).as_ref())
            .with("random", random.expose())
            .with("u", u.expose().as_ref())
            .with("v", v.expose().as_ref());
        Secret::new(transcript.challenge::<G::Scalar>())
    };
    let (k, l) = (nonce(b"value"), nonce(b"blinding"));
    let nonces = [&G::mul_base(k.expose()), &(*generator.element() * *l.expose())];
    let e = challenge::<G>(context, image, commitment, nonces);
    OpeningProof { challenge: e, responses: [*k.expose() + e * *value.expose(), *l.expose() + e * *blinding.expose()] }
}

/// Whether the proof is true. The identity as image is refused, because no verification key is the identity.
#[must_use]
pub fn vartime_verify_opening<G: Group>(
    context: &Transcript,
    generator: &Blinding<G>,
    image: &Encoded<G>,
    commitment: &G::Element,
    proof: &OpeningProof<G::Scalar>,
) -> bool {
    let (e, [value, blinding]) = (proof.challenge, proof.responses);
    let a = G::vartime_double_mul(&value, image.element(), &-e);
    let b = G::vartime_msm(&[blinding, -e], &[*generator.element(), *commitment - *image.element()]);
    !G::is_identity(image.element()) && challenge::<G>(context, image, commitment, [&a, &b]) == e
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommittedShare, ShareIndex, vartime_false_shares};
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use theta_groups::{Ed448, Ed25519, P256, Ristretto255, Secp256k1, bls12_381, bn254};

    fn pairs_fit_and_open<G: Group>() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let h = Blinding::<G>::new();
        let [f, g] = [0, 1].map(|_| Polynomial::<G::Scalar>::random(3, &mut rng));
        let commitments = h.commit(&f, &g);
        let index = ShareIndex::try_from(5).unwrap();
        let (value, blind) = (f.at(index), g.at(index));
        let share =
            |value, blinding| CommittedShare { commitments: &commitments, index, value, blinding: Some((blinding, h)) };
        let shares = [share(&value, &blind), share(&blind, &value), share(&value, &blind), share(&value, &value)];
        assert_eq!(vartime_false_shares(&shares, &mut rng), [1, 3]);

        let context = Transcript::new("test").with("who", b"5");
        let commitment = commitments.vartime_at(index);
        let image = Encoded::<G>::new(G::mul_base(value.expose()));
        let proof = prove_opening(&context, &h, &image, &commitment, [&value, &blind], &mut rng);
        assert!(vartime_verify_opening(&context, &h, &image, &commitment, &proof));
        let mut bytes = Vec::new();
        proof.encode_into(&mut bytes);
        assert_eq!(OpeningProof::decode(&bytes), Ok(proof.clone()));
        assert!(OpeningProof::<G::Scalar>::decode(&bytes[1..]).is_err());
        bytes.push(0);
        assert!(OpeningProof::<G::Scalar>::decode(&bytes).is_err());

        let other = Encoded::<G>::new(*image.element() + G::generator());
        let elsewhere = Transcript::new("test").with("who", b"6");
        assert!(!vartime_verify_opening(&elsewhere, &h, &image, &commitment, &proof));
        assert!(!vartime_verify_opening(&context, &h, &other, &commitment, &proof));
        assert!(!vartime_verify_opening(&context, &h, &image, &(commitment + G::generator()), &proof));
        // A prover who knows both values cannot claim another image by moving a part of one into the other.
        let moved = Secret::new(*value.expose() + G::Scalar::ONE);
        let false_proof = prove_opening(&context, &h, &other, &commitment, [&moved, &blind], &mut rng);
        assert!(!vartime_verify_opening(&context, &h, &other, &commitment, &false_proof));
    }

    #[test]
    fn in_every_group() {
        pairs_fit_and_open::<Ristretto255>();
        pairs_fit_and_open::<Ed25519>();
        pairs_fit_and_open::<Ed448>();
        pairs_fit_and_open::<P256>();
        pairs_fit_and_open::<Secp256k1>();
        pairs_fit_and_open::<bls12_381::G1>();
        pairs_fit_and_open::<bls12_381::G2>();
        pairs_fit_and_open::<bn254::G1>();
        pairs_fit_and_open::<bn254::G2>();
    }
}
