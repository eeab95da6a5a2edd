//! Who decides.

use std::collections::BTreeMap;

use theta_rounds::PartyId;

use crate::{Ballot, Digest, Signature};

/// The last view of a decision that may end without a value: after a day of ticks there is something else wrong than the leader.
const LAST_VIEW: u32 = 10_000;

/// The members that make one decision, and how what they sign is checked.
pub trait Electorate {
    /// All who vote.
    fn members(&self) -> &[PartyId];

    /// How many of them may do what they like.
    fn faulty(&self) -> usize;

    /// The members in the order of their turns to propose.
    fn turns(&self) -> Vec<PartyId> {
        self.members().to_vec()
    }

    /// The place in that order of the one whose turn it is in view 0, modulo their number.
    fn first_leader(&self) -> usize;

    /// What stands for a value in votes.
    fn value_digest(&self, value: &[u8]) -> Digest;

    /// Whether it is the author's signature on what it says in that slot, in this decision and no other.
    fn is_signed(&self, author: PartyId, ballot: Ballot, body: &[u8], signature: &Signature) -> bool;

    /// Whether all these are their authors' signatures on that body. Implementations may check them together.
    fn are_signed(&self, ballot: Ballot, body: &[u8], signatures: &BTreeMap<PartyId, Signature>) -> bool {
        signatures.iter().all(|(author, signature)| self.is_signed(*author, ballot, body, signature))
    }

    /// The last view. Where a decision cannot be given up, there is none.
    fn last_view(&self) -> u32 {
        LAST_VIEW
    }

    /// How many members make a quorum.
    fn quorum(&self) -> usize {
        quorum(self.members().len(), self.faulty())
    }
}

/// How many of n members make a quorum if t of them may do what they like: any two quorums have an honest member in common, and
/// t + 1 honest ones are in each.
///
/// Where n >= 3t + 1, the n - t honest ones are a quorum. Below that, nothing false can come about either, but it may take more than
/// the honest ones for anything to come about: all n of them at worst.
#[must_use]
pub fn quorum(n: usize, t: usize) -> usize {
    n.min(usize::midpoint(n, t).max(2 * t) + 1)
}

#[cfg(test)]
mod tests {
    use super::quorum;

    #[test]
    fn two_quorums_have_an_honest_member_in_common() {
        for n in 1..=200_usize {
            for t in 0..n {
                let q = quorum(n, t);
                assert!(q <= n);
                // The overlap of two quorums is 2q - n at least.
                assert!(q == n || 2 * q - n > t, "{n} {t}");
                // The honest ones alone are a quorum where they can be.
                assert!(n < 3 * t + 1 || q <= n - t, "{n} {t}");
                assert!(q == n || q > 2 * t, "{n} {t}");
            }
        }
    }
}
