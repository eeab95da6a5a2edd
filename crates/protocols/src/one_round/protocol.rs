//! The state machine.

use core::mem;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use theta_groups::Secret;
use theta_rounds::{
    Abort, Blames, Bug, Malformed, Outgoing, PartyId, ProtocolMessage, Recipient, Replies, Round, RoundProtocol, Slot,
};
use theta_schemes::keys::{Combined, KeyId};
use theta_schemes::{Answer, Claim, CombineError, Delivery, Gathered, Purpose, Shares, Statement};
use theta_sharing::{ShareIndex, Threshold};

use super::checking::{Checking, Origin};
use super::duty::Duty;
use super::message::{COMBINED, LONGEST_SHARE, PROOF_REQUEST, PROVEN_SHARE, ShareMessage};
use super::proofs::Proofs;
use crate::{Ask, Misbehaviour, Outcome, Supply};

/// One request at one party.
pub struct OneRound {
    setting: Arc<Setting>,
    round: Round,
    state: State,
    duty: Duty,
    /// Whether its first message is a bare share.
    bare: bool,
    /// The parties whose shares are no longer taken.
    excluded: BTreeSet<PartyId>,
}

/// The data that do not change during a run.
pub(super) struct Setting {
    local: PartyId,
    threshold: Threshold,
    purpose: Purpose,
    answer: Arc<dyn Answer>,
    share_seed: Secret<[u8; 32]>,
    /// Whether only the makers that the request draws make shares at first.
    quorum: bool,
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

/// The shares so far, and how to treat them.
pub(super) struct Gathering {
    shares: Box<dyn Shares>,
    weights: WeightSource,
    /// Whether only proven shares count: either a result was false, or neither results of this scheme nor the shares of several
    /// requests can be checked.
    doubts: bool,
}

/// The source of the random weights of batch verification: a seed drawn when the share is made, so that a run replays
/// from its inputs, and a new stream for every batch.
struct WeightSource {
    seed: Secret<[u8; 32]>,
    batches: u64,
}

impl WeightSource {
    fn draw(rng: &mut dyn CryptoRng) -> Self {
        let mut seed = Secret::new([0; 32]);
        rng.fill_bytes(seed.expose_mut());
        Self { seed, batches: 0 }
    }

    fn next_batch(&mut self) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::from_seed(*self.seed.expose());
        rng.set_stream(self.batches);
        self.batches += 1;
        rng
    }
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
        Self { setting, round: Round(0), state, duty, bare: false, excluded: BTreeSet::new() }
    }

    /// The same request with this delivery; `statement` and `key` draw who makes shares.
    #[must_use]
    pub fn delivered(mut self, delivery: Delivery, key: &KeyId, statement: &Statement<'_>) -> Self {
        let setting = &self.setting;
        if delivery == Delivery::Quorum && setting.answer.is_checkable() {
            self.duty = Duty::draw(setting.local, setting.threshold, key, statement);
            if let Some(setting) = Arc::get_mut(&mut self.setting) {
                setting.quorum = true;
            }
        }
        self
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

    /// Takes a combined value. It does not say from whose shares it was made.
    fn take_combined(&mut self, from: PartyId, combined: &[u8]) -> Blames<Misbehaviour> {
        if !matches!(self.state, State::AwaitingOwnShare | State::AwaitingShares(_)) {
            return Vec::new();
        }
        let accepted = match Arc::clone(&self.setting.answer).accept_claim(combined) {
            Some(claim) => claim.map(|claim| self.check(claim, Origin::Party(from))),
            None => self.setting.answer.accept_combined(combined).map(|result| {
                self.accept(result, Some(Secret::new(combined.to_vec())));
            }),
        };
        match accepted {
            Ok(()) => Vec::new(),
            Err(_) => self.refuse(from),
        }
    }

    /// The result follows from this combined value, which another party sent. A combiner tells all of it: the other one may have told nobody
    /// else.
    fn accept(&mut self, result: Combined, value: Option<Secret<Vec<u8>>>) {
        self.state = announcement(result, value, Vec::new(), &self.duty);
    }

    /// A party sent a false combined value.
    fn refuse(&mut self, from: PartyId) -> Blames<Misbehaviour> {
        self.exclude(from);
        vec![(from, Misbehaviour::InvalidResult)]
    }

    /// Lets a result be checked.
    fn check(&mut self, claim: Claim, origin: Origin) {
        let gathering = match mem::replace(&mut self.state, State::AwaitingOwnShare) {
            State::AwaitingShares(gathering) => Some(gathering),
            _ => None,
        };
        self.state = State::Checking(Checking::new(claim, origin, gathering));
    }

    /// Takes the verdict about the result that was to be checked. If it is false, goes on where it was, with what came since.
    fn take_verdict(&mut self, right: bool) -> Blames<Misbehaviour> {
        let checking = match mem::replace(&mut self.state, State::AwaitingOwnShare) {
            State::Checking(checking) if checking.claim.is_none() => checking,
            other => {
                self.state = other;
                return Vec::new();
            }
        };
        let Checking { combined, origin, gathering, held, .. } = checking;
        if right {
            match origin {
                Origin::Shares(contributors) => self.state = self.setting.done(combined, contributors, &self.duty),
                Origin::Party(_) => {
                    let value = self.setting.answer.combined_value(&combined);
                    self.accept(combined, value);
                }
            }
            return Vec::new();
        }
        if let Some(gathering) = gathering {
            self.state = State::AwaitingShares(gathering);
        }
        let mut blames = match origin {
            Origin::Party(party) => self.refuse(party),
            Origin::Shares(_) => {
                if let State::AwaitingShares(gathering) = &mut self.state {
                    gathering.doubt(&self.setting, self.bare);
                }
                self.try_combine()
            }
        };
        for (from, message) in held {
            blames.extend(self.update(from, message).err().into_iter().flatten());
        }
        blames
    }

    /// Combines the shares, and tries again without the false ones until it has a result or too few shares. Blames
    /// their senders.
    fn try_combine(&mut self) -> Blames<Misbehaviour> {
        let mut blames = Vec::new();
        let setting = Arc::clone(&self.setting);
        let needed = usize::from(setting.threshold.k());
        let State::AwaitingShares(gathering) = &mut self.state else { return blames };
        let end = loop {
            let usable = if gathering.doubts { gathering.shares.proven() } else { gathering.shares.len() };
            if usable < needed {
                break None;
            }
            let certain = gathering.shares.verified() >= needed;
            // Whoever doubts checks at once, since it has to name culprits; all others let it wait for what else is to be checked.
            if !gathering.doubts
                && !certain
                && let Some(Ok((claim, contributors))) = gathering.shares.claim()
            {
                self.check(claim, Origin::Shares(contributors));
                return blames;
            }
            if certain || (!gathering.doubts && setting.answer.is_checkable()) {
                match gathering.shares.combine() {
                    Ok((combined, contributors)) => break Some(setting.done(combined, contributors, &self.duty)),
                    Err(CombineError::ResultInvalid) if !certain => {}
                    Err(error) => break Some(State::Failed(setting.failure(&error))),
                }
                gathering.doubt(&setting, self.bare);
                continue;
            }
            let mut rng = gathering.weights.next_batch();
            let culprits = gathering.shares.verify(&mut rng);
            for party in culprits.into_iter().map(PartyId::of_share) {
                self.excluded.insert(party);
                // This party's own share is false only on a broken machine: nobody is to blame, and the others may
                // still get a result.
                if party != setting.local {
                    blames.push((party, Misbehaviour::InvalidShare));
                }
            }
        };
        match end {
            Some(state) => self.state = state,
            None => self.give_up_if_hopeless(),
        }
        blames
    }

    /// Takes a share, and combines if there are enough.
    fn take(&mut self, from: PartyId, share: &[u8]) -> Blames<Misbehaviour> {
        let State::AwaitingShares(gathering) = &mut self.state else { return Vec::new() };
        let misbehaviour = match gathering.shares.put(from.share(), share) {
            Ok(true) => return self.try_combine(),
            Ok(false) => Misbehaviour::InvalidShare,
            Err(error) => Misbehaviour::MalformedShare(error),
        };
        self.exclude(from);
        vec![(from, misbehaviour)]
    }

    fn give_up_if_hopeless(&mut self) {
        let needed = usize::from(self.setting.threshold.k());
        let remaining = usize::from(self.setting.threshold.n()).saturating_sub(self.excluded.len());
        if remaining < needed && matches!(self.state, State::AwaitingShares(_)) {
            self.state = State::Failed(Abort::TooFewHonest { remaining, needed });
        }
    }
}

impl Gathering {
    /// Forgets the share of a party.
    pub(super) fn remove(&mut self, party: PartyId) {
        self.shares.remove(party.share());
    }

    /// A result was false: from now on only proven shares count.
    fn doubt(&mut self, setting: &Setting, bare: bool) {
        self.doubts = true;
        if bare {
            self.shares.put_own_proof(&mut setting.share_rng());
        }
    }
}

impl Setting {
    /// This party's share with its proof; the same bytes at every call.
    pub(super) fn proven_share(&self) -> Bytes {
        self.answer.proven_share(&mut self.share_rng()).into()
    }

    /// The state with a result that was combined here.
    fn done(&self, result: Combined, contributors: Vec<ShareIndex>, duty: &Duty) -> State {
        let value = if self.quorum { self.answer.combined_value(&result) } else { None };
        announcement(result, value, contributors, duty)
    }

    fn share_rng(&self) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(*self.share_seed.expose())
    }

    /// Why verified shares do not combine. From outside, only a lying encryptor can cause this.
    fn failure(&self, error: &CombineError) -> Abort {
        match error {
            CombineError::ResultInvalid if self.purpose == Purpose::Decrypt => Abort::Input(
                "every share is right but the ciphertext does not open: whoever encrypted it made it so on purpose",
            ),
            CombineError::ResultInvalid => Abort::Bug(Bug("true shares give a false result")),
            CombineError::TooFew { .. } => Abort::Bug(Bug("combined fewer than k shares")),
            CombineError::Duplicate(_) => Abort::Bug(Bug("combined two shares of one party")),
            CombineError::UnknownParty(_) => Abort::Bug(Bug("combined the share of a stranger")),
        }
    }
}

/// The state with this result. A combiner tells all; any other party tells those that ask, since the combiners may not have told them.
fn announcement(result: Combined, value: Option<Secret<Vec<u8>>>, contributors: Vec<ShareIndex>, duty: &Duty) -> State {
    let Combined { result, proof } = result;
    let outcome = Outcome { result, proof, contributors };
    let to = if matches!(duty, Duty::Combine { .. }) { Recipient::All } else { Recipient::OnRequest };
    match value {
        Some(combined) => State::Announcing { combined, to, outcome },
        None => State::Done(outcome),
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
        if slot == PROOF_REQUEST { 0 } else { LONGEST_SHARE }
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
        if let State::Checking(checking) = &mut self.state {
            checking.hold(from, message);
            return Ok(());
        }
        let blames = match message {
            ShareMessage::Share(share) | ShareMessage::ProvenShare(share) => self.take(from, &share),
            ShareMessage::Combined(combined) => self.take_combined(from, &combined),
            // `Proofs` answers questions.
            ShareMessage::ProofRequest => Vec::new(),
        };
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
        if self.duty == Duty::StandBy {
            self.duty = Duty::Everything;
        }
    }

    fn exclude(&mut self, party: PartyId) {
        self.excluded.insert(party);
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
