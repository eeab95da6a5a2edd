//! What transfers and products cost: `cargo bench -p theta-ot`.
//!
//! CPU time of one thread, the least of several runs, of each side alone.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark has no caller")]

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rustix::time::{ClockId, clock_gettime};
use theta_groups::{Group, P256, Ristretto255, Scalar, Secp256k1};
use theta_names::ShareIndex;
use theta_ot::mascot::{Made, Mesh, Messages, Parties, Party};
use theta_ot::{Choices, Session, base, copee, extension, gilboa};

/// The least time of a number of runs, in seconds, and what the last gave.
fn least<T>(runs: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    let mut least = f64::MAX;
    let mut last = None;
    for _ in 0..runs {
        let start = cpu_seconds();
        last = Some(black_box(run()));
        least = least.min(cpu_seconds() - start);
    }
    (least, last.unwrap())
}

/// The CPU time that this thread has used, in seconds: what other programs take does not count, what they do to caches and clock
/// rates does.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn session() -> Session {
    Session::new([9; 32], ShareIndex::try_from(1).unwrap(), ShareIndex::try_from(2).unwrap()).unwrap()
}

fn base_transfers<G: Group>(rng: &mut ChaCha20Rng) {
    let choices = |rng: &mut ChaCha20Rng| Choices::random(128, rng);
    let (ask, _) = least(5, || base::Receiver::<G>::new(session(), choices(rng), rng).unwrap());
    let (receiver, message) = base::Receiver::<G>::new(session(), choices(rng), rng).unwrap();
    let (send, (_, answer)) = least(5, || base::send::<G>(session(), 128, &message, rng).unwrap());
    let start = cpu_seconds();
    black_box(receiver.finish(&answer).unwrap());
    let finish = cpu_seconds() - start;
    println!(
        "{:13} ask {:5.2} ms, answer {:5.2} ms, finish {:5.2} ms; {} + {} bytes",
        G::NAME,
        1e3 * ask,
        1e3 * send,
        1e3 * finish,
        message.0.len(),
        answer.0.len()
    );
}

type Pair = (extension::Sender, extension::Receiver);

fn set_up(k: u8, rng: &mut ChaCha20Rng) -> Pair {
    let (sender, ask) = extension::Setup::<Ristretto255>::new(session(), k, rng).unwrap();
    let (receiver, grown) = extension::Receiver::new::<Ristretto255>(session(), k, &ask, rng).unwrap();
    (sender.finish(&grown).unwrap(), receiver)
}

fn extensions(rng: &mut ChaCha20Rng) {
    const N: usize = 1 << 17;
    println!("\nextension, batches of {N}, random OTs of 128 bits; million OT/s of each side alone");
    for k in 1..=8 {
        let start = cpu_seconds();
        let (mut sender, mut receiver) = set_up(k, rng);
        let setup = cpu_seconds() - start;
        let mut best = [f64::MAX; 4];
        let mut bytes = 0;
        for _ in 0..5 {
            let choices = Choices::random(N, rng);
            let (receiving, (next, message, received)) = once(|| receiver.extend(choices, rng).unwrap());
            receiver = next;
            let (sending, (next, sent)) = once(|| sender.extend(N, &message).unwrap());
            sender = next;
            let (hashing_received, _) = once(|| received.into_seeds());
            let (hashing_sent, _) = once(|| sent.into_seeds());
            bytes = message.0.len();
            for (best, time) in best.iter_mut().zip([receiving, sending, hashing_received, hashing_sent]) {
                *best = best.min(time);
            }
        }
        let [receiving, sending, hashing_received, hashing_sent] = best.map(|time| time * 1e9 / N as f64);
        println!(
            "k = {k}: receiver {:6.2}, sender {:6.2}; ns/OT {receiving:5.1} + hash {hashing_received:4.1}, {sending:5.1} + hash {hashing_sent:4.1}; \
             {:5.2} bytes/OT; set-up {:5.1} ms both sides",
            1e3 / (receiving + hashing_received),
            1e3 / (sending + hashing_sent),
            bytes as f64 / N as f64,
            1e3 * setup
        );
    }
}

fn once<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = cpu_seconds();
    let result = black_box(run());
    (cpu_seconds() - start, result)
}

fn scalars<S: Scalar>(n: usize, rng: &mut ChaCha20Rng) -> Vec<S> {
    (0..n).map(|_| S::random(rng)).collect()
}

fn products<G: Group>(rng: &mut ChaCha20Rng) {
    const N: usize = 512;
    for k in [1, 2, 4] {
        let (mut sender, mut receiver) = set_up(k, rng);
        let (a, b) = (scalars::<G::Scalar>(N, rng), scalars::<G::Scalar>(N, rng));
        let (mut sending, mut receiving, mut bytes) = (f64::MAX, f64::MAX, 0);
        for _ in 0..5 {
            let (first, (next, message, received)) = once(|| receiver.extend(Choices::of_scalars(&b), rng).unwrap());
            receiver = next;
            let (second, (next, (corrections, _))) = once(|| {
                let (sender, sent) = sender.extend(256 * N, &message).unwrap();
                (sender, gilboa::send(sent, &a).unwrap())
            });
            sender = next;
            let (third, _) = once(|| gilboa::receive::<G::Scalar>(received, &corrections).unwrap());
            sending = sending.min(second);
            receiving = receiving.min(first + third);
            bytes = message.0.len() + corrections.0.len();
        }
        println!(
            "{:13} Gilboa, k = {k}: sender {:5.1} us, receiver {:5.1} us a product, {:6.0} bytes a product",
            G::NAME,
            1e6 * sending / N as f64,
            1e6 * receiving / N as f64,
            bytes as f64 / N as f64
        );
    }
}

fn copees<G: Group>(rng: &mut ChaCha20Rng) {
    const N: usize = 512;
    let delta = theta_groups::Secret::new(G::Scalar::random(rng));
    for k in [1, 2, 3, 4, 6] {
        let (sender, receiver) = set_up(2, rng);
        let choices = Choices::of_scalars(core::slice::from_ref(delta.expose()));
        let (_, message, received) = receiver.extend(choices, rng).unwrap();
        let (_, sent) = sender.extend(256, &message).unwrap();
        let (mut sender, opening) = copee::Sender::new(&session(), k, &sent.into_seeds()).unwrap();
        let mut receiver = copee::Receiver::new(&session(), k, &delta, received.into_seeds(), &opening).unwrap();
        let x = scalars::<G::Scalar>(N, rng);
        let (mut sending, mut receiving, mut bytes) = (f64::MAX, f64::MAX, 0);
        for _ in 0..5 {
            let (first, (next, corrections, _)) = once(|| sender.extend(&x).unwrap());
            sender = next;
            let (second, (next, _)) = once(|| receiver.extend::<G::Scalar>(N, &corrections).unwrap());
            receiver = next;
            (sending, receiving, bytes) = (sending.min(first), receiving.min(second), corrections.0.len());
        }
        println!(
            "{:13} COPEe, k = {k}: P_A {:5.1} us, P_B {:5.1} us, {:6.0} bytes a product",
            G::NAME,
            1e6 * sending / N as f64,
            1e6 * receiving / N as f64,
            bytes as f64 / N as f64
        );
    }
}

type All<T> = BTreeMap<ShareIndex, T>;

/// Who gets what, and how many bytes that is.
fn deliver(sent: &All<Messages>, bytes: &mut usize) -> All<Messages> {
    let mut received: All<Messages> = sent.keys().map(|party| (*party, Messages::new())).collect();
    for (from, messages) in sent {
        for (to, message) in messages {
            *bytes += message.len();
            received.get_mut(to).unwrap().insert(*from, message.clone());
        }
    }
    received
}

/// A round of all parties, one after the other.
fn round<T, U>(
    states: All<T>,
    sent: &All<Messages>,
    bytes: &mut usize,
    mut step: impl FnMut(T, &Messages) -> (U, Messages),
) -> (All<U>, All<Messages>) {
    let mut received = deliver(sent, bytes);
    let (mut next, mut sent) = (All::new(), All::new());
    for (party, state) in states {
        let (state, messages) = step(state, &received.remove(&party).unwrap());
        next.insert(party, state);
        sent.insert(party, messages);
    }
    (next, sent)
}

fn mesh<S: Scalar>(n: u16, bytes: &mut usize, rng: &mut ChaCha20Rng) -> All<Party<S>> {
    let everybody: BTreeSet<_> = (1..=n).map(|party| ShareIndex::try_from(party).unwrap()).collect();
    let (mut states, mut sent) = (All::new(), All::new());
    for me in &everybody {
        let others = everybody.iter().copied().filter(|party| party != me).collect();
        let (state, messages) = Mesh::<S>::begin(Parties::new([8; 32], *me, others).unwrap(), rng).unwrap();
        states.insert(*me, state);
        sent.insert(*me, messages);
    }
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages, rng).unwrap());
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages).unwrap());
    round(states, &sent, bytes, |state, messages| (state.handle(messages).unwrap().0, Messages::new())).0
}

fn batch<S: Scalar>(
    parties: All<Party<S>>,
    n: usize,
    bytes: &mut usize,
    rng: &mut ChaCha20Rng,
) -> (All<Party<S>>, Vec<Made<S>>) {
    let nothing = parties.keys().map(|party| (*party, Messages::new())).collect();
    let (states, sent) = round(parties, &nothing, bytes, |state, _| state.triples(n, rng).unwrap());
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages, rng).unwrap());
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages).unwrap());
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages, rng).unwrap());
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages).unwrap());
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages, rng).unwrap());
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages).unwrap());
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages, rng).unwrap());
    let (states, sent) = round(states, &sent, bytes, |state, messages| state.handle(messages).unwrap());
    let mut made = Vec::new();
    let (parties, _) = round(states, &sent, bytes, |state, messages| {
        let (party, these) = state.finish(messages).unwrap();
        made.push(these);
        (party, Messages::new())
    });
    (parties, made)
}

/// All parties on one thread.
fn mascot<S: Scalar>(name: &str, rng: &mut ChaCha20Rng) {
    const N: usize = 256;
    for n in [2, 3, 5] {
        let mut set_up_bytes = 0;
        let (set_up, mut parties) = once(|| mesh::<S>(n, &mut set_up_bytes, rng));
        let (mut best, mut bytes) = (f64::MAX, 0);
        for _ in 0..3 {
            bytes = 0;
            let (time, (next, _)) = once(|| batch(parties, N, &mut bytes, rng));
            parties = next;
            best = best.min(time);
        }
        let each = f64::from(n);
        println!(
            "{name:13} MASCOT, {n} parties: {:6.1} us of each party a triple, {:6.2} kB of each party a triple; set-up {:5.1} ms, {:6.1} kB",
            1e6 * best / N as f64 / each,
            bytes as f64 / N as f64 / each / 1e3,
            1e3 * set_up / each,
            set_up_bytes as f64 / each / 1e3
        );
    }
}

fn main() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    println!("128 base OTs");
    base_transfers::<Ristretto255>(&mut rng);
    base_transfers::<P256>(&mut rng);
    extensions(&mut rng);
    println!();
    products::<P256>(&mut rng);
    products::<Secp256k1>(&mut rng);
    println!();
    copees::<P256>(&mut rng);
    copees::<Secp256k1>(&mut rng);
    println!();
    mascot::<<P256 as Group>::Scalar>("p256", &mut rng);
    mascot::<<Secp256k1 as Group>::Scalar>("secp256k1", &mut rng);
}
