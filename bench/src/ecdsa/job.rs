//! What a network carries the messages of: one party's part of one program.

use std::{
    convert::Infallible,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use rand_core::CryptoRng;
use theta::exit::Failure;
use theta_mpc::{Misbehaviour, Party, Program, Stop};
use theta_rounds::{Channel, Driver, Effect, Input, LockStep, Machine, PartyId, Recipient, Slot};
use theta_sharing::Threshold;

use super::{
    cost::Cost,
    phase::{Meter, Phase, Record},
};

/// A message between two parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) from: PartyId,
    pub(super) to: PartyId,
    pub(super) slot: Slot,
    pub(super) payload: Bytes,
}

/// The program's result at one party, when there is one.
type Kept<O> = Arc<Mutex<Option<O>>>;
type AnyMachine<O> = Box<dyn Machine<Output = O, Misbehaviour = Misbehaviour, Ask = Infallible, Supply = Infallible>>;

/// A machine whose result is kept for whoever made it, so that networks need not know the type of it.
struct Keeper<O> {
    machine: AnyMachine<O>,
    result: Kept<O>,
}

/// A machine without the type of its result.
trait Untyped: Send {
    /// Takes an input of the party `local`. Returns what is to be sent.
    fn handle(
        &mut self,
        local: PartyId,
        input: Input<Infallible>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<Message>, Failure>;
    /// Whether there is a result.
    fn is_finished(&self) -> bool;
}

impl<O: Send> Untyped for Keeper<O> {
    fn handle(
        &mut self,
        from: PartyId,
        input: Input<Infallible>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<Message>, Failure> {
        let mut messages = Vec::new();
        for effect in self.machine.handle(input, rng) {
            match effect {
                Effect::Send { to: Recipient::Party(to), slot, channel: Channel::Private, payload } => {
                    messages.push(Message { from, to, slot, payload });
                }
                Effect::Finished(result) => {
                    let result = result.map_err(Failure::internal)?;
                    *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                }
                Effect::Blame(blame) => return Err(Failure::internal(blame)),
                Effect::Send { .. } => return Err(Failure::internal("a program that sends to more than one party")),
                Effect::Ask(never) => match never {},
            }
        }
        Ok(messages)
    }

    fn is_finished(&self) -> bool {
        self.machine.is_finished()
    }
}

/// One party's part of one program.
pub(super) struct Job {
    local: PartyId,
    machine: Box<dyn Untyped>,
    meter: Arc<Meter>,
}

impl Job {
    /// The party.
    pub(super) const fn local(&self) -> PartyId {
        self.local
    }

    /// What notes its phases.
    pub(super) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Begins. Returns what is to be sent.
    pub(super) fn start(&mut self, rng: &mut dyn CryptoRng) -> Result<Vec<Message>, Failure> {
        self.handle(Input::Start, rng)
    }

    /// Takes a message. Returns what is to be sent.
    pub(super) fn take(&mut self, message: Message, rng: &mut dyn CryptoRng) -> Result<Vec<Message>, Failure> {
        let Message { from, slot, payload, .. } = message;
        self.handle(Input::Message { from, slot, channel: Channel::Private, payload }, rng)
    }

    fn handle(&mut self, input: Input<Infallible>, rng: &mut dyn CryptoRng) -> Result<Vec<Message>, Failure> {
        let messages = self.machine.handle(self.local, input, rng)?;
        for message in &messages {
            self.meter.sent(message.payload.len(), message.slot.number)?;
        }
        Ok(messages)
    }

    /// Whether there is a result.
    pub(super) fn is_finished(&self) -> bool {
        self.machine.is_finished()
    }
}

/// What carries messages between the parties.
pub(super) trait Network {
    /// Runs one program to its end, at every party. The jobs are in the order of the parties.
    fn run(&mut self, jobs: Vec<Job>) -> Result<Vec<Record>, Failure>;

    /// Runs programs, so many of them at a time. Returns how long it took together; `None` if this network runs one after the other only.
    fn run_at_once(&mut self, programs: Vec<Vec<Job>>, at_once: usize) -> Result<Option<Duration>, Failure>;
}

/// What `begin` makes for each party of a program.
type Begun<O> = (Vec<Job>, Vec<Kept<O>>);

/// Runs the program that `begin` makes for each party in turn. Returns the results, by party, and what it cost.
pub(super) fn run<O, F, P>(
    network: &mut dyn Network,
    threshold: Threshold,
    first: Phase,
    begin: impl FnMut() -> Result<P, Failure>,
) -> Result<(Vec<O>, Cost), Failure>
where
    O: Send + 'static,
    F: Future<Output = Result<O, Stop>> + Send + 'static,
    P: FnOnce(Party, Arc<Meter>) -> F + Send + 'static,
{
    let (jobs, kept) = jobs(threshold, first, begin)?;
    let cost = Cost::of(&network.run(jobs)?);
    Ok((results(kept)?, cost))
}

/// Runs so many programs that `begin` makes, for each of them and each party in turn, some at a time. Returns how long they took together, if the network
/// runs more than one at a time.
pub(super) fn run_at_once<O, F, P>(
    network: &mut dyn Network,
    threshold: Threshold,
    (programs, at_once): (usize, usize),
    mut begin: impl FnMut(usize) -> Result<P, Failure>,
) -> Result<Option<Duration>, Failure>
where
    O: Send + 'static,
    F: Future<Output = Result<O, Stop>> + Send + 'static,
    P: FnOnce(Party, Arc<Meter>) -> F + Send + 'static,
{
    let (mut all, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..programs {
        let mut place = 0..;
        let (jobs, results) = jobs(threshold, Phase::SetUp, || begin(place.next().unwrap_or(0)))?;
        all.push(jobs);
        kept.push(results);
    }
    let time = network.run_at_once(all, at_once)?;
    if time.is_some() {
        kept.into_iter().try_for_each(|kept| results(kept).map(drop))?;
    }
    Ok(time)
}

fn jobs<O, F, P>(
    threshold: Threshold,
    first: Phase,
    mut begin: impl FnMut() -> Result<P, Failure>,
) -> Result<Begun<O>, Failure>
where
    O: Send + 'static,
    F: Future<Output = Result<O, Stop>> + Send + 'static,
    P: FnOnce(Party, Arc<Meter>) -> F + Send + 'static,
{
    let (mut jobs, mut kept) = (Vec::new(), Vec::new());
    for index in threshold.indices() {
        let (meter, result) = (Arc::new(Meter::new(first)), Kept::<O>::default());
        let (begin, its_meter) = (begin()?, Arc::clone(&meter));
        let program = Program::new(index, threshold, move |party| {
            let program = begin(party, Arc::clone(&its_meter));
            async move {
                let result = program.await;
                its_meter.end();
                result
            }
        });
        let (local, members) = (PartyId::of_share(index), threshold.indices().map(PartyId::of_share));
        let program = LockStep::new(program.map_err(Failure::internal)?);
        let machine: AnyMachine<O> = Box::new(Driver::new(local, members, program));
        kept.push(Arc::clone(&result));
        jobs.push(Job { local, machine: Box::new(Keeper { machine, result }), meter });
    }
    Ok((jobs, kept))
}

fn results<O>(kept: Vec<Kept<O>>) -> Result<Vec<O>, Failure> {
    let take = |kept: Kept<O>| kept.lock().unwrap_or_else(PoisonError::into_inner).take();
    let results: Option<Vec<O>> = kept.into_iter().map(take).collect();
    results.ok_or_else(|| Failure::internal("a party without a result"))
}
