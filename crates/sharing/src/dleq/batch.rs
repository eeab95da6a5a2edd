//! Many proofs in one multi-scalar multiplication.

use std::collections::{BTreeMap, BTreeSet};

use super::{Bases, ClaimSet, DleqClaim, challenge, vartime_verify};
use rand_core::CryptoRng;
use theta_groups::{Group, Scalar};

/// One claim's part of the sum that is the identity when all claims are true:
/// a (g^s - H^e - A) + b (U^s - V^e - B) with secret random weights a and b.
struct Terms<G: Group> {
    /// The claim's set, and its position there.
    place: (usize, usize),
    /// Scalars of g and U; those of g are added up over all claims, those of U over all of a set.
    generator: G::Scalar,
    base: G::Scalar,
    /// The position of H among the common points, and its scalar: claims about different bases by one prover have it in common.
    image_g: (usize, G::Scalar),
    /// The scalar of V.
    image: (G::Scalar, G::Element),
    /// -A and -B.
    commitments: [(u128, G::Element); 2],
}

/// The points that several claims have in common: the U of each set, and each H once.
struct Common<G: Group> {
    bases: Vec<G::Element>,
    images_g: Vec<G::Element>,
}

/// The positions of all false claims on one pair of bases, in order; empty when all are true.
///
/// As [`vartime_false_among`], for one set.
pub fn vartime_verify_batch<G: Group>(
    bases: &Bases<G>,
    claims: &[DleqClaim<'_, G>],
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<usize> {
    vartime_false_among(&[(bases, claims)], rng).into_iter().map(|(_, position)| position).collect()
}

/// The places of all false claims among sets of claims, each set on its own base U: the set and the position in it, in order; empty
/// when all are true.
///
/// One sum with random 128-bit weights decides about all claims at once (a wrong answer has probability 2^-128); without the
/// weights, errors of two colluding provers could cancel. If it is not the identity, halves are tried, down to the false
/// claims. The sum of the second half is the difference of two known sums, so each level costs half a batch. Where that takes less
/// ([`Group::COMPARES_COMMITMENTS`]), each claim is verified by itself.
pub fn vartime_false_among<G: Group>(
    sets: &[ClaimSet<'_, G>],
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<(usize, usize)> {
    if G::COMPARES_COMMITMENTS {
        return one_by_one(sets);
    }
    let Weighed { common, terms, mut culprits } = weigh_all(sets, rng);
    if !terms.is_empty() {
        bisect(&common, sum(&common, &terms), &terms, &|terms| terms.len() == 1, &mut culprits);
        culprits.sort_unstable();
    }
    culprits
}

/// The positions of the sets in which a claim is false, in order. As [`vartime_false_among`], and once a set is known to be false nobody looks which of its
/// claims are: whoever makes all of them false makes others compute one sum of them for it, and not as many as there are claims.
pub fn vartime_false_sets<G: Group>(sets: &[ClaimSet<'_, G>], rng: &mut (impl CryptoRng + ?Sized)) -> Vec<usize> {
    if G::COMPARES_COMMITMENTS {
        let holds = |(bases, claims): &ClaimSet<'_, G>| claims.iter().all(|claim| vartime_verify(bases, claim));
        return sets.iter().enumerate().filter(|(_, set)| !holds(set)).map(|(set, _)| set).collect();
    }
    let Weighed { common, mut terms, mut culprits } = weigh_all(sets, rng);
    let found: BTreeSet<usize> = culprits.iter().map(|(set, _)| *set).collect();
    terms.retain(|term| !found.contains(&term.place.0));
    if !terms.is_empty() {
        let is_one_set = |terms: &[Terms<G>]| {
            let ends = terms.first().zip(terms.last());
            ends.is_some_and(|(first, last)| first.place.0 == last.place.0)
        };
        bisect(&common, sum(&common, &terms), &terms, &is_one_set, &mut culprits);
    }
    let sets: BTreeSet<usize> = culprits.into_iter().map(|(set, _)| set).collect();
    sets.into_iter().collect()
}

/// What becomes of claims: see [`weigh_all`].
struct Weighed<G: Group> {
    common: Common<G>,
    terms: Vec<Terms<G>>,
    culprits: Vec<(usize, usize)>,
}

/// The terms of all claims, in order, and the places of those that are false without any sum.
fn weigh_all<G: Group>(sets: &[ClaimSet<'_, G>], rng: &mut (impl CryptoRng + ?Sized)) -> Weighed<G> {
    let mut culprits = Vec::new();
    let mut terms = Vec::with_capacity(sets.iter().map(|(_, claims)| claims.len()).sum());
    let bases = sets.iter().map(|(bases, _)| *bases.base().element()).collect();
    let mut common = Common::<G> { bases, images_g: Vec::new() };
    let mut known = BTreeMap::new();
    for (set, (bases, claims)) in sets.iter().enumerate() {
        let base_is_bad = G::is_identity(bases.base().element());
        for (position, claim) in claims.iter().enumerate() {
            let image_g = *known.entry(claim.image_g.bytes()).or_insert_with(|| {
                common.images_g.push(*claim.image_g.element());
                common.images_g.len() - 1
            });
            let place = (set, position);
            match weigh(bases, (place, image_g), claim, rng).filter(|_| !base_is_bad) {
                Some(weighed) => terms.push(weighed),
                None => culprits.push(place),
            }
        }
    }
    Weighed { common, terms, culprits }
}

fn one_by_one<G: Group>(sets: &[ClaimSet<'_, G>]) -> Vec<(usize, usize)> {
    let of_set = |(set, (bases, claims)): (usize, &ClaimSet<'_, G>)| -> Vec<(usize, usize)> {
        let verified = claims.iter().map(|claim| vartime_verify(bases, claim)).enumerate();
        verified.filter(|(_, holds)| !holds).map(|(position, _)| (set, position)).collect()
    };
    sets.iter().enumerate().flat_map(of_set).collect()
}

/// `None` when the claim is false without any sum: an image is the identity, or a commitment is no group element.
fn weigh<G: Group>(
    bases: &Bases<G>,
    (place, slot): ((usize, usize), usize),
    claim: &DleqClaim<'_, G>,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Option<Terms<G>> {
    let (image_g, image) = (*claim.image_g.element(), *claim.image.element());
    if G::is_identity(&image_g) || G::is_identity(&image) {
        return None;
    }
    let proof = claim.proof;
    let commitment_g = G::decode(proof.commitment_g.as_ref()).ok()?;
    let commitment = G::decode(proof.commitment.as_ref()).ok()?;
    let statement = bases.statement(claim.context, &claim.image_g, &claim.image);
    let e = challenge::<G>(statement, &proof.commitment_g, &proof.commitment);
    let (short_a, short_b) = (weight(rng), weight(rng));
    let (a, b) = (G::Scalar::from_u128(short_a), G::Scalar::from_u128(short_b));
    Some(Terms {
        place,
        generator: a * proof.response,
        base: b * proof.response,
        image_g: (slot, -(a * e)),
        image: (-(b * e), image),
        commitments: [(short_a, -commitment_g), (short_b, -commitment)],
    })
}

fn weight(rng: &mut (impl CryptoRng + ?Sized)) -> u128 {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    u128::from_le_bytes(bytes)
}

/// The sum of all terms: two multi-scalar multiplications, of full and of short scalars.
fn sum<G: Group>(common: &Common<G>, terms: &[Terms<G>]) -> G::Element {
    let generator = (terms.iter().map(|term| term.generator).sum(), G::generator());
    let mut bases = vec![G::Scalar::ZERO; common.bases.len()];
    let mut images_g = vec![G::Scalar::ZERO; common.images_g.len()];
    for Terms { place: (set, _), base, image_g: (slot, scalar), .. } in terms {
        if let Some(sum) = bases.get_mut(*set) {
            *sum += *base;
        }
        if let Some(sum) = images_g.get_mut(*slot) {
            *sum += *scalar;
        }
    }
    let shared = bases.into_iter().zip(common.bases.iter().copied());
    let shared = shared.chain(images_g.into_iter().zip(common.images_g.iter().copied()));
    // What has no part in these terms costs nothing.
    let shared = shared.filter(|(scalar, _)| *scalar != G::Scalar::ZERO);
    let images = terms.iter().map(|term| term.image);
    let (scalars, points): (Vec<_>, Vec<_>) = images.chain(shared).chain([generator]).unzip();
    let (weights, commitments): (Vec<_>, Vec<_>) = terms.iter().flat_map(|term| term.commitments).unzip();
    G::vartime_msm(&scalars, &points) + G::vartime_msm_short(&weights, &commitments)
}

/// Adds the false claims among `terms`, whose sum is `total`, to `culprits`: one of those that are not to be told apart (`is_enough`).
fn bisect<G: Group>(
    common: &Common<G>,
    total: G::Element,
    terms: &[Terms<G>],
    is_enough: &impl Fn(&[Terms<G>]) -> bool,
    culprits: &mut Vec<(usize, usize)>,
) {
    if G::is_identity(&total) {
        return;
    }
    if is_enough(terms) {
        culprits.extend(terms.first().map(|term| term.place));
        return;
    }
    let (left, right) = terms.split_at(terms.len() / 2);
    let left_sum = sum(common, left);
    bisect(common, left_sum, left, is_enough, culprits);
    bisect(common, total - left_sum, right, is_enough, culprits);
}
