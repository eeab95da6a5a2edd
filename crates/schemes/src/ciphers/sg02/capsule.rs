//! What the cipher puts into a header: the wrapped key and the proof that the header is whole.

use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret, Transcript};
use theta_sharing::Encoded;
use zeroize::Zeroize;

use super::CipherGroup;
use crate::RequestError;
use crate::ciphers::payload::PayloadKey;
use crate::ciphers::wrap::{Wrap, take};
use crate::derived_rng::DerivedRng;
use crate::keys::{KeyId, PublicKeySet};

/// H1 of the paper: the mask of the key, which only those who know `u * x` can compute.
pub(super) fn mask<G: CipherGroup>(key_id: &KeyId, u: &[u8], shared: &G::Element) -> Secret<[u8; 32]> {
    let encoding = Secret::new(G::encode(shared).as_ref().to_vec());
    Secret::new(
        Transcript::new("theta/sg02/wrap/v1")
            .with("suite", G::SUITE.name().as_bytes())
            .with("key id", key_id.as_bytes())
            .with("u", u)
            .with("shared", encoding.expose())
            .finish32(),
    )
}

/// H2 of the paper: all of the header but the response is bound.
fn statement_hash<G: CipherGroup>(header_without_response: &[u8]) -> [u8; 64] {
    Transcript::new("theta/sg02/validity/v1")
        .with("suite", G::SUITE.name().as_bytes())
        .with("header", header_without_response)
        .finish()
}

/// Length in bytes of the capsule, which completes a header.
pub(super) const fn len<G: CipherGroup>() -> usize {
    Wrap::ENCODED_LEN + 4 * G::ENCODED_LEN + G::Scalar::ENCODED_LEN
}

/// Wraps `key`: see [`ThresholdCipher::encapsulate`](crate::ThresholdCipher::encapsulate).
pub(super) fn encapsulate<G: CipherGroup>(
    public: &PublicKeySet<G>,
    envelope: Vec<u8>,
    key: PayloadKey,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<u8> {
    let mut header = envelope;
    let r = Secret::new(G::Scalar::random(rng));
    let s = Secret::new(G::Scalar::random(rng));
    let second = *G::second_generator();
    let encodings = G::encode_batch(&[
        G::mul_base(r.expose()),
        second * *r.expose(),
        G::mul_base(s.expose()),
        second * *s.expose(),
    ]);
    let u = encodings.first().map_or(&[][..], AsRef::as_ref);
    let mut shared = *public.public_key() * *r.expose();
    let mask = mask::<G>(public.key_id(), u, &shared);
    shared.zeroize();
    header.extend_from_slice(&Wrap::seal(key, &mask, G::SUITE, public.key_id()));
    for encoding in &encodings {
        header.extend_from_slice(encoding.as_ref());
    }
    let challenge = G::Scalar::from_uniform_bytes(&statement_hash::<G>(&header));
    let response = *s.expose() + *r.expose() * challenge;
    header.extend_from_slice(response.encode().as_ref());
    header
}

/// A capsule whose proof holds.
pub(super) struct ValidCapsule<G: CipherGroup> {
    /// c of the paper.
    pub(super) wrap: Wrap,
    pub(super) u: Encoded<G>,
    /// What shares are bound to.
    pub(super) context: Transcript,
}

/// Parses the capsule of a header and checks its proof: that log_g u = log_g' u' and that the prover knew the
/// logarithm when the header was made. One multi-scalar multiplication checks both equations, the second with a
/// 128-bit weight that is a hash of the whole header.
pub(super) fn check<G: CipherGroup>(
    key_id: &KeyId,
    header: &[u8],
    capsule: &[u8],
) -> Result<ValidCapsule<G>, RequestError> {
    if capsule.len() != len::<G>() {
        return Err(RequestError::Header("its parts do not have the lengths that the suite gives them"));
    }
    let mut rest = capsule;
    let wrap = Wrap::read(&mut rest)?;
    let element = |bytes: &[u8]| G::decode(bytes).map_err(|_| RequestError::InvalidCiphertext);
    let u = Encoded::decode(take(&mut rest, G::ENCODED_LEN)?).map_err(|_| RequestError::InvalidCiphertext)?;
    let u_second = element(take(&mut rest, G::ENCODED_LEN)?)?;
    let w = element(take(&mut rest, G::ENCODED_LEN)?)?;
    let w_second = element(take(&mut rest, G::ENCODED_LEN)?)?;
    let response = G::Scalar::decode(rest).map_err(|_| RequestError::InvalidCiphertext)?;

    let statement = statement_hash::<G>(header.split_at(header.len().saturating_sub(rest.len())).0);
    let challenge = G::Scalar::from_uniform_bytes(&statement);
    let weights = Transcript::new("theta/sg02/weight/v1").with("statement", &statement).with("response", rest);
    let weight = G::Scalar::from_u128(DerivedRng::new(weights).next_u128());
    let difference = G::vartime_msm(
        &[response, response * weight, -challenge, -(challenge * weight), -G::Scalar::ONE, -weight],
        &[G::generator(), *G::second_generator(), *u.element(), u_second, w, w_second],
    );
    if !G::is_identity(&difference) {
        return Err(RequestError::InvalidCiphertext);
    }
    let context = Transcript::new("theta/sg02/share/v1")
        .with("suite", G::SUITE.name().as_bytes())
        .with("key id", key_id.as_bytes())
        .with("statement", &statement)
        .with("response", rest);
    Ok(ValidCapsule { wrap, u, context })
}

/// A header with a proof that is honest about the logarithms and a wrap that is whatever the caller says.
#[cfg(test)]
pub(super) fn forge<G: CipherGroup>(envelope: &[u8], wrap: [u8; 64], rng: &mut (impl CryptoRng + ?Sized)) -> Vec<u8> {
    forge_skewed::<G>(envelope, wrap, [0, 0], rng)
}

/// The same with u and u' moved away from the logarithm that is proved.
#[cfg(test)]
pub(super) fn forge_skewed<G: CipherGroup>(
    envelope: &[u8],
    wrap: [u8; 64],
    skew: [u64; 2],
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<u8> {
    let (r, s) = (G::Scalar::random(rng), G::Scalar::random(rng));
    let second = *G::second_generator();
    let [skew, skew_second] = skew.map(|skew| G::generator() * G::Scalar::from_u64(skew));
    let mut header = [envelope, &wrap].concat();
    for element in [G::mul_base(&r) + skew, second * r + skew_second, G::mul_base(&s), second * s] {
        header.extend_from_slice(G::encode(&element).as_ref());
    }
    let challenge = G::Scalar::from_uniform_bytes(&statement_hash::<G>(&header));
    header.extend_from_slice((s + r * challenge).encode().as_ref());
    header
}
