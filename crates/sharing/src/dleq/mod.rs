//! Proofs that two discrete logarithms are equal (Chaum-Pedersen 1992), made non-interactive by Fiat-Shamir.
//!
//! Claim: log_g H = log_U V, for the group's generator g. Proof: A = g^w, B = U^w for a random w, challenge
//! e = hash(context, g, H, U, V, A, B), response s = w + e x. It holds when g^s = A H^e and U^s = B V^e.
//!
//! The proof carries the commitments A and B rather than the challenge, so that many proofs can be checked at once
//! ([`vartime_verify_batch`]).

mod batch;

pub use batch::vartime_verify_batch;

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group, Scalar, Secret, Transcript};

/// A proof that log_g H = log_U V. Its commitments stay encoded until the proof is verified.
#[derive(Clone, Debug)]
pub struct DleqProof<G: Group> {
    commitment_g: G::Encoding,
    commitment: G::Encoding,
    response: G::Scalar,
}

impl<G: Group> DleqProof<G> {
    /// Length of an encoded proof in bytes: two elements and a scalar.
    #[must_use]
    pub const fn encoded_len() -> usize {
        2 * G::ENCODED_LEN + G::Scalar::ENCODED_LEN
    }

    /// Appends A || B || s.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.commitment_g.as_ref());
        out.extend_from_slice(self.commitment.as_ref());
        out.extend_from_slice(self.response.encode().as_ref());
    }

    /// Reads what [`DleqProof::encode_into`] wrote. Shallow: whether the commitments are group elements is found out
    /// when the proof is verified, where a bad one makes the proof false.
    ///
    /// # Errors
    /// [`DecodeError::Length`], or [`DecodeError::NotCanonical`] for the response.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong_length = DecodeError::Length { expected: Self::encoded_len(), got: bytes.len() };
        if bytes.len() != Self::encoded_len() {
            return Err(wrong_length);
        }
        let (commitment_g, rest) = bytes.split_at_checked(G::ENCODED_LEN).ok_or(wrong_length)?;
        let (commitment, response) = rest.split_at_checked(G::ENCODED_LEN).ok_or(wrong_length)?;
        Ok(Self {
            commitment_g: G::Encoding::try_from(commitment_g).map_err(|_| wrong_length)?,
            commitment: G::Encoding::try_from(commitment).map_err(|_| wrong_length)?,
            response: G::Scalar::decode(response)?,
        })
    }
}

/// What a proof is about, and the proof: log_g `image_g` = log_U `image`, where the base U is given beside the claims
/// because it is common to all of them.
#[derive(Clone, Debug)]
pub struct DleqClaim<'a, G: Group> {
    /// H = g^x, usually a party's verification key.
    pub image_g: G::Element,
    /// V = U^x, usually a party's share.
    pub image: G::Element,
    /// The proof.
    pub proof: &'a DleqProof<G>,
    /// What the challenge is bound to: scheme, key, party, label. It must be the transcript that the prover had.
    pub context: &'a Transcript,
}

/// The parts of a challenge that all claims on one base share, encoded once.
struct Base<G: Group> {
    generator: G::Encoding,
    base: G::Encoding,
}

impl<G: Group> Base<G> {
    fn new(base: &G::Element) -> Self {
        Self { generator: G::encode(&G::generator()), base: G::encode(base) }
    }

    /// The transcript of the statement, before commitments.
    fn statement(&self, context: &Transcript, image_g: &G::Encoding, image: &G::Encoding) -> Transcript {
        context
            .clone()
            .with("proof", b"theta/dleq/v1")
            .with("g", self.generator.as_ref())
            .with("h", image_g.as_ref())
            .with("u", self.base.as_ref())
            .with("v", image.as_ref())
    }
}

/// e, from the statement's transcript and both commitments.
fn challenge<G: Group>(statement: Transcript, commitment_g: &G::Encoding, commitment: &G::Encoding) -> G::Scalar {
    statement.with("a", commitment_g.as_ref()).with("b", commitment.as_ref()).challenge()
}

/// Proves that log_g `image_g` = log_`base` `image` = `secret`. Constant-time in the secret.
///
/// The statement is the caller's to get right: with other images than g^secret and base^secret the proof is false.
pub fn prove<G: Group>(
    context: &Transcript,
    secret: &Secret<G::Scalar>,
    image_g: &G::Element,
    base: &G::Element,
    image: &G::Element,
    rng: &mut (impl CryptoRng + ?Sized),
) -> DleqProof<G> {
    let statement = Base::<G>::new(base).statement(context, &G::encode(image_g), &G::encode(image));
    let nonce = nonce::<G>(statement.clone(), secret, rng);
    let commitment_g = G::encode(&G::mul_base(nonce.expose()));
    let commitment = G::encode(&(*base * *nonce.expose()));
    let e = challenge::<G>(statement, &commitment_g, &commitment);
    DleqProof { commitment_g, commitment, response: *nonce.expose() + e * *secret.expose() }
}

/// w: random, but bound to the secret and the statement as well, so that a random generator that repeats itself (a
/// cloned virtual machine, a bad seed) cannot make two proofs with one nonce, from which anyone could compute the
/// secret.
fn nonce<G: Group>(
    statement: Transcript,
    secret: &Secret<G::Scalar>,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Secret<G::Scalar> {
    let mut random = Secret::new([0; 32]);
    rng.fill_bytes(random.expose_mut());
    let encoded = Secret::new(secret.expose().encode());
    Secret::new(
        statement.with("nonce: random", random.expose()).with("nonce: secret", encoded.expose().as_ref()).challenge(),
    )
}

/// Whether one claim is true. Claims about the identity (as base or as an image) are refused: they say nothing.
#[must_use]
pub fn vartime_verify<G: Group>(base: &G::Element, claim: &DleqClaim<'_, G>) -> bool {
    if [base, &claim.image_g, &claim.image].into_iter().any(G::is_identity) {
        return false;
    }
    let proof = claim.proof;
    let statement = Base::<G>::new(base).statement(claim.context, &G::encode(&claim.image_g), &G::encode(&claim.image));
    let scalars = [proof.response, -challenge::<G>(statement, &proof.commitment_g, &proof.commitment)];
    // Computing what the commitments must have been and comparing the encodings spares decoding them.
    let commitments =
        [G::vartime_msm(&scalars, &[G::generator(), claim.image_g]), G::vartime_msm(&scalars, &[*base, claim.image])];
    !commitments.iter().any(G::is_identity) && G::encode_batch(&commitments) == [proof.commitment_g, proof.commitment]
}
