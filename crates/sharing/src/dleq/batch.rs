//! Many proofs in one multi-scalar multiplication.

use super::{Bases, DleqClaim, challenge};
use rand_core::CryptoRng;
use theta_groups::{Group, Scalar};

/// One claim's part of the sum that is the identity when all claims are true:
/// a (g^s - H^e - A) + b (U^s - V^e - B) with secret random weights a and b.
struct Terms<G: Group> {
    /// Position among the caller's claims.
    position: usize,
    /// Scalars of g, U, H and V; the first two are added up over all claims.
    generator: G::Scalar,
    base: G::Scalar,
    images: [(G::Scalar, G::Element); 2],
    /// -A and -B.
    commitments: [(u128, G::Element); 2],
}

/// The positions of all false claims, in order; empty when all are true.
///
/// One sum with random 128-bit weights decides about all claims at once (a wrong answer has probability 2^-128); without the
/// weights, errors of two colluding provers could cancel. If it is not the identity, halves are tried, down to the false
/// claims. The sum of the second half is the difference of two known sums, so each level costs half a batch.
pub fn vartime_verify_batch<G: Group>(
    bases: &Bases<G>,
    claims: &[DleqClaim<'_, G>],
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<usize> {
    let base = bases.base().element();
    if G::is_identity(base) {
        return (0..claims.len()).collect();
    }
    let (mut terms, mut culprits) = (Vec::with_capacity(claims.len()), Vec::new());
    for (position, claim) in claims.iter().enumerate() {
        match weigh(bases, position, claim, rng) {
            Some(weighed) => terms.push(weighed),
            None => culprits.push(position),
        }
    }
    if !terms.is_empty() {
        bisect(base, sum(base, &terms), &terms, &mut culprits);
        culprits.sort_unstable();
    }
    culprits
}

/// `None` when the claim is false without any sum: an image is the identity, or a commitment is no group element.
fn weigh<G: Group>(
    bases: &Bases<G>,
    position: usize,
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
        position,
        generator: a * proof.response,
        base: b * proof.response,
        images: [(-(a * e), image_g), (-(b * e), image)],
        commitments: [(short_a, -commitment_g), (short_b, -commitment)],
    })
}

fn weight(rng: &mut (impl CryptoRng + ?Sized)) -> u128 {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    u128::from_le_bytes(bytes)
}

/// The sum of all terms: two multi-scalar multiplications, of full and of short scalars.
fn sum<G: Group>(base: &G::Element, terms: &[Terms<G>]) -> G::Element {
    let common = [
        (terms.iter().map(|term| term.generator).sum(), G::generator()),
        (terms.iter().map(|term| term.base).sum(), *base),
    ];
    let (scalars, points): (Vec<_>, Vec<_>) = terms.iter().flat_map(|term| term.images).chain(common).unzip();
    let (weights, commitments): (Vec<_>, Vec<_>) = terms.iter().flat_map(|term| term.commitments).unzip();
    G::vartime_msm(&scalars, &points) + G::vartime_msm_short(&weights, &commitments)
}

/// Adds the false claims among `terms`, whose sum is `total`, to `culprits`.
fn bisect<G: Group>(base: &G::Element, total: G::Element, terms: &[Terms<G>], culprits: &mut Vec<usize>) {
    if G::is_identity(&total) {
        return;
    }
    if let [term] = terms {
        culprits.push(term.position);
        return;
    }
    let (left, right) = terms.split_at(terms.len() / 2);
    let left_sum = sum(base, left);
    bisect(base, left_sum, left, culprits);
    bisect(base, total - left_sum, right, culprits);
}
