//! What changes of the members are to a replica: whose votes count, and who votes in the place of a machine that is gone.

use std::borrow::Cow;
use std::collections::BTreeMap;

use theta_agreement::{Ballot, Digest, Electorate, VoteCertificate, VoteKind};
use theta_names::NodeId;
use theta_rounds::PartyId;

use super::message::Message;
use super::pending::{Source, Terms};
use super::{Effect, Memory, Recipient, Replica, STATUS_TICKS, Said, judging::APART};
use crate::founding::Card;
use crate::sitting::Sitting;
use crate::{Action, CertifiedEntry, Entry, MemberChange, StandIn, Warrant, WarrantRefusal};

fn replacement(stand_in: &StandIn) -> Action {
    Action::Members(MemberChange::Replace { node: stand_in.node.get(), card: stand_in.card.clone() })
}

impl Replica {
    /// Goes on under the warrants that [`Effect::Warrants`] gave out last. Those that serve no more are dropped, and need not be kept.
    #[must_use]
    pub fn under(mut self, warrants: Vec<Warrant>) -> Self {
        let before = warrants.len();
        for warrant in warrants {
            // No clock has been read yet: what has ended since the last entry serves until the first ticks, in which nobody votes by it for
            // entries of after its end.
            drop(self.take_warrant(warrant));
        }
        self.unkept = self.warrants.len() != before;
        // What was said under them is read with them.
        self.begin_again();
        self
    }

    /// Tells the host which warrants serve, if others did before.
    pub(super) fn keep_warrants(&mut self, out: &mut Vec<Effect>) {
        if core::mem::take(&mut self.unkept) {
            out.push(Effect::Warrants(self.warrants.clone()));
        }
    }

    /// Takes a warrant that an operator brought, and tells the others.
    pub(super) fn bring_warrant(&mut self, warrant: Warrant, out: &mut Vec<Effect>) {
        match self.take_warrant(warrant.clone()) {
            Ok(true) => out.push(Effect::Send(Recipient::All, Message::Warrant(Box::new(warrant)).encode())),
            Ok(false) => {}
            Err(refusal) => out.push(Effect::Unserving(refusal)),
        }
    }

    /// Tells the others of all warrants, another one first each time: of each peer one that is news is looked at in a tick.
    pub(super) fn tell_warrants(&self, out: &mut Vec<Effect>) {
        let turn = usize::try_from(self.ticks / STATUS_TICKS).unwrap_or(0);
        let first = turn.checked_rem(self.warrants.len()).unwrap_or(0);
        for warrant in self.warrants.iter().cycle().skip(first).take(self.warrants.len()) {
            out.push(Effect::Send(Recipient::All, Message::Warrant(Box::new(warrant.clone())).encode()));
        }
    }

    /// The latest time that an entry may have which is decided under the warrants.
    pub(super) fn latest(&self) -> u64 {
        self.warrants.iter().map(Warrant::until).min().unwrap_or(u64::MAX)
    }

    /// Whose votes count for an entry of this time: not those by warrants that have ended by then, which nobody who follows would take.
    pub(super) fn sitting_at(&self, time: u64) -> Cow<'_, Sitting> {
        if time <= self.latest() {
            return Cow::Borrowed(&self.sitting);
        }
        let serving: Vec<Warrant> = self.warrants.iter().filter(|it| it.until() >= time).cloned().collect();
        Cow::Owned(self.state.under_warrants(&serving, time).unwrap_or_else(|_| self.state.sitting()))
    }

    /// Whether a vote of a machine in the place of a member's counts: for nothing, or for an entry that is here and of a time that the warrants
    /// allow.
    pub(super) fn counts_in_place(&self, ballot: Ballot, body: &[u8]) -> bool {
        if ballot.kind == VoteKind::Proposal || body.is_empty() {
            return true;
        }
        let value = Digest::try_from(body).ok().and_then(|digest| self.agreement.value(&digest));
        value.and_then(|value| Entry::decode(value).ok()).is_some_and(|entry| entry.time <= self.latest())
    }

    /// The earliest time that an entry may have for which an honest member votes.
    fn earliest(&self) -> u64 {
        self.now.saturating_sub(APART).max(self.state.time())
    }

    /// Whether a warrant is here with all the operators that have signed this copy.
    pub(super) fn knows_warrant(&self, warrant: &Warrant) -> bool {
        let has_all = |known: &Warrant| warrant.signatures().keys().all(|node| known.signatures().contains_key(node));
        self.warrants.iter().any(|known| known.is_same(warrant) && has_all(known))
    }

    /// From now on the machines of a warrant vote at this height, and those that they stand in for do not. Says whether it is news.
    ///
    /// All that serve are taken, and they serve together: any two have an honest operator in common, so that one is for all that the other is for,
    /// and all together are for no more than one of them.
    pub(super) fn take_warrant(&mut self, warrant: Warrant) -> Result<bool, WarrantRefusal> {
        if self.knows_warrant(&warrant) {
            return Ok(false);
        }
        if let Some(known) = self.warrants.iter_mut().find(|known| known.is_same(&warrant)) {
            let before = known.signatures().len();
            let signers = self.state.vartime_signers(&warrant);
            *known = known.clone().merged(&warrant.signed_by(&signers));
            let news = known.signatures().len() > before;
            self.unkept |= news;
            return Ok(news);
        }
        self.state.check_warrant_at(&warrant, self.now.max(self.state.time()))?;
        let signers = self.state.vartime_signers(&warrant);
        let all: Vec<Warrant> = self.warrants.iter().cloned().chain([warrant.signed_by(&signers)]).collect();
        self.sitting = self.state.under_warrants(&all, self.earliest())?;
        (self.warrants, self.unkept) = (all, true);
        let keys = self.keys.as_ref().filter(|_| self.memory == Memory::Kept);
        match keys.filter(|keys| self.sitting.seats(keys)) {
            Some(keys) => self.agreement.vote_as(&self.sitting, keys.party()),
            None => self.agreement.abstain(),
        }
        for node in self.sitting.stood_in_for() {
            // What the machine that is gone has told is not what the other one has.
            self.peers.forget(node);
        }
        self.ignored.clear();
        self.expect_replacements();
        Ok(true)
    }

    /// Warrants whose end has passed, for whatever honest members still vote for, serve no more: a machine that lives after all votes again. One under
    /// which prevotes have come together stays until the height is decided, since an entry may have been decided by it.
    pub(super) fn end_warrants(&mut self) {
        let earliest = self.earliest();
        let over = |warrant: &Warrant| warrant.until() < earliest;
        if !self.warrants.iter().any(over) {
            return;
        }
        let rest: Vec<Warrant> = self.warrants.iter().filter(|warrant| !over(warrant)).cloned().collect();
        let Ok(sitting) = self.state.under_warrants(&rest, earliest) else { return };
        if self.agreement.polka().is_some_and(|polka| !polka.is_valid(&sitting)) {
            return;
        }
        (self.warrants, self.sitting, self.unkept) = (rest, sitting, true);
        // What the machines of a warrant have said for later views counts no more.
        self.begin_again();
    }

    /// All machines that vote in the place of members' now, by rising number; of several in one place the card made last comes last.
    #[must_use]
    pub fn stand_ins(&self) -> Vec<(NodeId, Card)> {
        let mut all: Vec<(NodeId, Card)> = Vec::new();
        for (_, stand_in) in self.pending_stand_ins() {
            if !all.iter().any(|(node, card)| *node == stand_in.node && *card == stand_in.card) {
                all.push((stand_in.node, stand_in.card.clone()));
            }
        }
        all.sort_by_key(|(node, card)| (*node, card.content().made));
        all
    }

    /// The machines of all warrants that have not replaced those that are gone yet.
    fn pending_stand_ins(&self) -> impl Iterator<Item = (&Warrant, &StandIn)> {
        let gone = |node: NodeId, key: &[u8; 32]| {
            let current = self.state.seats().get(&node).and_then(|seat| seat.card());
            current.is_some_and(|card| card.content().ceremony_key == *key)
        };
        let all = self.warrants.iter().flat_map(|warrant| warrant.stand_ins().iter().map(move |it| (warrant, it)));
        all.filter(move |(_, it)| gone(it.node, &it.gone))
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
        // A machine that came into a member's place later, and one that is not there yet, do not know what the one that decides has said.
        let level = |party: &&PartyId| {
            let told = self.peers.spoken(party.node());
            told.is_some_and(|(spoken, machine)| spoken <= own && self.sitting.is_machine_of(**party, machine))
        };
        self.sitting.members().iter().filter(level).count()
    }

    /// Wants those replaced that are stood in for: by the machine whose card was made last, if there are several.
    pub(super) fn expect_replacements(&mut self) {
        let mut wanted: BTreeMap<NodeId, (StandIn, Vec<u8>)> = BTreeMap::new();
        let mut others = Vec::new();
        for (warrant, stand_in) in self.pending_stand_ins() {
            let newer = |(known, _): &(StandIn, Vec<u8>)| {
                known.card != stand_in.card && known.card.content().made <= stand_in.card.content().made
            };
            if wanted.get(&stand_in.node).is_none_or(newer) {
                let known = wanted.insert(stand_in.node, (stand_in.clone(), warrant.encode()));
                others.extend(known.map(|(other, _)| other));
            } else if wanted.get(&stand_in.node).is_some_and(|(known, _)| known.card != stand_in.card) {
                others.push(stand_in.clone());
            }
        }
        for other in others {
            self.pending.withdraw(&replacement(&other).digest());
        }
        let time = self.time();
        for (stand_in, reason) in wanted.into_values() {
            let action = replacement(&stand_in);
            let entry = self.state.next_entry(action, reason, time);
            if self.pending.contains(&entry.action.digest()) || self.state.check_entry(&entry).is_err() {
                continue;
            }
            if let Ok(terms) = Terms::of(&self.state, &entry.action, &entry.reason) {
                self.pending.insert(Source::Expected, (entry.action, entry.reason), terms, self.ticks);
            }
        }
    }

    /// The members that decide the next entry, with the warrants that serve on.
    pub(super) fn next_sitting(&mut self) -> Sitting {
        let (state, earliest) = (&self.state, self.earliest());
        let before = self.warrants.len();
        self.warrants.retain(|warrant| state.check_warrant_at(warrant, earliest).is_ok());
        self.unkept |= self.warrants.len() != before;
        self.state.under_warrants(&self.warrants, earliest).unwrap_or_else(|_| self.state.sitting())
    }

    /// A decided entry, with as few of the warrants as it takes.
    pub(super) fn certified(&self, entry: Entry, certificate: VoteCertificate) -> CertifiedEntry {
        let is_valid = |warrants: &[Warrant]| {
            let sitting = self.state.under_warrants(warrants, entry.time);
            sitting.is_ok_and(|sitting| certificate.is_valid(&sitting))
        };
        let mut warrants = self.warrants.clone();
        if warrants.is_empty() || is_valid(&[]) {
            return CertifiedEntry { entry, certificate, warrants: Vec::new() };
        }
        for place in (0..warrants.len()).rev() {
            let without =
                warrants.iter().enumerate().filter(|(at, _)| *at != place).map(|(_, warrant)| warrant.clone());
            let without: Vec<Warrant> = without.collect();
            if is_valid(&without) {
                warrants = without;
            }
        }
        CertifiedEntry { entry, certificate, warrants }
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
