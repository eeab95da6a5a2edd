//! This node follows the members that the ledger has.

use theta_ledger::founding::Card;
use theta_names::NodeId;

use super::work::{Record, Work};
use super::{Custodian, CustodyEffect};
use crate::Roster;
use crate::seating::{Members, Standing};

/// Ticks in which all peers hear that a machine has a member's place.
const NEW: u64 = 40;

impl Custodian {
    /// The members as the ledger has them; `None` in a group that was not founded with cards.
    #[must_use]
    pub fn members(&self) -> Option<Members> {
        let own = self.keys.as_ref().map(|keys| keys.member().verifying_key().bytes().to_vec());
        Members::of(self.ledger.as_ref()?, self.local, own.as_deref())
    }

    /// The group as the ledger has it. A node that has read nothing yet knows from its file whom to ask.
    pub(super) fn roster_of_ledger(&self) -> Option<Roster> {
        let state = self.ledger()?;
        if state.height() == 0 || state.seats().values().any(|seat| seat.card().is_none()) {
            return None;
        }
        let nodes = state.members().iter().map(theta_ledger::Member::node).collect();
        Some(Roster { nodes, members: state.members().to_vec(), ..self.group.clone() })
    }

    /// Whether this machine votes by a warrant.
    pub(super) fn stands_in(&self) -> bool {
        let (Some(members), Some(keys)) = (&self.followed, &self.keys) else { return false };
        let own = keys.member().verifying_key().bytes();
        let is_own = |(node, card): &(NodeId, Card)| *node == self.local && own == card.content().ceremony_key;
        members.standing == Standing::Expected && members.stand_ins.iter().any(is_own)
    }

    /// Whether this machine has come to its number so lately that peers may not have heard of it. What such peers remember is the store of the machine that was
    /// there before. So a contradiction by them does not mean that this store was set back; and until they have heard, they do not confirm it either.
    pub(super) fn is_new_here(&self) -> bool {
        let expected = self.followed.as_ref().is_some_and(|members| members.standing == Standing::Expected);
        expected || (self.seated != 0 && self.ticks < self.seated.saturating_add(NEW))
    }

    /// After entries, and after warrants: whoever speaks to the members, or counts them, does so with those of now.
    pub(super) fn follow_members(&mut self, work: &mut Work) {
        let Some(members) = self.members() else { return };
        if let Some(roster) = self.roster_of_ledger() {
            let identity = |roster: &Roster, node: NodeId| roster.member(node).cloned();
            let left =
                self.group.nodes.iter().filter(|node| identity(&self.group, **node) != identity(&roster, **node));
            let left: Vec<NodeId> = left.copied().collect();
            // Another machine in a member's place has another store: what was seen of the one before does not bind it.
            for node in left {
                self.witnesses.forget(node);
                work.records.push(Record::ForgetPeer(node.get()));
            }
            if let Some(state) = self.ledger.as_ref().map(theta_ledger::Replica::state) {
                self.seating.follow(roster.clone(), state);
            }
            self.group = roster;
        }
        if self.followed.as_ref() != Some(&members) {
            let before = self.followed.replace(members.clone());
            let stood_in = before.as_ref().map_or(&[][..], |before| &before.stand_ins);
            // The machine that votes for a member now has a store of its own, too.
            for (node, _) in members.stand_ins.iter().filter(|stand_in| !stood_in.contains(stand_in)) {
                self.witnesses.forget(*node);
                work.records.push(Record::ForgetPeer(node.get()));
            }
            if before.is_some_and(|before| before.standing != members.standing) {
                self.seated = self.ticks;
            }
            work.effects.push(CustodyEffect::Members(Box::new(members)));
        }
    }
}
