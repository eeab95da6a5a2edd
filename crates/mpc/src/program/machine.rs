//! A program as a protocol in lock-step.

use core::{
    convert::Infallible,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_names::ShareIndex;
use theta_rounds::{Abort, Blames, Bug, Malformed, Outgoing, PartyId, Recipient, Round, RoundProtocol, Slot};
use theta_sharing::Threshold;

use super::{LONGEST_MESSAGE, Misbehaviour, Party, RoundMessage, SEED, Stop};

/// The future of a program.
type Running<O> = Pin<Box<dyn Future<Output = Result<O, Stop>> + Send>>;
/// Makes it.
type Begin<O> = Box<dyn FnOnce(Party) -> Running<O> + Send>;

enum Stage<O> {
    Ready(Begin<O>),
    Running(Running<O>),
    Ended(Result<O, Stop>),
    /// While it changes.
    Between,
}

/// An async program as a [`RoundProtocol`]; the number of a message's slot is the round.
pub struct Program<O> {
    party: Party,
    stage: Stage<O>,
}

impl<O: Send + 'static> Program<O> {
    /// The program that `begin` makes of its party, at party `local` of a group. It starts with its first round, when it
    /// takes a seed for all its randomness.
    ///
    /// # Errors
    /// [`Stop::Input`] if the party is not of the group.
    pub fn new<F>(
        local: ShareIndex,
        threshold: Threshold,
        begin: impl FnOnce(Party) -> F + Send + 'static,
    ) -> Result<Self, Stop>
    where
        F: Future<Output = Result<O, Stop>> + Send + 'static,
    {
        let party = Party::new(local, threshold)?;
        Ok(Self { party, stage: Stage::Ready(Box::new(|party| Box::pin(begin(party)))) })
    }

    pub(super) const fn party(&self) -> &Party {
        &self.party
    }

    /// Goes on until the program waits, without a waker: whoever delivers a message polls again.
    fn poll(&mut self) {
        if let Stage::Running(future) = &mut self.stage
            && let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.stage = Stage::Ended(result);
        }
    }

    /// Those whom the program has blamed since the last call.
    fn blames(&self) -> Blames<Misbehaviour> {
        let blames = mem::take(&mut self.party.state().blames);
        blames.into_iter().filter_map(|(position, what)| Some((Party::id(position)?, what))).collect()
    }

    /// Ends the round that was collected: it becomes the current one, and its messages leave. After a stop nothing leaves.
    fn close_round(&self) -> Result<Vec<Outgoing<RoundMessage>>, Bug> {
        let mut state = self.party.state();
        if !state.building.used && !self.has_ended() {
            return Err(Bug("a program that waits for nothing"));
        }
        let out = state.next_round()?;
        if matches!(self.stage, Stage::Ended(Err(_))) {
            return Ok(Vec::new());
        }
        let round = state.round;
        let message = |(position, payload): (usize, Vec<u8>)| {
            let to = Recipient::Party(Party::id(position)?);
            (!payload.is_empty()).then(|| Outgoing { to, message: RoundMessage { round, payload: payload.into() } })
        };
        Ok(out.into_iter().enumerate().filter_map(message).collect())
    }

    const fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended(_))
    }
}

/// The position of a party in lists of all.
fn position(party: PartyId) -> usize {
    party.share().position()
}

impl<O: Send + 'static> RoundProtocol for Program<O> {
    type Message = RoundMessage;
    type Output = O;
    type Misbehaviour = Misbehaviour;
    type Ask = Infallible;
    type Supply = Infallible;

    fn round(&self) -> Round {
        Round(self.party.state().round)
    }

    fn longest(&self, _slot: Slot) -> usize {
        LONGEST_MESSAGE
    }

    /// A message is as long as this round's parts together, which all parties know.
    fn decode(&self, from: PartyId, slot: Slot, payload: &[u8]) -> Result<RoundMessage, Malformed> {
        let state = self.party.state();
        let expected = state.expected.get(position(from)).copied().unwrap_or(0);
        if slot.number == state.round && payload.len() != expected {
            return Err(Malformed("a message of another length than the round's"));
        }
        drop(state);
        <RoundMessage as theta_rounds::ProtocolMessage>::decode(from, slot, payload)
    }

    /// A program looks at the messages of its round alone.
    fn is_over(&self, slot: Slot) -> bool {
        slot.number < self.party.state().round
    }

    fn do_round(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Outgoing<RoundMessage>>, Bug> {
        self.stage = match mem::replace(&mut self.stage, Stage::Between) {
            Stage::Ready(begin) => {
                let mut seed = Secret::new([0; SEED]);
                rng.fill_bytes(seed.expose_mut());
                self.party.state().begin(seed);
                Stage::Running(begin(self.party.clone()))
            }
            other => other,
        };
        loop {
            if !self.party.state().building.used {
                self.poll();
            }
            let messages = self.close_round()?;
            // A round in which this party neither sends nor waits is over at once.
            if !messages.is_empty() || self.has_ended() || self.party.awaits_any() {
                return Ok(messages);
            }
        }
    }

    fn update(&mut self, from: PartyId, message: RoundMessage) -> Result<(), Blames<Misbehaviour>> {
        let mut state = self.party.state();
        // What comes late is of a round that was left without it.
        if message.round != state.round {
            return Ok(());
        }
        if let Some(place) = state.inbox.get_mut(position(from)) {
            *place = Some(message.payload);
        }
        let goes_on = state.is_complete() || state.is_ragged();
        drop(state);
        if goes_on {
            self.poll();
        }
        let blames = self.blames();
        if blames.is_empty() { Ok(()) } else { Err(blames) }
    }

    fn exclude(&mut self, party: PartyId) {
        let mut state = self.party.state();
        if let Some(lost) = state.lost.get_mut(position(party)) {
            *lost = true;
        }
        drop(state);
        self.poll();
    }

    fn awaits(&self, party: PartyId) -> bool {
        self.party.state().awaits(position(party))
    }

    fn is_ready_for_next_round(&self) -> bool {
        let state = self.party.state();
        match &self.stage {
            Stage::Ready(_) => true,
            // A round that expects nothing, or nothing more, needs no message to go on.
            Stage::Running(_) => state.building.used || !state.awaits_any(),
            Stage::Ended(result) => result.is_ok() && state.building.used,
            Stage::Between => false,
        }
    }

    /// What was collected before the end leaves first, unless the program stopped: then nothing more leaves.
    fn is_ready_to_finalize(&self) -> bool {
        match &self.stage {
            Stage::Ended(result) => result.is_err() || !self.party.state().building.used,
            _ => false,
        }
    }

    fn contributions(&self) -> (usize, usize) {
        let state = self.party.state();
        let expected = state.expected.iter().filter(|expected| **expected > 0).count();
        let come = state.inbox.iter().flatten().count();
        (come + 1, expected + 1)
    }

    fn finalize(self) -> Result<O, Abort> {
        let remaining = self.party.state().lost.iter().filter(|lost| !**lost).count();
        match self.stage {
            Stage::Ended(result) => result.map_err(|stop| stop.into_abort(remaining, self.party.n())),
            _ => Err(Abort::Bug(Bug("asked for a result before there is one"))),
        }
    }
}
