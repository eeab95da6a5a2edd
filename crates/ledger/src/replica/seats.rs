//! What changes of the members are to a replica: whose votes count, and who votes in the place of a machine that is gone.

use std::collections::BTreeMap;

use theta_agreement::{Ballot, Electorate, VoteCertificate, VoteKind};
use theta_names::NodeId;

use super::message::Message;
use super::pending::{Source, Terms};
use super::{Effect, Memory, Recipient, Replica, Said};
use crate::founding::Card;
use crate::sitting::Sitting;
use crate::{Action, CertifiedEntry, Entry, MemberChange, Warrant, WarrantRefusal};

/// Warrants for the same members that are kept: the machine in a member's place may be gone, too.
const MOST_WARRANTS: usize = 4;

impl Replica {
    /// Takes a warrant that an operator brought, and tells the others.
    pub(super) fn bring_warrant(&mut self, warrant: Warrant, out: &mut Vec<Effect>) {
        match self.take_warrant(warrant) {
            Ok(()) => self.tell_warrants(out),
            Err(refusal) => out.push(Effect::Unserving(refusal)),
        }
    }

    pub(super) fn tell_warrants(&self, out: &mut Vec<Effect>) {
        for warrant in &self.warrants {
            out.push(Effect::Send(Recipient::All, Message::Warrant(Box::new(warrant.clone())).encode()));
        }
    }

    /// From now on the machines of a warrant vote at this height, and those that they stand in for do not.
    pub(super) fn take_warrant(&mut self, warrant: Warrant) -> Result<(), WarrantRefusal> {
        if self.warrants.contains(&warrant) {
            return Ok(());
        }
        self.state.check_warrant(&warrant)?;
        let most = self.state.most_stand_ins();
        // For the same members, of one more machine; for others, those that can be stood in for are taken.
        if self.warrants.len() >= MOST_WARRANTS || self.warrants.iter().any(|known| !known.is_for_the_same(&warrant)) {
            return Err(WarrantRefusal::TooMany { got: most.saturating_add(1), most });
        }
        self.warrants.push(warrant);
        self.sitting = self.state.under_warrants(&self.warrants)?;
        let keys = self.keys.as_ref().filter(|_| self.memory == Memory::Kept);
        match keys.filter(|keys| self.sitting.seats(keys)) {
            Some(keys) => self.agreement.vote_as(&self.sitting, keys.party()),
            None => self.agreement.abstain(),
        }
        for stand_in in self.warrants.iter().flat_map(Warrant::stand_ins) {
            // What the machine that is gone has told is not what the other one has.
            self.peers.forget(stand_in.node);
        }
        self.ignored.clear();
        Ok(())
    }

    /// The machines that vote in the place of members' now, by rising number.
    #[must_use]
    pub fn stand_ins(&self) -> Vec<(NodeId, Card)> {
        let gone = |node: NodeId, key: &[u8; 32]| {
            let current = self.state.seats().get(&node).and_then(|seat| seat.card());
            current.is_some_and(|card| card.content().ceremony_key == *key)
        };
        let all = self.warrants.iter().flat_map(Warrant::stand_ins).filter(|it| gone(it.node, &it.gone));
        // Of several in one place the last that was heard of.
        all.map(|it| (it.node, it.card.clone())).collect::<BTreeMap<_, _>>().into_iter().collect()
    }

    /// The highest height at which this node may have precommitted an entry. One that forgot what it has said does not know.
    pub(super) fn spoken(&self) -> Option<u64> {
        let precommitted =
            |(ballot, said): (&Ballot, &Said)| ballot.kind == VoteKind::Precommit && !said.vote.body.is_empty();
        match self.memory {
            Memory::Lost | Memory::From(_) => None,
            Memory::Kept | Memory::Unconfirmed if self.said.iter().any(precommitted) => Some(self.sitting.height()),
            Memory::Kept | Memory::Unconfirmed => Some(self.state.height()),
        }
    }

    /// How many of the members that decide the next entry have told, since this node's start, that they have precommitted none after
    /// this node's last.
    pub(super) fn level_peers(&self) -> usize {
        let own = self.state.height();
        let members = self.sitting.members().iter().map(|party| party.node());
        members.filter(|node| self.peers.spoken(*node).is_some_and(|spoken| spoken <= own)).count()
    }

    /// Wants those replaced that are stood in for.
    pub(super) fn expect_replacements(&mut self) {
        let Some(warrant) = self.warrants.last() else { return };
        let reason = warrant.encode();
        for stand_in in warrant.stand_ins() {
            let (node, card) = (stand_in.node.get(), stand_in.card.clone());
            let action = Action::Members(MemberChange::Replace { node, card });
            if let Ok(terms) = Terms::of(&self.state, &action, &reason) {
                self.pending.insert(Source::Expected, (action, reason.clone()), terms, self.ticks);
            }
        }
    }

    /// The members that decide the next entry, with the warrants that serve on.
    pub(super) fn next_sitting(&mut self) -> Sitting {
        let state = &self.state;
        self.warrants.retain(|warrant| state.check_warrant(warrant).is_ok());
        self.state.under_warrants(&self.warrants).unwrap_or_else(|_| self.state.sitting())
    }

    /// A decided entry, with the warrant under which it was decided if it takes one.
    pub(super) fn certified(&self, entry: Entry, certificate: VoteCertificate) -> CertifiedEntry {
        let serves = |warrant: &&Warrant| {
            let sitting = self.state.under_warrants(core::slice::from_ref(*warrant));
            sitting.is_ok_and(|sitting| certificate.is_valid(&sitting))
        };
        let needed = !self.warrants.is_empty() && !certificate.is_valid(&self.state.sitting());
        let warrant = if needed { self.warrants.iter().find(serves).cloned().map(Box::new) } else { None };
        CertifiedEntry { entry, certificate, warrant }
    }

    /// What a machine said that is no member's any more is not what the one in its place said.
    pub(super) fn forget_machines(&mut self, action: &Action) {
        if let Action::Members(MemberChange::Replace { node, .. } | MemberChange::Remove { node }) = action
            && let Ok(node) = NodeId::try_from(*node)
        {
            self.peers.forget(node);
        }
    }
}
