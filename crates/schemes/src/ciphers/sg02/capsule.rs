//! The cipher's part of a header: the wrapped key, and the proof that the header's maker knew the randomness and chose every byte.

use rand_core::CryptoRng;
use theta_groups::{Scalar, Secret, Transcript};
use theta_sharing::Encoded;
use zeroize::Zeroize;

use super::CipherGroup;
use crate::answer::of_type;
use crate::bisection::{find_false, random_weight};
use crate::ciphers::PayloadKey;
use crate::ciphers::wrap::{Coins, Wrap, take};
use crate::derived_rng::DerivedRng;
use crate::keys::{KeyId, PublicKeySet};
use crate::{CombineError, PendingProof, RequestError, RequestProof};

/// The public part of the hash H1 of the paper, which is the mask of the key.
pub(super) fn begin_mask<G: CipherGroup>(key_id: &KeyId, u: &[u8]) -> Transcript {
    Transcript::new("theta/sg02/wrap/v1")
        .with("suite", G::SUITE.name().as_bytes())
        .with("key id", key_id.as_bytes())
        .with("u", u)
}

/// Completes the mask, which takes `u * x`.
pub(super) fn finish_mask<G: CipherGroup>(begun: Transcript, shared: &G::Element) -> Secret<[u8; 32]> {
    let encoding = Secret::new(G::encode(shared).as_ref().to_vec());
    Secret::new(begun.with("shared", encoding.expose()).finish32())
}

/// H2 of the paper, over all of the header but the response.
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

/// r and s, the exponents of an honest encryption of `key`.
fn exponents<G: CipherGroup>(coins: &Coins, key: &PayloadKey) -> [Secret<G::Scalar>; 2] {
    ["encryption", "proof"].map(|purpose| coins.scalar(key, purpose))
}

/// Wraps `key`: see [`ThresholdCipher::encapsulate`](crate::ThresholdCipher::encapsulate).
pub(super) fn encapsulate<G: CipherGroup>(public: &PublicKeySet<G>, envelope: Vec<u8>, key: &PayloadKey) -> Vec<u8> {
    let mut header = envelope;
    let [r, s] = exponents::<G>(&Coins::begin(G::SUITE, public.key_id(), &header), key);
    let second = G::second_base();
    let encodings = G::encode_batch(&[
        G::mul_base(r.expose()),
        second.mul(r.expose()),
        G::mul_base(s.expose()),
        second.mul(s.expose()),
    ]);
    let u = encodings.first().map_or(&[][..], AsRef::as_ref);
    let mut shared = public.public_key_times(r.expose());
    let mask = finish_mask::<G>(begin_mask::<G>(public.key_id(), u), &shared);
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
    pub(super) u: Encoded<G>,
    /// The transcript that shares' proofs are bound to.
    pub(super) context: Transcript,
    pub(super) sealed: Sealed<G>,
}

/// The parts of a capsule that open it, once shares are combined.
pub(super) struct Sealed<G: CipherGroup> {
    /// c of the paper.
    wrap: Wrap,
    /// The public part of the mask's hash.
    mask: Transcript,
    coins: Coins,
    /// e and f of the proof, which has been checked.
    challenge: G::Scalar,
    response: G::Scalar,
}

impl<G: CipherGroup> Sealed<G> {
    /// The payload key, if `shared` is u x and the capsule is an honest encryption of that key; otherwise an error, whatever
    /// `shared` is. So all who get a key from one header get the same key, and where true shares give none, no others do.
    ///
    /// The commitment, which is hashed into e, fixes the key, and the key fixes r and s. The proof says that u = g a and w = g b
    /// with f = b + a e; if (a, b) were not (r, s), f = s + r e would hold for one e only. So u = g r, without computing a
    /// multiple of g, and u x must be h r.
    pub(super) fn open(&self, public: &PublicKeySet<G>, shared: &G::Element) -> Result<PayloadKey, CombineError> {
        let key = self.wrap.open(&finish_mask::<G>(self.mask.clone(), shared))?;
        let [r, s] = exponents::<G>(&self.coins, &key);
        let response = Secret::new(*s.expose() + *r.expose() * self.challenge);
        if *response.expose() != self.response {
            return Err(CombineError::ResultInvalid);
        }
        let expected = Secret::new(public.public_key_times(r.expose()));
        if expected.expose() == shared { Ok(key) } else { Err(CombineError::ResultInvalid) }
    }

    /// u x, encoded, if this header is an honest encryption of `key`: h r, without the secret x.
    pub(super) fn shared(&self, public: &PublicKeySet<G>, key: &PayloadKey) -> Secret<Vec<u8>> {
        let [r, _] = exponents::<G>(&self.coins, key);
        let shared = Secret::new(public.public_key_times(r.expose()));
        Secret::new(G::encode(shared.expose()).as_ref().to_vec())
    }
}

/// Parses the capsule of a header and checks its proof: that log_g u = log_g' u' and that the prover knew the
/// logarithm when the header was made.
pub(super) fn check<G: CipherGroup>(
    key_id: &KeyId,
    header: &[u8],
    capsule: &[u8],
) -> Result<ValidCapsule<G>, RequestError> {
    let (capsule, equations) = parse(key_id, header, capsule)?;
    equations.vartime_check()?;
    Ok(capsule)
}

/// The same, with the proof unchecked where several are checked for less together: on groups whose elements are cheap to decode.
pub(super) fn read<G: CipherGroup>(
    key_id: &KeyId,
    header: &[u8],
    capsule: &[u8],
) -> Result<(ValidCapsule<G>, PendingProof), RequestError> {
    let (capsule, equations) = parse(key_id, header, capsule)?;
    if G::HAS_COFACTOR {
        equations.vartime_check()?;
        return Ok((capsule, None));
    }
    Ok((capsule, Some(Box::new(equations.decoded()?))))
}

/// Parses the capsule of a header; it is valid if the equations hold.
fn parse<'a, G: CipherGroup>(
    key_id: &KeyId,
    header: &'a [u8],
    capsule: &'a [u8],
) -> Result<(ValidCapsule<G>, Equations<'a, G>), RequestError> {
    if capsule.len() != len::<G>() {
        return Err(RequestError::Header("its parts do not have the lengths that the suite gives them"));
    }
    let mut rest = capsule;
    let wrap = Wrap::read(&mut rest, G::SUITE, key_id)?;
    let element = |bytes: &[u8]| G::decode(bytes).map_err(|_| RequestError::InvalidCiphertext);
    let u = Encoded::decode(take(&mut rest, G::ENCODED_LEN)?).map_err(|_| RequestError::InvalidCiphertext)?;
    let u_second = element(take(&mut rest, G::ENCODED_LEN)?)?;
    let commitments = [take(&mut rest, G::ENCODED_LEN)?, take(&mut rest, G::ENCODED_LEN)?];
    let response = G::Scalar::decode(rest).map_err(|_| RequestError::InvalidCiphertext)?;

    let statement = statement_hash::<G>(header.split_at(header.len().saturating_sub(rest.len())).0);
    let challenge = G::Scalar::from_uniform_bytes(&statement);
    let equations =
        Equations { u: *u.element(), u_second, commitments, challenge, response, statement, response_bytes: rest };
    let context = Transcript::new("theta/sg02/share/v1")
        .with("suite", G::SUITE.name().as_bytes())
        .with("key id", key_id.as_bytes())
        .with("statement", &statement)
        .with("response", rest);
    let (envelope, _) = header.split_at(header.len().saturating_sub(capsule.len()));
    let (mask, coins) = (begin_mask::<G>(key_id, u.bytes()), Coins::begin(G::SUITE, key_id, envelope));
    Ok((ValidCapsule { u, context, sealed: Sealed { wrap, mask, coins, challenge, response } }, equations))
}

/// The proof of a header: w = g^f u^-e and w' = g'^f u'^-e for its commitments w and w', none of them the identity.
struct Equations<'a, G: CipherGroup> {
    u: G::Element,
    u_second: G::Element,
    /// w and w', encoded.
    commitments: [&'a [u8]; 2],
    challenge: G::Scalar,
    response: G::Scalar,
    /// The hash in the challenge, and the response as it was encoded.
    statement: [u8; 64],
    response_bytes: &'a [u8],
}

impl<G: CipherGroup> Equations<'_, G> {
    /// Whether they hold.
    ///
    /// # Errors
    /// [`RequestError::InvalidCiphertext`]: they do not.
    fn vartime_check(&self) -> Result<(), RequestError> {
        let hold = if G::HAS_COFACTOR {
            self.vartime_hold_one_by_one()
        } else {
            let weights = Transcript::new("theta/sg02/weight/v1")
                .with("statement", &self.statement)
                .with("response", self.response_bytes);
            self.decoded()?.vartime_hold_weighted(DerivedRng::new(weights).next_u128())
        };
        if hold { Ok(()) } else { Err(RequestError::InvalidCiphertext) }
    }

    /// With their commitments as elements: for groups whose elements are cheap to decode.
    fn decoded(&self) -> Result<Validity<G>, RequestError> {
        let element = |bytes: &[u8]| G::decode(bytes).map_err(|_| RequestError::InvalidCiphertext);
        let [w, w_second] = self.commitments;
        let bases = [self.u, self.u_second];
        Ok(Validity {
            bases,
            commitments: [element(w)?, element(w_second)?],
            challenge: self.challenge,
            response: self.response,
        })
    }

    /// Checks one after the other, by computing w and w' and comparing encodings. That spares two checks of membership in the
    /// subgroup, which cost more than the weighted sum saves. It is as strict: u and u' have been checked, so that both right
    /// sides are in the subgroup, and only the canonical encoding of an element equals it.
    fn vartime_hold_one_by_one(&self) -> bool {
        let commitments = [
            G::vartime_double_mul(&self.response, &self.u, &-self.challenge),
            G::vartime_msm(&[self.response, -self.challenge], &[*G::second_generator(), self.u_second]),
        ];
        !commitments.iter().any(G::is_identity)
            && G::encode_batch(&commitments).iter().map(AsRef::as_ref).eq(self.commitments)
    }
}

/// The proof of a header, all of whose elements are in the group.
struct Validity<G: CipherGroup> {
    /// u and u'.
    bases: [G::Element; 2],
    /// w and w'.
    commitments: [G::Element; 2],
    challenge: G::Scalar,
    response: G::Scalar,
}

/// A proof among others: its place, and the weights of its two equations.
type Weighed<'a, G> = (usize, [u128; 2], &'a Validity<G>);

impl<G: CipherGroup> Validity<G> {
    /// Whether both equations hold: g f = u e + w, and g' f = u' e + w' times this weight.
    fn vartime_hold_weighted(&self, weight: u128) -> bool {
        let Self { bases: [u, u_second], commitments: [w, w_second], challenge, response } = *self;
        let weight = G::Scalar::from_u128(weight);
        let difference = G::vartime_msm(
            &[response, response * weight, -challenge, -(challenge * weight), -G::Scalar::ONE, -weight],
            &[G::generator(), *G::second_generator(), u, u_second, w, w_second],
        );
        G::is_identity(&difference)
    }

    /// Whether all equations of all proofs hold: their differences, each times its own secret random weight, add up to the identity.
    fn vartime_all_hold(batch: &[Weighed<'_, G>]) -> bool {
        if let [(_, [_, weight], proof)] = batch {
            return proof.vartime_hold_weighted(*weight);
        }
        let mut generators = [G::Scalar::ZERO; 2];
        let (mut scalars, mut points) = (Vec::new(), Vec::new());
        let (mut short, mut commitments) = (Vec::new(), Vec::new());
        for (_, weights, proof) in batch {
            let sides = generators.iter_mut().zip(weights).zip(proof.bases.iter().zip(&proof.commitments));
            for ((generator, weight), (base, commitment)) in sides {
                let scalar = G::Scalar::from_u128(*weight);
                *generator += scalar * proof.response;
                scalars.push(-(scalar * proof.challenge));
                points.push(*base);
                short.push(*weight);
                commitments.push(-*commitment);
            }
        }
        scalars.extend(generators);
        points.extend([G::generator(), *G::second_generator()]);
        let difference = G::vartime_msm(&scalars, &points) + G::vartime_msm_short(&short, &commitments);
        G::is_identity(&difference)
    }
}

impl<G: CipherGroup> RequestProof for Validity<G> {
    fn vartime_false_among(&self, proofs: &[&dyn RequestProof], rng: &mut dyn CryptoRng) -> Vec<usize> {
        let Some(ours) = of_type::<Self>(proofs) else { return (0..proofs.len()).collect() };
        let weighed = |(place, proof)| (place, [random_weight(rng), random_weight(rng)], proof);
        let batch: Vec<Weighed<'_, G>> = ours.into_iter().enumerate().map(weighed).collect();
        let mut found = Vec::new();
        find_false(&batch, &Self::vartime_all_hold, &mut |(place, ..)| found.push(*place));
        found
    }
}

/// A header with the given wrap and an honest proof of equal logarithms.
#[cfg(test)]
pub(super) fn forge<G: CipherGroup>(envelope: &[u8], wrap: [u8; 64], rng: &mut (impl CryptoRng + ?Sized)) -> Vec<u8> {
    forge_skewed::<G>(envelope, wrap, [0, 0], rng)
}

/// A header with the given wrap, whose u and u' are moved away from the logarithm that is proved.
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
