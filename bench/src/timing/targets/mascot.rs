//! Triples and masked products of MASCOT between two parties: of triples the products, the sacrifice and the check of MACs, of masked products, which
//! ECDSA's nonces are made of, all of it; at the first of them.

use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::CryptoRng;
use theta::exit::Failure;
use theta_groups::P256Scalar;
use theta_ot::{
    Misuse,
    mascot::{Extending, Fault, Mesh, Messages, Parties, Party},
};

use super::{Drawn, Target, party, transfers::Kept};
use crate::timing::dudect::{Class, clocked};

/// Triples, or masked products, of a batch.
const COUNT: usize = 2;
/// So many batches a set-up makes, which has transfers for some more.
const BATCHES: u32 = 1_000;
/// What tells the classes apart.
const CLASSES: &str = "factors zero, or random";

/// Something of each party.
type Both<T> = [T; 2];

/// What begins a batch.
type Begin = fn(Party<P256Scalar>, &mut dyn CryptoRng) -> Result<(Extending<P256Scalar>, Messages), Misuse>;

/// How long the first party took.
#[derive(Default)]
struct Spent {
    products: Duration,
    sacrifice: Duration,
    macs: Duration,
    /// For all other steps.
    rest: Duration,
}

pub(super) fn all() -> Vec<Target> {
    vec![
        target("mascot-products", triples, |spent| spent.products),
        target("mascot-sacrifice", triples, |spent| spent.sacrifice),
        target("mascot-mac-check", triples, |spent| spent.macs),
        target("mascot-masked", masked, |spent| spent.products + spent.sacrifice + spent.macs + spent.rest),
    ]
}

fn triples(party: Party<P256Scalar>, rng: &mut dyn CryptoRng) -> Result<(Extending<P256Scalar>, Messages), Misuse> {
    party.triples(COUNT, rng)
}

/// As many random values beside the masked products.
fn masked(party: Party<P256Scalar>, rng: &mut dyn CryptoRng) -> Result<(Extending<P256Scalar>, Messages), Misuse> {
    party.masked(COUNT, COUNT, rng)
}

fn target(name: &str, begin: Begin, time: fn(&Spent) -> Duration) -> Target {
    Target::new(name, CLASSES, move |trial| {
        let mut parties = Kept::new(set_up(trial.rng())?);
        let mut batches = 0;
        trial.samples(|class, rng| {
            if batches == BATCHES {
                (parties, batches) = (Kept::new(set_up(rng)?), 0);
            }
            batches += 1;
            Ok(time(&parties.with(|parties| batch(parties, begin, class, rng))?))
        })
    })
}

/// Does a step, and adds its time if it is the first party's.
fn of_first<T>(place: usize, spent: &mut Duration, step: impl FnOnce() -> T) -> T {
    if place == 0 { clocked(spent, step) } else { step() }
}

/// One round: each party takes what the other sent.
fn round<T, U>(
    states: Both<T>,
    sent: Both<Messages>,
    mut step: impl FnMut(usize, T, &Messages) -> Result<(U, Messages), Fault>,
) -> Result<(Both<U>, Both<Messages>), Failure> {
    let ([first, second], [to_second, to_first]) = (states, sent);
    let (first, answer) = step(0, first, &from(1, to_first)?).map_err(Failure::internal)?;
    let (second, other_answer) = step(1, second, &from(0, to_second)?).map_err(Failure::internal)?;
    Ok(([first, second], [answer, other_answer]))
}

/// A message as its recipient has it: by its sender.
fn from(place: usize, messages: Messages) -> Result<Messages, Failure> {
    let sender = party(place)?;
    Ok(messages.into_values().map(|bytes| (sender, bytes)).collect())
}

/// The parties, ready to make batches.
fn set_up(rng: &mut ChaCha20Rng) -> Result<Both<Party<P256Scalar>>, Failure> {
    let (one, other) = (party(0)?, party(1)?);
    let mut begin = |me, peer| {
        let parties = Parties::new([8; 32], me, [peer].into())?;
        Mesh::<P256Scalar>::begin(parties, rng)
    };
    let (first, to_second) = begin(one, other).map_err(Failure::internal)?;
    let (second, to_first) = begin(other, one).map_err(Failure::internal)?;
    let (states, sent) = ([first, second], [to_second, to_first]);
    let (states, sent) = round(states, sent, |_, state, messages| state.handle(messages, rng))?;
    let (states, sent) = round(states, sent, |_, state, messages| state.handle(messages))?;
    let (parties, _) = round(states, sent, |_, state, messages| Ok((state.handle(messages)?, Messages::new())))?;
    Ok(parties.map(|(party, _)| party))
}

/// A batch. The first party's factors are of the class.
fn batch(
    parties: Both<Party<P256Scalar>>,
    begin: Begin,
    class: Class,
    rng: &mut ChaCha20Rng,
) -> Result<(Both<Party<P256Scalar>>, Spent), Failure> {
    let mut spent = Spent::default();
    let [first, second] = parties;
    let (first, to_second) = begin(first, &mut Drawn::new(class, rng)).map_err(Failure::internal)?;
    let (second, to_first) = begin(second, rng).map_err(Failure::internal)?;
    let (states, sent) = ([first, second], [to_second, to_first]);
    let (states, sent) = round(states, sent, |place, state, messages| {
        of_first(place, &mut spent.products, || state.handle(messages, rng))
    })?;
    let (states, sent) =
        round(states, sent, |place, state, messages| of_first(place, &mut spent.products, || state.handle(messages)))?;
    let (states, sent) =
        round(states, sent, |place, state, messages| of_first(place, &mut spent.rest, || state.handle(messages, rng)))?;
    let (states, sent) =
        round(states, sent, |place, state, messages| of_first(place, &mut spent.rest, || state.handle(messages)))?;
    let (states, sent) = round(states, sent, |place, state, messages| {
        of_first(place, &mut spent.sacrifice, || state.handle(messages, rng))
    })?;
    let (states, sent) =
        round(states, sent, |place, state, messages| of_first(place, &mut spent.rest, || state.handle(messages)))?;
    let (states, sent) =
        round(states, sent, |place, state, messages| of_first(place, &mut spent.macs, || state.handle(messages, rng)))?;
    let (states, sent) =
        round(states, sent, |place, state, messages| of_first(place, &mut spent.rest, || state.handle(messages)))?;
    let (parties, _) = round(states, sent, |place, state, messages| {
        let (party, _) = of_first(place, &mut spent.rest, || state.finish(messages))?;
        Ok((party, Messages::new()))
    })?;
    Ok((parties, spent))
}
