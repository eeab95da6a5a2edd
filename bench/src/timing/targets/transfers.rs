//! Oblivious transfer: what the receiver chooses and what the sender keeps, in base OTs and in the extension. The extension's batches contain
//! the expansion of its trees, its transposition and its check.

use std::{cell::Cell, convert::Infallible, fmt::Display, time::Duration};

use rand_chacha::ChaCha20Rng;
use rand_core::{SeedableRng, TryCryptoRng, TryRng};
use theta::exit::Failure;
use theta_groups::{Group, P256, Ristretto255};
use theta_ot::{Choices, Session, base, extension};

use super::{Drawn, Target, party, seeded};
use crate::timing::dudect::{Class, clocked};

/// The field size of the extension: what MASCOT takes.
const K: u8 = 4;
/// Transfers in a batch of the extension.
const TRANSFERS: usize = 1024;
/// Base OTs of one step.
const BASE: usize = 8;
/// Batches of one set-up. Two senders that are kept for a whole trial differ in where they lie in memory, too, and that shows.
const BATCHES: usize = 10;

pub(super) fn all() -> Vec<Target> {
    let mut all = Vec::from(base_transfers::<Ristretto255>());
    all.extend(base_transfers::<P256>());
    all.extend(extensions());
    all
}

/// The session of all transfers here.
pub(super) fn session() -> Result<Session, Failure> {
    Session::new([9; 32], party(0)?, party(1)?).map_err(Failure::internal)
}

/// Both ends of an extension.
pub(super) fn set_up(rng: &mut ChaCha20Rng) -> Result<(extension::Sender, extension::Receiver), Failure> {
    let (sender, ask) = extension::Setup::<Ristretto255>::new(session()?, K, rng).map_err(Failure::internal)?;
    let receiver = extension::Receiver::new::<Ristretto255>(session()?, K, &ask, rng);
    let (receiver, grown) = receiver.map_err(Failure::internal)?;
    Ok((sender.finish(&grown).map_err(Failure::internal)?, receiver))
}

/// A state that every step consumes and gives back.
pub(super) struct Kept<T>(Cell<Option<T>>);

impl<T> Kept<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Cell::new(Some(value)))
    }

    pub(super) fn with<U, E: Display>(&self, step: impl FnOnce(T) -> Result<(T, U), E>) -> Result<U, Failure> {
        let value = self.0.take().ok_or_else(|| Failure::internal("a state that a failed step has consumed"))?;
        let (value, result) = step(value).map_err(Failure::internal)?;
        self.0.set(Some(value));
        Ok(result)
    }
}

/// Some base OTs, all with choice 0 or all with choice 1.
fn all_alike(class: Class) -> Choices {
    Choices::from_le_bytes(&[if class == Class::Fixed { 0 } else { 0xff }; BASE / 8])
}

fn base_transfers<G: Group>() -> [Target; 3] {
    let named = |step: &str| format!("ot-base-{step}-{}", G::NAME);
    [
        Target::new(named("ask"), "choices 0, or 1", |trial| {
            let session = session()?;
            trial.fallible_steps(
                |class, rng| Ok((all_alike(class), ChaCha20Rng::from_rng(rng))),
                |(choices, mut rng)| base::Receiver::<G>::new(session, choices, &mut rng),
            )
        }),
        Target::new(named("receive"), "choices 0, or 1", |trial| {
            let session = session()?;
            trial.fallible_steps(
                |class, rng| {
                    let asked = base::Receiver::<G>::new(session, all_alike(class), rng);
                    let (receiver, ask) = asked.map_err(Failure::internal)?;
                    let (_, answer) = base::send::<G>(session, BASE, &ask, rng).map_err(Failure::internal)?;
                    Ok((receiver, answer))
                },
                |(receiver, answer)| receiver.finish(&answer),
            )
        }),
        Target::new(named("send"), "exponents the same, or random", |trial| {
            let session = session()?;
            trial.fallible_steps(
                |class, rng| {
                    let asked = base::Receiver::<G>::new(session, Choices::random(BASE, rng), rng);
                    let (_, ask) = asked.map_err(Failure::internal)?;
                    Ok((ask, seeded(class, rng)))
                },
                |(ask, mut rng)| base::send::<G>(session, BASE, &ask, &mut rng),
            )
        }),
    ]
}

fn extensions() -> [Target; 3] {
    [
        Target::new("ot-extension-receive", "choices 0, or random", |trial| {
            let (_, receiver) = set_up(trial.rng())?;
            let receiver = Kept::new(receiver);
            trial.fallible_steps(
                |class, rng| Ok((choices(class, rng), ChaCha20Rng::from_rng(rng))),
                |(choices, mut rng)| {
                    receiver.with(|receiver| {
                        let extended = receiver.extend(choices, &mut rng);
                        extended.map(|(receiver, message, received)| (receiver, (message, received)))
                    })
                },
            )
        }),
        Target::new("ot-extension-send", "Delta zero, or random", |trial| {
            trial.samples(|class, rng| Ok(sender(class, rng)?.batches))
        }),
        Target::new("ot-extension-set-up", "Delta zero, or random", |trial| {
            trial.samples(|class, rng| Ok(sender(class, rng)?.set_up))
        }),
    ]
}

/// Choices of a batch.
fn choices(class: Class, rng: &mut ChaCha20Rng) -> Choices {
    Choices::random(TRANSFERS, &mut Drawn::new(class, rng))
}

/// The times of a sender.
struct Spent {
    set_up: Duration,
    batches: Duration,
}

/// Sets up a sender and lets it take some batches.
fn sender(class: Class, rng: &mut ChaCha20Rng) -> Result<Spent, Failure> {
    let mut spent = Spent { set_up: Duration::ZERO, batches: Duration::ZERO };
    let mut drawn = ZeroFirst { is_next: class == Class::Fixed, rng: ChaCha20Rng::from_rng(rng) };
    let begun = extension::Setup::<Ristretto255>::new(session()?, K, &mut drawn);
    let (setup, ask) = begun.map_err(Failure::internal)?;
    let receiver = extension::Receiver::new::<Ristretto255>(session()?, K, &ask, rng);
    let (mut receiver, grown) = receiver.map_err(Failure::internal)?;
    let mut sender = clocked(&mut spent.set_up, || setup.finish(&grown)).map_err(Failure::internal)?;
    for _ in 0..BATCHES {
        let extended = receiver.extend(Choices::random(TRANSFERS, rng), rng);
        let (next, message, _) = extended.map_err(Failure::internal)?;
        receiver = next;
        let taken = clocked(&mut spent.batches, || sender.extend(TRANSFERS, &message));
        sender = taken.map_err(Failure::internal)?.0;
    }
    Ok(spent)
}

/// Random bytes, the first of which may be zeros: Delta is what a sender draws first.
struct ZeroFirst {
    is_next: bool,
    rng: ChaCha20Rng,
}

impl TryRng for ZeroFirst {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.rng.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.rng.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.rng.try_fill_bytes(bytes)?;
        if std::mem::take(&mut self.is_next) {
            bytes.fill(0);
        }
        Ok(())
    }
}

impl TryCryptoRng for ZeroFirst {}
