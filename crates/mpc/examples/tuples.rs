//! What threshold ECDSA costs on each black box: all parties in one process, on one thread, without a network.
//!
//! `cargo run --release -p theta-mpc --example tuples [TUPLES]` prints one line for each black box and number of parties:
//! set-up and key generation, tuples, signing, as CPU time of one party (the mean of all), and bytes that one party sends. Tuples are what
//! a program with them takes more than one without. Where an instance may not send enough for so many, it is a batch, and the best of several.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Write as _};
use std::time::Duration;
use std::{env, sync::Arc};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{P256, Secp256k1};
use theta_mpc::ecdsa::{Curve, KeyShare, Request, Tuple, bind, generate, prepare_nonces, sign};
use theta_mpc::{Active, BlackBox, Mascot, Misbehaviour, Party, Passive, Program, Rep3, SemiOt, Shamir, Stop};
use theta_names::{Epoch, ShareIndex};
use theta_rounds::{Driver, Effect, Input, LockStep, Machine, PartyId, Recipient};
use theta_sharing::Threshold;

type Failure = Box<dyn std::error::Error>;
type AnyMachine<O> = Box<dyn Machine<Output = O, Misbehaviour = Misbehaviour, Ask = Infallible, Supply = Infallible>>;

/// A black box that is measured.
trait Measured: BlackBox<Group: Curve> {
    /// The most tuples for which an instance may send enough.
    const BATCH: usize = usize::MAX;
    fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send;
    fn make_for_openings(party: &Party) -> Result<Self, Stop>;
}

macro_rules! measured {
    ($($name:ident),*) => { $(
        impl<G: Curve, M: theta_mpc::Security> Measured for $name<G, M> {
            fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
                Self::new(party)
            }
            fn make_for_openings(party: &Party) -> Result<Self, Stop> {
                Self::openings_only(party)
            }
        }
    )* };
}
measured!(Shamir, Rep3);

macro_rules! measured_in_batches {
    ($($name:ident: $batch:literal),*) => { $(
        impl<G: Curve> Measured for $name<G> {
            const BATCH: usize = $batch;
            fn make(party: &Party) -> impl Future<Output = Result<Self, Stop>> + Send {
                Self::new(party)
            }
            fn make_for_openings(party: &Party) -> Result<Self, Stop> {
                Self::openings_only(party)
            }
        }
    )* };
}
measured_in_batches!(SemiOt: 100, Mascot: 20);

/// CPU time of this thread so far.
fn cpu() -> Result<Duration, Failure> {
    Ok(Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))?)
}

/// What a party has.
type Material<B> = (Arc<KeyShare<B>>, Vec<Tuple<B>>);

/// What a run cost: CPU time of one party, bytes sent by one party, rounds.
struct Cost {
    cpu: Duration,
    bytes: usize,
    rounds: u16,
}

/// Runs a group of machines, each message delivered in order.
fn run<O: Send + 'static>(mut machines: Vec<AnyMachine<O>>) -> Result<(Vec<O>, Cost), Failure> {
    let n = machines.len();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut queue: VecDeque<(usize, Input<Infallible>)> = (0..n).map(|i| (i, Input::Start)).collect();
    let mut results: Vec<Option<O>> = (0..n).map(|_| None).collect();
    let (mut spent, mut bytes, mut rounds) = (Duration::ZERO, 0, 0);
    while let Some((to, input)) = queue.pop_front() {
        let machine = machines.get_mut(to).ok_or("no such party")?;
        let before = cpu()?;
        let effects = machine.handle(input, &mut rng);
        spent += cpu()?.saturating_sub(before);
        for effect in effects {
            match effect {
                Effect::Send { to: Recipient::Party(peer), slot, channel, payload } => {
                    bytes += payload.len();
                    rounds = rounds.max(slot.number);
                    let from = PartyId::of_share(ShareIndex::at(to).ok_or("no such party")?);
                    queue.push_back((peer.share().position(), Input::Message { from, slot, channel, payload }));
                }
                Effect::Finished(result) => {
                    if let Some(place) = results.get_mut(to) {
                        *place = Some(result?);
                    }
                }
                Effect::Blame(blame) => return Err(blame.to_string().into()),
                Effect::Send { .. } => return Err("programs send to one party at a time".into()),
                Effect::Ask(never) => match never {},
            }
        }
    }
    let results = results.into_iter().collect::<Option<Vec<O>>>().ok_or("a party did not finish")?;
    let parties = u32::try_from(n)?;
    Ok((results, Cost { cpu: spent / parties, bytes: bytes / n, rounds }))
}

/// The machines of a program, made for each party in turn.
fn machines<O, F>(
    n: u16,
    t: u16,
    mut begin: impl FnMut() -> Result<Box<dyn FnOnce(Party) -> F + Send>, Failure>,
) -> Result<Vec<AnyMachine<O>>, Failure>
where
    O: Send + 'static,
    F: Future<Output = Result<O, Stop>> + Send + 'static,
{
    let threshold = Threshold::new(t + 1, n)?;
    let mut all: Vec<AnyMachine<O>> = Vec::new();
    for index in threshold.indices() {
        let program = Program::new(index, threshold, begin()?)?;
        let members = threshold.indices().map(PartyId::of_share);
        all.push(Box::new(Driver::new(PartyId::of_share(index), members, LockStep::new(program))));
    }
    Ok(all)
}

/// The results of the last of so many runs, and the least cost.
fn best<O>(runs: usize, mut once: impl FnMut() -> Result<(Vec<O>, Cost), Failure>) -> Result<(Vec<O>, Cost), Failure> {
    let (mut results, mut least) = once()?;
    for _ in 1..runs {
        let (next, cost) = once()?;
        results = next;
        least.cpu = least.cpu.min(cost.cpu);
    }
    Ok((results, least))
}

fn measure<B: Measured>(n: u16, t: u16, count: usize) -> Result<(), Failure> {
    let runs = if count > B::BATCH { 8 } else { 1 };
    let count = count.min(B::BATCH);
    let (_, key_cost) = best(runs, || {
        run(machines(n, t, || {
            Ok(Box::new(|party: Party| async move { generate(&B::make(&party).await?, Epoch::FIRST).await }))
        })?)
    })?;
    let (material, mut cost) = best(runs, || {
        run(machines(n, t, || {
            Ok(Box::new(move |party: Party| async move {
                let black_box = B::make(&party).await?;
                let key = generate(&black_box, Epoch::FIRST).await?;
                let nonces = prepare_nonces(&black_box, Epoch::FIRST, count).await?;
                let tuples = bind(&black_box, nonces, &key).await?;
                Ok((key, tuples))
            }))
        })?)
    })?;
    cost.cpu = cost.cpu.saturating_sub(key_cost.cpu);
    cost.bytes = cost.bytes.saturating_sub(key_cost.bytes);
    cost.rounds = cost.rounds.saturating_sub(key_cost.rounds);
    let mut material: Vec<Material<B>> = material.into_iter().map(|(key, tuples)| (key.into(), tuples)).collect();

    let signatures = u8::try_from(count.min(50))?;
    let mut signing = Cost { cpu: Duration::ZERO, bytes: 0, rounds: 0 };
    for number in 0..signatures {
        let mut parts = material.iter_mut();
        let (_, cost) = run(machines(n, t, || {
            let (key, tuples) = parts.next().ok_or("tuples for each party")?;
            let (key, tuple) = (key.clone(), tuples.pop().ok_or("too few tuples")?);
            let request = Request { tuple: tuple.id(), digest: [number; 32], session: [0; 32] };
            Ok(Box::new(
                move |party: Party| async move { sign(&B::make_for_openings(&party)?, &key, tuple, request).await },
            ))
        })?)?;
        signing = Cost { cpu: signing.cpu + cost.cpu, ..cost };
    }
    let tuples = u32::try_from(count)?;
    let per_tuple = cost.cpu / tuples;
    let bytes = cost.bytes as f64 / f64::from(tuples);
    writeln!(
        io::stdout(),
        "| {} | {} | {n} | {:.2} | {:.1} | {:.0} | {bytes:.0} | {} | {:.3} | {} |",
        <B::Group as theta_groups::Group>::NAME,
        B::NAME,
        key_cost.cpu.as_secs_f64() * 1e3,
        per_tuple.as_secs_f64() * 1e6,
        1.0 / per_tuple.as_secs_f64(),
        cost.rounds,
        (signing.cpu / u32::from(signatures)).as_secs_f64() * 1e3,
        signing.bytes,
    )?;
    Ok(())
}

fn all<G: Curve>(count: usize) -> Result<(), Failure> {
    measure::<Shamir<G, Passive>>(3, 1, count)?;
    measure::<Shamir<G, Passive>>(5, 2, count)?;
    measure::<Shamir<G, Active>>(3, 1, count)?;
    measure::<Shamir<G, Active>>(5, 2, count)?;
    measure::<Rep3<G, Passive>>(3, 1, count)?;
    measure::<Rep3<G, Active>>(3, 1, count)?;
    measure::<SemiOt<G>>(2, 1, count)?;
    measure::<SemiOt<G>>(3, 2, count)?;
    measure::<Mascot<G>>(2, 1, count)?;
    measure::<Mascot<G>>(3, 2, count)
}

fn main() -> Result<(), Failure> {
    let count = env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let mut out = io::stdout();
    writeln!(out, "CPU time of one party; bytes that one party sends; {count} tuples at once.\n")?;
    writeln!(
        out,
        "| curve | black box | n | key generation ms | tuple us | tuples/s | bytes/tuple | rounds | sign ms | sign bytes |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|")?;
    all::<P256>(count)?;
    all::<Secp256k1>(count)
}
