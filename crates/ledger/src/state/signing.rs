//! What an operator may sign besides what it has signed before.

use std::collections::BTreeSet;

use theta_agreement::Member;
use theta_names::NodeId;

use super::LedgerState;
use crate::{OperatorId, Warrant, WarrantRefusal};

/// A warrant that an operator has signed, and how much of the ledger it knew then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedWarrant {
    /// The height of the last entry that it had checked.
    pub height: u64,
    /// The warrant. Whose signatures it has does not matter.
    pub warrant: Warrant,
}

/// Why an operator does not sign a warrant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningRefusal {
    /// It could not serve.
    #[error("{0}")]
    Warrant(#[from] WarrantRefusal),
    /// The key is of no present member.
    #[error("this operator's key is of no present member of the group")]
    NoOperator,
    /// The ledger that it would sign by is older than one that it has signed by.
    #[error("this is the ledger up to entry {got}, and you have signed by one up to entry {known}: bring a newer one")]
    OldLedger {
        /// The height that is given.
        got: u64,
        /// The height that it knew before.
        known: u64,
    },
    /// It is for another height than the next one.
    #[error(
        "it is for entry {from} and after, and your ledger ends with entry {height}: a warrant is signed for the very next entry; bring the newest \
         ledger, or have the warrant made anew"
    )]
    OtherHeight {
        /// From which height it is.
        from: u64,
        /// The height of the ledger.
        height: u64,
    },
    /// One of its machines has replaced the one that is gone.
    #[error("node {0} is another machine already, or is no member: have the warrant made anew, for the others")]
    Replaced(NodeId),
    /// With what it has signed, too many machines could vote in others' places.
    #[error(
        "you have signed that another machine may vote in the place of {}, and this is for {}: two such signatures could let the group decide \
         two things at once; ask for one warrant for all of these, or wait until the group has replaced the first", Nodes(.signed), Nodes(.asked)
    )]
    Besides {
        /// For whom it has signed.
        signed: BTreeSet<NodeId>,
        /// For whom it should sign now.
        asked: BTreeSet<NodeId>,
    },
}

struct Nodes<'a>(&'a BTreeSet<NodeId>);

impl core::fmt::Display for Nodes<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if self.0.len() == 1 { "node" } else { "nodes" })?;
        self.0.iter().enumerate().try_for_each(|(place, node)| {
            let before = if place == 0 { " " } else { ", " };
            write!(f, "{before}{node}")
        })
    }
}

impl LedgerState {
    /// The number of the member that this operator answers for.
    #[must_use]
    pub fn node_of_operator(&self, operator: &OperatorId) -> Option<NodeId> {
        let of = |seat: &super::Seat| seat.card().is_some_and(|card| card.content().operator_key == *operator);
        self.seats().iter().find(|(_, seat)| of(seat)).map(|(node, _)| *node)
    }

    /// Whether a warrant could serve for the next entry once a quorum of the operators has signed it.
    ///
    /// # Errors
    /// [`WarrantRefusal`], never for its signatures.
    pub fn check_unsigned_warrant(&self, warrant: &Warrant) -> Result<(), WarrantRefusal> {
        self.check_warrant_place(warrant)?;
        self.pending_stand_ins(warrant).map(drop)
    }

    /// Whether an operator that has signed these warrants may sign this one as well, and as which member. It may if, of any two, one is for
    /// all the members that the other is for and that are not replaced yet. Then both together are for no more than one of them alone,
    /// whatever becomes of the group, and no certificate is taken under a warrant for too many (`spec/ledger.md`, Small groups). And it may
    /// for the next height of the ledger that it has checked, and not from an earlier one, at which others that it has signed for were not
    /// replaced yet.
    ///
    /// An older ledger than one that was signed by would hide whom the older signatures are still for.
    ///
    /// # Errors
    /// [`SigningRefusal`].
    pub fn check_signing(
        &self,
        operator: &OperatorId,
        warrant: &Warrant,
        before: &[SignedWarrant],
    ) -> Result<NodeId, SigningRefusal> {
        let node = self.node_of_operator(operator).ok_or(SigningRefusal::NoOperator)?;
        self.check_warrant_place(warrant)?;
        let here = || before.iter().filter(|signed| signed.warrant.ledger() == self.id());
        let known = here().map(|signed| signed.height).max().unwrap_or_default();
        if known > self.height() {
            return Err(SigningRefusal::OldLedger { got: self.height(), known });
        }
        if warrant.from_height() != self.height().saturating_add(1) {
            return Err(SigningRefusal::OtherHeight { from: warrant.from_height(), height: self.height() });
        }
        let asked: BTreeSet<NodeId> = self.pending_stand_ins(warrant)?.iter().map(Member::node).collect();
        if let Some(stand_in) = warrant.stand_ins().iter().find(|stand_in| !asked.contains(&stand_in.node)) {
            return Err(SigningRefusal::Replaced(stand_in.node));
        }
        // One that has ended by the ledger's own time decides nothing any more.
        for signed in here().filter(|signed| signed.warrant.until() >= self.time()) {
            let signed = self.still_for(&signed.warrant);
            if !signed.is_subset(&asked) && !asked.is_subset(&signed) {
                return Err(SigningRefusal::Besides { signed, asked });
            }
        }
        Ok(node)
    }

    /// A warrant with all true signatures that copies of it have, and the members in whose names some of them have false ones.
    #[must_use]
    pub fn gathered(&self, copies: &[Warrant]) -> Option<(Warrant, BTreeSet<NodeId>)> {
        let first = copies.first()?;
        let mut gathered = Warrant::unsigned(first);
        let (signed, mut false_ones) = (gathered.signed(), BTreeSet::new());
        for copy in copies.iter().filter(|copy| copy.is_same(first)) {
            for (node, signature) in copy.signatures() {
                let card = self.seats().get(node).and_then(|seat| seat.card());
                if card.is_some_and(|card| card.content().operator_key.vartime_verify(&signed, signature)) {
                    gathered.add_signature(*node, *signature);
                } else {
                    false_ones.insert(*node);
                }
            }
        }
        Some((gathered, false_ones))
    }

    /// The members that a warrant is for and that are not replaced yet, whether it could serve or not.
    fn still_for(&self, warrant: &Warrant) -> BTreeSet<NodeId> {
        let gone =
            |node: &NodeId| self.seats().get(node).and_then(|seat| seat.card()).map(|card| card.content().ceremony_key);
        let all = warrant.stand_ins().iter();
        all.filter(|stand_in| gone(&stand_in.node) == Some(stand_in.gone)).map(|stand_in| stand_in.node).collect()
    }
}
