//! What a replica tells the others: how far it is, what it has voted, what waits for its decision.

use theta_agreement::{Ballot, Digest, Electorate, VoteKind};
use theta_names::NodeId;
use theta_rounds::PartyId;

use super::message::{Message, Polka, Vote};
use super::pending::Wanted;
use super::{Effect, REPEAT_TICKS, Recipient, Replica};

/// Ticks between showing the prevotes of the present view to those who were restarted in it.
const POLKA_TICKS: u64 = 4 * REPEAT_TICKS;

impl Replica {
    /// Tells how far this node is. With it goes what the other one has drawn at its start, so that it can tell this from what was said
    /// before.
    pub(super) fn send_status(&self, to: Vec<NodeId>, out: &mut Vec<Effect>) {
        let own = self.keys.as_ref().map(|keys| keys.party().node());
        let (height, session) = (self.state.height(), self.session);
        let members = self.sitting.members();
        let is_other = |node: &NodeId| Some(*node) != own && members.contains(&PartyId::of_node(*node));
        let key = self.keys.as_ref().and_then(|keys| keys.member().verifying_key().bytes().try_into().ok());
        let machine = key.unwrap_or_default();
        for node in to.into_iter().filter(is_other) {
            let (echo, spoken) = (self.peers.session(node), self.spoken());
            let message = Message::Status { height, session, echo, spoken, machine };
            out.push(Effect::Send(Recipient::One(node), message.encode()));
        }
    }

    /// What this node says in its view and voted in the one before, and what locked it or others. A member that lacks votes to leave a
    /// view is one view behind at most: from two on more than t honest ones are ahead of it, and it follows them. Among many what is on
    /// its way is not repeated, and who has nothing to say says so in turn.
    pub(super) fn votes(&self) -> Option<Message> {
        let (view, patience) = (self.agreement.view(), self.patience());
        let due = |ballot: &Ballot| {
            let now = ballot.view == view;
            let before = ballot.view.saturating_add(1) == view && ballot.kind != VoteKind::Proposal;
            (now || before) && self.gathering.is_old(*ballot, self.ticks, patience)
        };
        let votes: Vec<Vote> =
            self.said.values().filter(|said| due(&said.vote.ballot)).map(|said| said.vote.clone()).collect();
        // In its own view the prevotes themselves are on their way, if nobody was restarted.
        let (old, turn) = (self.ticks.is_multiple_of(POLKA_TICKS), self.has_turn());
        let polka = self.polka().filter(|(certificate, _)| (certificate.view() < view || old) && turn);
        (turn || polka.is_some() || !votes.is_empty()).then(|| Message::Votes {
            height: self.sitting.height(),
            votes,
            polka,
        })
    }

    pub(super) fn polka(&self) -> Option<Polka> {
        let certificate = self.agreement.polka()?;
        Some((certificate.clone(), self.agreement.value(certificate.digest())?.to_vec()))
    }

    pub(super) fn tell(&self, digest: &Digest, out: &mut Vec<Effect>) {
        let own = self.keys.as_ref().map(|keys| keys.party().node());
        if let Some(wanted) = self.pending.get(digest) {
            self.tell_proposers(candidate(&wanted, own), out);
        }
    }
}

/// What others are told of an action that waits: with this node's own consent, since the others tell theirs.
pub(super) fn candidate(wanted: &Wanted<'_>, own: Option<NodeId>) -> Vec<u8> {
    let (action, reason) = (wanted.action.clone(), wanted.reason.to_vec());
    let consents = wanted.consents.iter().filter(|consent| Some(consent.node) == own).copied().collect();
    Message::Candidate { action, reason, consents }.encode()
}
