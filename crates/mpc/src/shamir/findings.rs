//! What follows of a masked opening that failed ([`super::masked`]): who has lied, and of which two one has.
//!
//! Nobody honest is named, and no two honest parties are in dispute, whatever others say and to whom; `spec/mpc.md` has the argument.

use std::collections::BTreeSet;

use theta_groups::{Group, Scalar as _, Transcript};

use super::{
    Shamir,
    interpolation::Dealing,
    masked::{NOTHING, Record},
};
use crate::Security;

/// Bytes of a hash of what a dealer showed. All of SHA-512 / 256: who found two statements with one hash could show an honest party one by which another honest one has lied.
const HASH: usize = 32;
const CLAIM: usize = 4;

/// What a dealer shows.
pub(super) struct Statement<G: Group> {
    /// The claim that it heard of each party.
    claims: Vec<u32>,
    /// For each of them G times the t + 1 numbers that it chose for the polynomial of that value.
    chosen: Vec<Vec<G::Element>>,
    hash: [u8; HASH],
}

impl<G: Group> Statement<G> {
    /// `chosen`: for each claim as many elements.
    pub(super) fn encode(claims: &[u32], chosen: &[G::Element]) -> Vec<u8> {
        let claims = claims.iter().flat_map(|claim| claim.to_be_bytes());
        claims.chain(G::encode_batch(chosen).iter().flat_map(|code| code.as_ref().to_vec())).collect()
    }

    /// `None` if something is no element.
    pub(super) fn decode(n: usize, bytes: &[u8]) -> Option<Self> {
        let (claims, elements) = bytes.split_at_checked(n * CLAIM)?;
        let claims =
            claims.chunks(CLAIM).map(|claim| claim.try_into().map(u32::from_be_bytes)).collect::<Result<_, _>>();
        let elements: Option<Vec<G::Element>> =
            elements.chunks(G::ENCODED_LEN).map(|code| G::decode_allowing_identity(code).ok()).collect();
        let elements = elements?;
        let each = elements.len().checked_div(n).filter(|each| *each > 0)?;
        let hash = Transcript::new("theta/mpc/dealings/v1").with("statement", bytes).finish32();
        Some(Self { claims: claims.ok()?, chosen: elements.chunks(each).map(<[_]>::to_vec).collect(), hash })
    }

    fn claim(&self, position: usize) -> u32 {
        self.claims.get(position).copied().unwrap_or(NOTHING)
    }

    /// G times a party's share of the polynomial for a claim.
    fn share(&self, dealing: &Dealing<G::Scalar>, claimant: usize, distance: usize, position: usize) -> G::Element {
        let chosen = self.chosen.get(claimant).map_or(&[][..], Vec::as_slice);
        if (1..=dealing.degree).contains(&distance) {
            return chosen.get(distance).copied().unwrap_or_else(G::identity);
        }
        let computed = dealing.computed.iter().find(|(of, _)| *of == position);
        computed.map_or_else(G::identity, |(_, coefficients)| G::vartime_msm(coefficients, chosen))
    }
}

/// What a party makes of the statements, in the last step.
#[derive(Clone)]
pub(super) struct Verdict {
    /// Hashes of the statements that it was shown, by dealer.
    hashes: Vec<[u8; HASH]>,
    /// Dealers that showed something else than they had dealt to it.
    dealers: Vec<bool>,
    /// Parties whose shares were false, if all dealers showed the truth.
    sharers: Vec<bool>,
}

impl Verdict {
    pub(super) fn encode(&self) -> Vec<u8> {
        let flags = self.dealers.iter().chain(&self.sharers).map(|flag| u8::from(*flag));
        self.hashes.iter().flatten().copied().chain(flags).collect()
    }

    /// Whatever is no zero is a yes.
    pub(super) fn decode(n: usize, bytes: &[u8]) -> Self {
        let (hashes, flags) = bytes.split_at_checked(n * HASH).unwrap_or((&[], &[]));
        let (dealers, sharers) = flags.split_at_checked(n).unwrap_or((&[], &[]));
        let yes = |flags: &[u8]| flags.iter().map(|flag| *flag != 0).collect();
        let hashes = hashes.chunks(HASH).map(|hash| hash.try_into().unwrap_or_default()).collect();
        Self { hashes, dealers: yes(dealers), sharers: yes(sharers) }
    }
}

fn says(list: &[bool], position: usize) -> bool {
    list.get(position).copied().unwrap_or(false)
}

/// Who has lied for certain, and of which two one has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) liars: BTreeSet<usize>,
    pub(super) disputes: BTreeSet<[usize; 2]>,
}

/// The statements, as one party sees them.
pub(super) struct Views<G: Group> {
    local: usize,
    /// The claims as this party heard them.
    claims: Vec<u32>,
    statements: Vec<Statement<G>>,
    /// By dealer: whether it showed what it had dealt to this party.
    fits: Vec<bool>,
    /// For each claim that all heard alike, by party: what its share should be, times G.
    expected: Vec<(usize, Vec<G::Element>)>,
}

impl<G: Group> Views<G> {
    /// `points`: G times each party's share of the factor.
    pub(super) fn new<M: Security>(
        black_box: &Shamir<G, M>,
        points: &[G::Element],
        claims: &[u32],
        record: &Record<G::Scalar>,
        statements: Vec<Statement<G>>,
    ) -> Self {
        let (n, local) = (black_box.party.n(), black_box.party.position());
        let numbers: Vec<u64> = (0..n).map(|position| black_box.point(position)).collect();
        let dealing = |dealer| Dealing::<G::Scalar>::new(dealer, &numbers, black_box.party.t());
        let dealings: Vec<_> = (0..n).map(dealing).collect();
        let mut fits = vec![true; n];
        let mut expected = Vec::new();
        for (claimant, claim) in claims.iter().enumerate().filter(|(_, claim)| **claim != NOTHING) {
            let (batch, row) = black_box.batch_of(*claim);
            let mut shares = points.to_vec();
            for (dealer, (statement, dealing)) in statements.iter().zip(&dealings).enumerate() {
                if statement.claim(claimant) != *claim {
                    continue;
                }
                let weights = black_box.coefficients.vandermonde.get(row);
                let weight = weights.and_then(|row| row.get(dealer)).copied().unwrap_or(G::Scalar::ZERO);
                for (position, expected) in shares.iter_mut().enumerate() {
                    let distance = (position + n - dealer).checked_rem(n).unwrap_or(0);
                    let share = statement.share(dealing, claimant, distance, position);
                    if position == local {
                        let own = record.received.get(dealer).and_then(|shares| shares.expose().get(batch));
                        let is_same = own.is_some_and(|own| G::mul_base(own) == share);
                        fits.iter_mut().skip(dealer).take(1).for_each(|fits| *fits &= is_same);
                    }
                    *expected = *expected - share * weight;
                }
            }
            if statements.iter().all(|statement| statement.claim(claimant) == *claim) {
                expected.push((claimant, shares));
            }
        }
        Self { local, claims: claims.to_vec(), statements, fits, expected }
    }

    /// What this party says, of the shares that it was shown.
    pub(super) fn verdict(&self, shares: &[Vec<G::Scalar>]) -> Verdict {
        let share = |position: usize, claimant: usize| {
            let place = usize::try_from(*self.claims.get(claimant)?).ok()?;
            shares.get(position)?.get(place)
        };
        let is_right = |position: usize| {
            self.expected.iter().all(|(claimant, expected)| {
                share(position, *claimant).is_some_and(|share| expected.get(position) == Some(&G::mul_base(share)))
            })
        };
        Verdict {
            hashes: self.statements.iter().map(|statement| statement.hash).collect(),
            dealers: self.fits.iter().map(|fits| !fits).collect(),
            sharers: (0..self.fits.len()).map(|position| !is_right(position)).collect(),
        }
    }

    /// What follows of all verdicts, this party's own among them.
    pub(super) fn findings(&self, verdicts: &[Verdict]) -> Findings {
        let mut findings = Findings::default();
        let Some(own) = verdicts.get(self.local) else { return findings };
        let others = || (0..verdicts.len()).filter(|position| *position != self.local);
        // Of two one has lied; this party has not.
        let dispute = |findings: &mut Findings, one: usize, other: usize| match (one == self.local, other == self.local)
        {
            (false, false) => drop(findings.disputes.insert([one.min(other), one.max(other)])),
            (true, false) => drop(findings.liars.insert(other)),
            (false, true) => drop(findings.liars.insert(one)),
            (true, true) => {}
        };
        for other in others() {
            if says(&own.dealers, other) {
                findings.liars.insert(other);
            }
            // It says that somebody claims something else than that told this party.
            let Some(statement) = self.statements.get(other) else { continue };
            let differs = |claimant: &usize| self.claims.get(*claimant).copied() != Some(statement.claim(*claimant));
            for claimant in (0..verdicts.len()).filter(differs) {
                if claimant == other {
                    findings.liars.insert(other);
                } else {
                    dispute(&mut findings, other, claimant);
                }
            }
        }
        let against: Vec<Vec<usize>> =
            verdicts.iter().enumerate().map(|(position, verdict)| Self::against(own, position, verdict)).collect();
        for (position, against) in against.iter().enumerate() {
            against.iter().for_each(|other| dispute(&mut findings, position, *other));
        }
        // Whoever sees the same dealings as this party, and has no objection, has the shares that they make.
        let agrees = |position: usize| against.get(position).is_some_and(Vec::is_empty);
        for (position, verdict) in verdicts.iter().enumerate().filter(|(position, _)| agrees(*position)) {
            if says(&own.sharers, position) && position != self.local {
                findings.liars.insert(position);
            }
            let accused: Vec<usize> =
                (0..verdicts.len()).filter(|other| *other != position && says(&verdict.sharers, *other)).collect();
            // Whoever claims that shares contradict each other finds a false one.
            let claims = self.expected.iter().any(|(claimant, _)| *claimant == position);
            if claims && accused.is_empty() && position != self.local {
                findings.liars.insert(position);
            }
            accused.iter().filter(|other| agrees(**other)).for_each(|other| dispute(&mut findings, position, *other));
        }
        // Where a liar is known, who else contradicts it says nothing more.
        let Findings { liars, disputes } = findings;
        let disputes = disputes.into_iter().filter(|pair| !pair.iter().any(|party| liars.contains(party))).collect();
        Findings { liars, disputes }
    }

    /// Whom a party contradicts: dealers that showed it something else than this party, or than what they had dealt to it.
    fn against(own: &Verdict, position: usize, verdict: &Verdict) -> Vec<usize> {
        let contradicts =
            |dealer: &usize| own.hashes.get(*dealer) != verdict.hashes.get(*dealer) || says(&verdict.dealers, *dealer);
        (0..own.hashes.len()).filter(|dealer| *dealer != position).filter(contradicts).collect()
    }
}
