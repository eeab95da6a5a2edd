//! The state machine.

mod combining;

use core::mem;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_rounds::{
    Abort, Blames, Bug, Malformed, Outgoing, PartyId, ProtocolMessage, Recipient, Replies, Round, RoundProtocol, Slot,
};
use theta_schemes::keys::KeyId;
use theta_schemes::{Answer, Delivery, Gathered, Purpose, Statement};
use theta_sharing::Threshold;

use super::checking::Checking;
use super::duty::Duty;
use super::gathering::{Gathering, WeightSource};
use super::hearing::Hearing;
use super::message::{COMBINED, LONGEST_SHARE, PROOF_REQUEST, PROVEN_SHARE, ShareMessage};
use super::proofs::Proofs;
use super::setting::Setting;
use crate::{Ask, Misbehaviour, Outcome, Supply};

/// One request at one party.
pub struct OneRound {
    setting: Arc<Setting>,
    round: Round,
    state: State,
    duty: Duty,
    /// Whether its first message is a bare share.
    bare: bool,
    /// Combined values that wait.
    hearing: Hearing,
    /// The parties whose shares are no longer taken.
    excluded: BTreeSet<PartyId>,
}

/// The state, named for what it awaits.
enum State {
    /// Its own turn to make a share.
    AwaitingOwnShare,
    /// Shares of the others, or the combined value.
    AwaitingShares(Gathering),
    /// The check of a result.
    Checking(Checking),
    /// Its turn to send the combined value.
    Announcing { combined: Secret<Vec<u8>>, to: Recipient, outcome: Outcome },
    /// The call that takes the result.
    Done(Outcome),
    /// The call that takes the reason of the failure.
    Failed(Abort),
}

impl OneRound {
    /// One party's side of a request: `local` is the party, `purpose` and `threshold` are those of the key, and
    /// `answer` makes this party's share.
    ///
    /// The share's randomness comes from `share_seed`, not from the driver's generator. The seed must be secret, differ
    /// for different requests, and be the same whenever this party is asked the same, so that a restarted node repeats
    /// itself instead of contradicting itself.
    #[must_use]
    pub fn new(
        local: PartyId,
        threshold: Threshold,
        purpose: Purpose,
        answer: Arc<dyn Answer>,
        share_seed: Secret<[u8; 32]>,
    ) -> Self {
        let setting = Arc::new(Setting { local, threshold, purpose, answer, share_seed, quorum: false });
        let (state, duty) = (State::AwaitingOwnShare, Duty::Everything);
        let hearing = Hearing::default();
        Self { setting, round: Round(0), state, duty, bare: false, hearing, excluded: BTreeSet::new() }
    }

    /// The same request with this delivery; `statement` and `key` draw who makes shares.
    #[must_use]
    pub fn delivered(mut self, delivery: Delivery, key: &KeyId, statement: &Statement<'_>) -> Self {
        let setting = &self.setting;
        if delivery == Delivery::Quorum && setting.answer.has_combined_value() {
            let (duty, combiners) = Duty::draw(setting.local, setting.threshold, key, statement);
            (self.duty, self.hearing) = (duty, Hearing::of(combiners));
            if let Some(setting) = Arc::get_mut(&mut self.setting) {
                setting.quorum = true;
            }
        }
        self
    }

    /// Whether this party makes a share of a request with [`Delivery::Quorum`] before a tick.
    pub(crate) fn is_drawn(local: PartyId, threshold: Threshold, key: &KeyId, statement: &Statement<'_>) -> bool {
        Duty::draw(local, threshold, key, statement).0 != Duty::StandBy
    }

    /// The recipients of this party's share, in the order of sending.
    fn recipients(&self) -> Vec<Recipient> {
        match &self.duty {
            Duty::Everything | Duty::StandBy => vec![Recipient::All],
            // The share is kept for parties that had to give up waiting for the combiners.
            Duty::Make { combiners } | Duty::Combine { combiners } => {
                let others = combiners.iter().filter(|party| **party != self.setting.local);
                core::iter::once(Recipient::OnRequest).chain(others.copied().map(Recipient::Party)).collect()
            }
        }
    }
}

impl RoundProtocol for OneRound {
    type Message = ShareMessage;
    type Output = Outcome;
    type Misbehaviour = Misbehaviour;
    type Ask = Ask;
    type Supply = Supply;

    fn round(&self) -> Round {
        self.round
    }

    fn longest(&self, slot: Slot) -> usize {
        match slot {
            PROOF_REQUEST => 0,
            COMBINED if self.setting.quorum => self.setting.answer.combined_len().unwrap_or(LONGEST_SHARE),
            _ => LONGEST_SHARE,
        }
    }

    /// Where results do not prove themselves, a combined value is k shares that do: a combiner that is restarted may have others first.
    fn is_unique(&self, slot: Slot) -> bool {
        slot != COMBINED || !self.setting.quorum || self.setting.answer.is_checkable()
    }

    fn decode(&self, from: PartyId, slot: Slot, payload: &[u8]) -> Result<ShareMessage, Malformed> {
        if slot == PROVEN_SHARE && self.setting.answer.is_bare(from.share(), payload) {
            return Err(Malformed("a proven share has a proof"));
        }
        if slot == COMBINED && !self.setting.quorum {
            return Err(Malformed("a combined value where everybody combines"));
        }
        ShareMessage::decode(from, slot, payload)
    }

    /// The first round makes this party's share. The second, only at parties that got a false result from bare shares,
    /// asks for proofs.
    fn do_round(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Outgoing<Self::Message>>, Bug> {
        let recipients = match &self.state {
            State::AwaitingOwnShare => self.recipients(),
            State::Announcing { to, .. } => vec![*to],
            _ => vec![Recipient::All],
        };
        let message = match mem::replace(&mut self.state, State::AwaitingOwnShare) {
            State::AwaitingOwnShare => {
                let answer = Arc::clone(&self.setting.answer);
                // A result that cannot be checked is as good as the shares behind it, which need their proofs.
                let proven = !answer.is_checkable();
                let doubts = proven && !answer.checks_together();
                let Gathered { shares, own, is_bare } = answer.gather(proven, &mut self.setting.share_rng());
                self.bare = is_bare;
                let weights = WeightSource::draw(rng);
                self.state = State::AwaitingShares(Gathering { shares, weights, doubts });
                // With k = 1 this party's share is the result, so there is nobody to blame.
                self.try_combine();
                self.give_up_if_hopeless();
                ShareMessage::Share(own.into())
            }
            waiting @ State::AwaitingShares(_) => {
                self.state = waiting;
                ShareMessage::ProofRequest
            }
            State::Announcing { combined, outcome, .. } => {
                self.state = State::Done(outcome);
                ShareMessage::Combined(Bytes::copy_from_slice(combined.expose()))
            }
            State::Done(_) | State::Failed(_) => return Err(Bug("a round after the last")),
            State::Checking(_) => return Err(Bug("a round before the check of its result")),
        };
        self.round.0 += 1;
        Ok(recipients.into_iter().map(|to| Outgoing { to, message: message.clone() }).collect())
    }

    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames<Misbehaviour>> {
        if self.excluded.contains(&from) {
            return Ok(());
        }
        let mut blames = self.hear_waiting();
        if let State::Checking(checking) = &mut self.state {
            checking.hold(from, message);
        } else {
            blames.extend(match message {
                ShareMessage::Share(share) | ShareMessage::ProvenShare(share) => self.take(from, &share),
                ShareMessage::Combined(combined) if self.hearing.hears(from, &combined) => {
                    self.take_combined(from, &combined)
                }
                // `Proofs` answers questions.
                ShareMessage::Combined(_) | ShareMessage::ProofRequest => Vec::new(),
            });
        }
        if blames.is_empty() { Ok(()) } else { Err(blames) }
    }

    fn has_question(&self) -> bool {
        matches!(&self.state, State::Checking(checking) if checking.claim.is_some())
    }

    fn question(&mut self) -> Option<Ask> {
        let State::Checking(checking) = &mut self.state else { return None };
        checking.claim.take().map(Ask::Check)
    }

    fn supply(&mut self, supply: Supply) -> Result<(), Blames<Misbehaviour>> {
        // It asks for no stock.
        let Supply::Checked(right) = supply else { return Ok(()) };
        let blames = self.take_verdict(right);
        if blames.is_empty() { Ok(()) } else { Err(blames) }
    }

    /// The combiners took too long: a party that stood by does what everybody does with [`Delivery::All`]. Makers'
    /// shares are there for those that ask.
    fn expire_round(&mut self) {
        self.hearing.tick();
        if self.duty == Duty::StandBy {
            self.duty = Duty::Everything;
        }
    }

    fn exclude(&mut self, party: PartyId) {
        self.excluded.insert(party);
        self.hearing.exclude(party);
        match &mut self.state {
            State::AwaitingShares(gathering) => gathering.remove(party),
            State::Checking(checking) => checking.exclude(party),
            _ => {}
        }
        self.give_up_if_hopeless();
    }

    fn awaits(&self, party: PartyId) -> bool {
        let has = |index| match &self.state {
            State::AwaitingShares(Gathering { shares, doubts: true, .. }) => shares.has_proven(index),
            State::AwaitingShares(Gathering { shares, .. }) => shares.has(index),
            _ => false,
        };
        !self.excluded.contains(&party) && !has(party.share())
    }

    fn is_ready_for_next_round(&self) -> bool {
        match &self.state {
            State::AwaitingOwnShare => self.duty != Duty::StandBy,
            State::Announcing { .. } => true,
            State::AwaitingShares(gathering) => self.bare && gathering.doubts && self.round == Round(1),
            State::Checking(_) | State::Done(_) | State::Failed(_) => false,
        }
    }

    fn is_ready_to_finalize(&self) -> bool {
        matches!(self.state, State::Done(_) | State::Failed(_))
    }

    fn contributions(&self) -> (usize, usize) {
        let needed = usize::from(self.setting.threshold.k());
        match &self.state {
            State::AwaitingShares(gathering) => (gathering.shares.len(), needed),
            State::Checking(_) | State::Announcing { .. } | State::Done(_) => (needed, needed),
            State::AwaitingOwnShare | State::Failed(_) => (0, needed),
        }
    }

    /// A party that gets a false share first needs the proofs of all, also of those that have finished.
    fn replies(&self) -> Option<Box<dyn Replies<Self::Message>>> {
        // A party that stands by made no share, but its proven one may be what another lacks.
        let standing_by = self.setting.quorum && self.setting.answer.has_bare_shares();
        if self.bare || standing_by { Some(Box::new(Proofs::new(Arc::clone(&self.setting)))) } else { None }
    }

    fn finalize(self) -> Result<Outcome, Abort> {
        match self.state {
            State::Done(outcome) => Ok(outcome),
            State::Failed(abort) => Err(abort),
            State::AwaitingOwnShare | State::AwaitingShares(_) | State::Checking(_) | State::Announcing { .. } => {
                Err(Abort::Bug(Bug("asked for a result before there is one")))
            }
        }
    }
}
