//! Proofs that two discrete logarithms are equal (Chaum and Pedersen, CRYPTO 1992), made non-interactive by Fiat-Shamir.
//!
//! Claim: log_g H = log_U V, for the group's generator g. Proof: A = g^w, B = U^w for a random w, challenge
//! e = hash(context, g, H, U, V, A, B), response s = w + e x. It holds when g^s = A H^e and U^s = B V^e.
//!
//! The proof carries the commitments A and B rather than the challenge, so that many proofs can be checked at once
//! ([`vartime_false_among`]).

mod batch;

pub use batch::{vartime_false_among, vartime_false_sets, vartime_verify_batch};

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group, Scalar, Secret, Transcript};

use crate::Encoded;

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

    /// Reads what [`DleqProof::encode_into`] wrote. Whether the commitments are group elements is checked only when the proof
    /// is verified; a bad one makes the proof false.
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

/// A statement, log_g `image_g` = log_U `image`, and its proof. The bases are given beside the claims, because they are common
/// to all of them.
#[derive(Clone, Debug)]
pub struct DleqClaim<'a, G: Group> {
    /// H = g^x, usually a party's verification key.
    pub image_g: Encoded<G>,
    /// V = U^x, usually a party's share.
    pub image: Encoded<G>,
    /// The proof.
    pub proof: &'a DleqProof<G>,
    /// What the challenge is bound to: scheme, key, party, label. It must be the prover's transcript.
    pub context: &'a Transcript,
}

/// Claims on one pair of bases, such as the shares in the answer to one request.
pub type ClaimSet<'a, G> = (&'a Bases<G>, &'a [DleqClaim<'a, G>]);

/// The generator g with its encoding, to be kept beside a key: every proof hashes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator<G: Group>(Encoded<G>);

impl<G: Group> Generator<G> {
    /// Encodes the generator.
    #[must_use]
    pub fn new() -> Self {
        Self(Encoded::new(G::generator()))
    }

    /// The pair of bases g and U = `base`.
    #[must_use]
    pub const fn with(self, base: Encoded<G>) -> Bases<G> {
        Bases { generator: self, base }
    }
}

impl<G: Group> Default for Generator<G> {
    fn default() -> Self {
        Self::new()
    }
}

/// The bases g and U of a claim, the same for all claims on one request. From [`Generator::with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bases<G: Group> {
    generator: Generator<G>,
    base: Encoded<G>,
}

impl<G: Group> Bases<G> {
    /// U.
    #[must_use]
    pub const fn base(&self) -> &Encoded<G> {
        &self.base
    }

    /// The transcript of the statement, before commitments. Nothing is encoded here: an [`Encoded`] element has its one
    /// canonical encoding beside it.
    fn statement(&self, context: &Transcript, image_g: &Encoded<G>, image: &Encoded<G>) -> Transcript {
        context
            .clone()
            .with("proof", b"theta/dleq/v1")
            .with("g", self.generator.0.bytes())
            .with("h", image_g.bytes())
            .with("u", self.base.bytes())
            .with("v", image.bytes())
    }
}

/// e, from the statement's transcript and both commitments.
fn challenge<G: Group>(statement: Transcript, commitment_g: &G::Encoding, commitment: &G::Encoding) -> G::Scalar {
    statement.with("a", commitment_g.as_ref()).with("b", commitment.as_ref()).challenge()
}

/// Proves that log_g `image_g` = log_U `image` = `secret`, for the `bases` g and U. Constant-time in the secret.
///
/// The caller must give the images g^secret and U^secret; with any others the proof is false.
pub fn prove<G: Group>(
    context: &Transcript,
    secret: &Secret<G::Scalar>,
    bases: &Bases<G>,
    image_g: &Encoded<G>,
    image: &Encoded<G>,
    rng: &mut (impl CryptoRng + ?Sized),
) -> DleqProof<G> {
    let statement = bases.statement(context, image_g, image);
    let nonce = nonce::<G>(statement.clone(), secret, rng);
    let commitment_g = G::encode(&G::mul_base(nonce.expose()));
    let commitment = G::encode(&(*bases.base.element() * *nonce.expose()));
    let e = challenge::<G>(statement, &commitment_g, &commitment);
    DleqProof { commitment_g, commitment, response: *nonce.expose() + e * *secret.expose() }
}

/// The nonce w: a hash of random bytes, the secret and the statement. A random generator that repeats itself (a cloned
/// virtual machine, a bad seed) then makes no two different proofs with one nonce, from which anyone could compute the secret.
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

/// Whether one claim is true. Claims with the identity as base or image are refused, because they say nothing.
#[must_use]
pub fn vartime_verify<G: Group>(bases: &Bases<G>, claim: &DleqClaim<'_, G>) -> bool {
    let (base, image_g, image) = (bases.base.element(), claim.image_g.element(), claim.image.element());
    if [base, image_g, image].into_iter().any(G::is_identity) {
        return false;
    }
    let proof = claim.proof;
    let statement = bases.statement(claim.context, &claim.image_g, &claim.image);
    let (response, minus_e) = (proof.response, -challenge::<G>(statement, &proof.commitment_g, &proof.commitment));
    // The commitments are computed again and their encodings compared, which is cheaper than decoding them.
    let commitments =
        [G::vartime_double_mul(&response, image_g, &minus_e), G::vartime_msm(&[response, minus_e], &[*base, *image])];
    !commitments.iter().any(G::is_identity) && G::encode_batch(&commitments) == [proof.commitment_g, proof.commitment]
}
