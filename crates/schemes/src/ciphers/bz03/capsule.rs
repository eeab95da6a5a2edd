//! The cipher's part of a header: the wrapped key, and the point w, which proves that the header's maker knew the randomness and
//! chose every byte.

use rand_core::CryptoRng;
use theta_groups::{Group, PairOf, Pairing, Scalar, Secret, Transcript};
use zeroize::Zeroize;

use super::CipherPairing;
use crate::answer::of_type;
use crate::bisection::{find_false, random_weight};
use crate::ciphers::PayloadKey;
use crate::ciphers::wrap::{Coins, Wrap, take};
use crate::derived_rng::DerivedRng;
use crate::keys::{KeyId, PublicKeySet};
use crate::{CombineError, RequestError, RequestProof};

/// An element of G1.
type First<P> = <<P as Pairing>::G1 as Group>::Element;
/// An element of G2.
type Second<P> = <<P as Pairing>::G2 as Group>::Element;

/// H1 of the paper: the mask of the key, which takes `u * x` to compute.
pub(super) fn mask<P: CipherPairing>(key_id: &KeyId, u: &First<P>, shared: &First<P>) -> Secret<[u8; 32]> {
    // Both are encoded with one inversion; the bytes of the second are the secret.
    let encodings = P::G1::encode_batch(&[*u, *shared]);
    let bytes = |i: usize| encodings.get(i).map_or(&[][..], AsRef::as_ref);
    let shared = Secret::new(bytes(1).to_vec());
    Secret::new(
        Transcript::new("theta/bz03/wrap/v1")
            .with("suite", P::SUITE.name().as_bytes())
            .with("key id", key_id.as_bytes())
            .with("u", bytes(0))
            .with("shared", shared.expose())
            .finish32(),
    )
}

/// H2 of the paper, over all of the header but w.
fn validity_point<P: CipherPairing>(header_without_w: &[u8]) -> First<P> {
    P::G1::hash_to_group(P::VALIDITY_DST, &[header_without_w])
}

/// Length in bytes of the capsule, which completes a header.
pub(super) const fn len<P: Pairing>() -> usize {
    Wrap::ENCODED_LEN + 2 * P::G1::ENCODED_LEN + P::G2::ENCODED_LEN
}

/// r, the exponent of an honest encryption of `key`.
fn exponent<P: CipherPairing>(coins: &Coins, key: &PayloadKey) -> Secret<P::Scalar> {
    coins.scalar(key, "encryption")
}

/// Wraps `key`: see [`ThresholdCipher::encapsulate`](crate::ThresholdCipher::encapsulate).
pub(super) fn encapsulate<P: CipherPairing>(
    public: &PublicKeySet<P::G1>,
    envelope: Vec<u8>,
    key: &PayloadKey,
) -> Vec<u8> {
    let r = exponent::<P>(&Coins::begin(P::SUITE, public.key_id(), &envelope), key);
    let u = P::G1::mul_base(r.expose());
    let mut shared = public.public_key_times(r.expose());
    let mask = mask::<P>(public.key_id(), &u, &shared);
    shared.zeroize();
    let mut header = envelope;
    header.extend_from_slice(&Wrap::seal(key, &mask, P::SUITE, public.key_id()));
    header.extend_from_slice(P::G1::encode(&u).as_ref());
    header.extend_from_slice(P::G2::encode(&P::G2::mul_base(r.expose())).as_ref());
    let w = validity_point::<P>(&header) * *r.expose();
    header.extend_from_slice(P::G1::encode(&w).as_ref());
    header
}

/// A capsule whose validity has been checked.
pub(super) struct ValidCapsule<P: Pairing> {
    /// V of the paper.
    wrap: Wrap,
    coins: Coins,
    pub(super) u: First<P>,
    pub(super) u_second: Second<P>,
}

impl<P: CipherPairing> ValidCapsule<P> {
    /// The payload key, if `shared` is u x and the capsule is an honest encryption of that key; otherwise an error, whatever
    /// `shared` is. So all who get a key from one header get the same key, and where true shares give none, no others do.
    ///
    /// Both multiplications are needed, unlike in `sg02`, whose header has a scalar that binds r: an encryptor who knows the
    /// false share of an accomplice beforehand can make either equation hold without the other.
    pub(super) fn open(&self, public: &PublicKeySet<P::G1>, shared: &First<P>) -> Result<PayloadKey, CombineError> {
        let key = self.wrap.open(&mask::<P>(public.key_id(), &self.u, shared))?;
        let r = exponent::<P>(&self.coins, &key);
        let expected = Secret::new([P::G1::mul_base(r.expose()), public.public_key_times(r.expose())]);
        if *expected.expose() == [self.u, *shared] { Ok(key) } else { Err(CombineError::ResultInvalid) }
    }

    /// u x, encoded, if this header is an honest encryption of `key`: h r, without the secret x.
    pub(super) fn shared(&self, public: &PublicKeySet<P::G1>, key: &PayloadKey) -> Secret<Vec<u8>> {
        let shared = Secret::new(public.public_key_times(exponent::<P>(&self.coins, key).expose()));
        Secret::new(P::G1::encode(shared.expose()).as_ref().to_vec())
    }
}

/// Parses the capsule of a header and checks that u, u' and w are the same multiple of g, g' and the header's hash. These are two
/// equations of pairings, e(u, g') = e(g, u') and e(w, g') = e(hash, u'). The first is weighted with a 128-bit hash of the whole
/// header, so that two pairings check both.
pub(super) fn check<P: CipherPairing>(
    key_id: &KeyId,
    header: &[u8],
    capsule: &[u8],
) -> Result<ValidCapsule<P>, RequestError> {
    let (capsule, validity) = read::<P>(key_id, header, capsule)?;
    if P::vartime_product_is_one(&validity.pairs()) { Ok(capsule) } else { Err(RequestError::InvalidCiphertext) }
}

/// The same, with the equations unchecked.
pub(super) fn read<P: CipherPairing>(
    key_id: &KeyId,
    header: &[u8],
    capsule: &[u8],
) -> Result<(ValidCapsule<P>, Validity<P>), RequestError> {
    if capsule.len() != len::<P>() {
        return Err(RequestError::Header("its parts do not have the lengths that the suite gives them"));
    }
    let invalid = |_| RequestError::InvalidCiphertext;
    let mut rest = capsule;
    let wrap = Wrap::read(&mut rest, P::SUITE, key_id)?;
    let u = P::G1::decode(take(&mut rest, P::G1::ENCODED_LEN)?).map_err(invalid)?;
    let u_second = P::G2::decode(take(&mut rest, P::G2::ENCODED_LEN)?).map_err(invalid)?;
    let w = P::G1::decode(rest).map_err(invalid)?;

    let hash = validity_point::<P>(header.split_at(header.len().saturating_sub(rest.len())).0);
    let weights = Transcript::new("theta/bz03/weight/v1").with("header", header);
    let weight = DerivedRng::new(weights).next_u128();
    let left = w + P::G1::vartime_msm_short(&[weight], &[u]);
    let right = hash + P::G1::mul_base(&P::Scalar::from_u128(weight));
    let (envelope, _) = header.split_at(header.len().saturating_sub(capsule.len()));
    let capsule = ValidCapsule { wrap, coins: Coins::begin(P::SUITE, key_id, envelope), u, u_second };
    Ok((capsule, Validity { left, right, u_second }))
}

/// The proof of a header, all of whose points are in the groups: e(left, g') = e(right, u').
pub(super) struct Validity<P: Pairing> {
    left: First<P>,
    right: First<P>,
    u_second: Second<P>,
}

impl<P: CipherPairing> Validity<P> {
    fn pairs(&self) -> [PairOf<P>; 2] {
        [(self.left, P::G2::generator()), (-self.right, self.u_second)]
    }

    /// Whether all hold: the product of their quotients, each to the power of its own secret random weight, is one. The left sides
    /// share a pairing.
    fn vartime_all_hold(batch: &[(usize, u128, &Self)]) -> bool {
        if let [(_, _, validity)] = batch {
            return P::vartime_product_is_one(&validity.pairs());
        }
        let weights: Vec<u128> = batch.iter().map(|(_, weight, _)| *weight).collect();
        let lefts: Vec<_> = batch.iter().map(|(.., validity)| validity.left).collect();
        let left = (P::G1::vartime_msm_short(&weights, &lefts), P::G2::generator());
        let right = |(_, weight, validity): &(usize, u128, &Self)| {
            (-P::G1::vartime_msm_short(&[*weight], &[validity.right]), validity.u_second)
        };
        let pairs: Vec<_> = batch.iter().map(right).chain([left]).collect();
        P::vartime_product_is_one(&pairs)
    }
}

impl<P: CipherPairing> RequestProof for Validity<P> {
    fn vartime_false_among(&self, proofs: &[&dyn RequestProof], rng: &mut dyn CryptoRng) -> Vec<usize> {
        let Some(ours) = of_type::<Self>(proofs) else { return (0..proofs.len()).collect() };
        let batch: Vec<_> =
            ours.into_iter().enumerate().map(|(place, validity)| (place, random_weight(rng), validity)).collect();
        let mut found = Vec::new();
        find_false(&batch, &Self::vartime_all_hold, &mut |(place, ..)| found.push(*place));
        found
    }
}

/// A header with the given wrap, whose u, u' and w are moved away from their common logarithm by `skew` times the generators.
#[cfg(test)]
pub(super) fn forge<P: CipherPairing>(
    envelope: &[u8],
    wrap: [u8; 64],
    skew: [u64; 3],
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<u8> {
    let r = P::Scalar::random(rng);
    let [skew_u, skew_second, skew_w] = skew.map(P::Scalar::from_u64);
    let mut header = [envelope, &wrap].concat();
    header.extend_from_slice(P::G1::encode(&P::G1::mul_base(&(r + skew_u))).as_ref());
    header.extend_from_slice(P::G2::encode(&P::G2::mul_base(&(r + skew_second))).as_ref());
    let w = validity_point::<P>(&header) * r + P::G1::mul_base(&skew_w);
    header.extend_from_slice(P::G1::encode(&w).as_ref());
    header
}
