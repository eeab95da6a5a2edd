//! The state machine.

use std::collections::BTreeSet;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use theta_groups::Secret;
use theta_rounds::{Abort, Bug, Outgoing, PartyId, Progress, Recipient, Round, RoundProtocol};
use theta_schemes::{CombineError, Purpose, ThresholdScheme};
use theta_sharing::Threshold;

use super::message::{SHARE, ShareMessage, index_of, party_of};
use super::{Misbehaviour, shares::Shares};
use crate::Outcome;

type Blames = Vec<(PartyId, Misbehaviour)>;

/// One request at one party.
pub struct OneRound<S: ThresholdScheme> {
    setting: Setting<S>,
    state: State<S>,
    /// Those whose shares are not wanted any more.
    excluded: BTreeSet<PartyId>,
}

/// What does not change.
struct Setting<S: ThresholdScheme> {
    local: PartyId,
    threshold: Threshold,
    public: Arc<S::PublicKey>,
    request: S::Request,
}

/// What it awaits.
enum State<S: ThresholdScheme> {
    /// Its own turn to make a share.
    AwaitingOwnShare { key: Arc<S::KeyShare>, share_seed: Secret<[u8; 32]> },
    /// Shares of the others.
    AwaitingShares { shares: Shares<S>, weights: WeightSource },
    /// To be asked for the result.
    Done(Outcome),
    /// To be asked for the reason.
    Failed(Abort),
}

/// Where the random weights of batch verification come from: a seed drawn when the share is made, so that a run replays
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

impl<S: ThresholdScheme> OneRound<S> {
    /// Party `local`'s side of `request`. `key` is that party's share of the key `public`, which takes `threshold`.
    ///
    /// The share's randomness comes from `share_seed`, not from the driver's generator. The seed must be secret, differ
    /// for different requests, and be the same whenever this party is asked the same: then a node that was restarted
    /// repeats itself instead of contradicting itself.
    #[must_use]
    pub const fn new(
        local: PartyId,
        threshold: Threshold,
        public: Arc<S::PublicKey>,
        key: Arc<S::KeyShare>,
        request: S::Request,
        share_seed: Secret<[u8; 32]>,
    ) -> Self {
        let setting = Setting { local, threshold, public, request };
        Self { setting, state: State::AwaitingOwnShare { key, share_seed }, excluded: BTreeSet::new() }
    }

    /// Combines what is there, as often as that needs to drop false shares first. Blames their senders.
    fn try_combine(&mut self) -> Blames {
        let mut blames = Vec::new();
        let State::AwaitingShares { shares, weights } = &mut self.state else { return blames };
        let end = loop {
            if shares.len() < usize::from(self.setting.threshold.k()) {
                break None;
            }
            if S::CHECKABLE || shares.all_verified() {
                match shares.combine(&self.setting.public, &self.setting.request) {
                    Ok(output) => break Some(State::Done(self.setting.outcome(&output, shares))),
                    Err(CombineError::ResultInvalid) if !shares.all_verified() => {}
                    Err(error) => break Some(State::Failed(self.setting.failure(&error))),
                }
            }
            let mut rng = weights.next_batch();
            let culprits = shares.verify(&self.setting.public, &self.setting.request, &mut rng);
            for party in culprits.into_iter().filter_map(party_of) {
                self.excluded.insert(party);
                // One's own share is false only on a broken machine: nobody is to blame, the others may still do.
                if party != self.setting.local {
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

    fn give_up_if_hopeless(&mut self) {
        let needed = usize::from(self.setting.threshold.k());
        let remaining = usize::from(self.setting.threshold.n()).saturating_sub(self.excluded.len());
        if remaining < needed && matches!(self.state, State::AwaitingShares { .. }) {
            self.state = State::Failed(Abort::TooFewHonest { remaining, needed });
        }
    }
}

impl<S: ThresholdScheme> Setting<S> {
    fn outcome(&self, output: &S::Output, shares: &Shares<S>) -> Outcome {
        let (result, proof) = S::encode_output(output);
        let contributors = shares.indices().take(usize::from(self.threshold.k())).filter_map(party_of).collect();
        Outcome { result, proof, contributors }
    }

    /// Why verified shares do not combine. Only an encryptor can bring that about from outside.
    fn failure(&self, error: &CombineError) -> Abort {
        match error {
            CombineError::ResultInvalid if S::SUITE.purpose() == Purpose::Decrypt => Abort::Input(
                "every share is right but the ciphertext does not open: whoever encrypted it made it so on purpose",
            ),
            CombineError::ResultInvalid => Abort::Bug(Bug("true shares give a false result")),
            CombineError::TooFew { .. } => Abort::Bug(Bug("combined fewer than k shares")),
            CombineError::Duplicate(_) => Abort::Bug(Bug("combined two shares of one party")),
            CombineError::UnknownParty(_) => Abort::Bug(Bug("combined the share of a stranger")),
        }
    }
}

impl<S: ThresholdScheme> RoundProtocol for OneRound<S> {
    type Message = ShareMessage<S>;
    type Output = Outcome;
    type Misbehaviour = Misbehaviour;

    fn round(&self) -> Round {
        match self.state {
            State::AwaitingOwnShare { .. } => Round(0),
            _ => SHARE.round,
        }
    }

    fn do_round(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Outgoing<Self::Message>>, Bug> {
        let State::AwaitingOwnShare { key, share_seed } = &self.state else {
            return Err(Bug("a second round of one"));
        };
        let mut share_rng = ChaCha20Rng::from_seed(*share_seed.expose());
        let share = S::create_share(&self.setting.public, key, &self.setting.request, &mut share_rng);
        let weights = WeightSource::draw(rng);
        self.state = State::AwaitingShares { shares: Shares::new(share.clone()), weights };
        // With k = 1 the own share is the result, and there is nobody else's to blame.
        self.try_combine();
        self.give_up_if_hopeless();
        Ok(vec![Outgoing { to: Recipient::All, message: ShareMessage(Ok(share)) }])
    }

    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames> {
        let State::AwaitingShares { shares, .. } = &mut self.state else { return Ok(()) };
        if self.excluded.contains(&from) {
            return Ok(());
        }
        let blames = match message.0 {
            Ok(share) => {
                shares.push(share);
                self.try_combine()
            }
            Err(error) => {
                self.exclude(from);
                vec![(from, Misbehaviour::MalformedShare(error))]
            }
        };
        if blames.is_empty() { Ok(()) } else { Err(blames) }
    }

    fn exclude(&mut self, party: PartyId) {
        self.excluded.insert(party);
        if let (State::AwaitingShares { shares, .. }, Some(index)) = (&mut self.state, index_of(party)) {
            shares.remove(index);
        }
        self.give_up_if_hopeless();
    }

    fn progress(&self) -> Progress {
        match self.state {
            State::AwaitingOwnShare { .. } => Progress::NextRound,
            State::AwaitingShares { .. } => Progress::Waiting,
            State::Done(_) => Progress::Finalize,
            State::Failed(_) => Progress::Failed,
        }
    }

    fn contributions(&self) -> (usize, usize) {
        let needed = usize::from(self.setting.threshold.k());
        match &self.state {
            State::AwaitingShares { shares, .. } => (shares.len(), needed),
            State::Done(outcome) => (outcome.contributors.len(), needed),
            State::AwaitingOwnShare { .. } | State::Failed(_) => (0, needed),
        }
    }

    fn finalize(self) -> Result<Outcome, Abort> {
        match self.state {
            State::Done(outcome) => Ok(outcome),
            State::Failed(abort) => Err(abort),
            State::AwaitingOwnShare { .. } | State::AwaitingShares { .. } => {
                Err(Abort::Bug(Bug("asked for a result before there is one")))
            }
        }
    }
}
