//! Programs of `theta-mpc` at all parties, in one process and on one thread, without a network.

use std::{collections::VecDeque, convert::Infallible, future::Future};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta::exit::Failure;
use theta_mpc::{Party, Program, Stop};
use theta_rounds::{Driver, Effect, Input, LockStep, Machine, PartyId, Recipient};
use theta_sharing::{ShareIndex, Threshold};

use super::party;

/// Runs a program, which `begin` gives for each party, at all parties of a group: what each had in the end, in order.
pub(super) fn run<O, F, B>(
    threshold: Threshold,
    rng: &mut ChaCha20Rng,
    begin: impl FnMut(ShareIndex) -> Result<B, Failure>,
) -> Result<Vec<O>, Failure>
where
    O: Send + 'static,
    F: Future<Output = Result<O, Stop>> + Send + 'static,
    B: FnOnce(Party) -> F + Send + 'static,
{
    let first = ChaCha20Rng::from_rng(rng);
    run_with(threshold, first, rng, begin)
}

/// As [`run`]; what the first party draws comes from a generator of its own.
pub(super) fn run_with<O, F, B>(
    threshold: Threshold,
    mut first: ChaCha20Rng,
    others: &mut ChaCha20Rng,
    mut begin: impl FnMut(ShareIndex) -> Result<B, Failure>,
) -> Result<Vec<O>, Failure>
where
    O: Send + 'static,
    F: Future<Output = Result<O, Stop>> + Send + 'static,
    B: FnOnce(Party) -> F + Send + 'static,
{
    let mut machines = Vec::new();
    for index in threshold.indices() {
        let program = Program::new(index, threshold, begin(index)?).map_err(Failure::internal)?;
        let members = threshold.indices().map(PartyId::of_share);
        machines.push(Driver::new(PartyId::of_share(index), members, LockStep::new(program)));
    }
    let mut results: Vec<Option<O>> = machines.iter().map(|_| None).collect();
    let mut queue: VecDeque<(usize, Input<Infallible>)> =
        (0..machines.len()).map(|place| (place, Input::Start)).collect();
    while let Some((place, input)) = queue.pop_front() {
        let machine = machines.get_mut(place).ok_or_else(|| Failure::internal("a message to nobody"))?;
        let rng = if place == 0 { &mut first } else { &mut *others };
        for effect in machine.handle(input, rng) {
            match effect {
                Effect::Send { to: Recipient::Party(peer), slot, channel, payload } => {
                    let from = PartyId::of_share(party(place)?);
                    queue.push_back((peer.share().position(), Input::Message { from, slot, channel, payload }));
                }
                Effect::Finished(result) => {
                    let result = result.map_err(Failure::internal)?;
                    if let Some(kept) = results.get_mut(place) {
                        *kept = Some(result);
                    }
                }
                Effect::Blame(blame) => return Err(Failure::internal(blame)),
                Effect::Send { .. } => return Err(Failure::internal("programs send to one party at a time")),
                Effect::Ask(never) => match never {},
            }
        }
    }
    let results: Option<Vec<O>> = results.into_iter().collect();
    results.ok_or_else(|| Failure::internal("a party did not finish"))
}
