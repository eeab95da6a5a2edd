//! What transfers and products cost: `cargo bench -p theta-ot`.
//!
//! CPU time of one thread, the least of several runs, of each side alone. With the argument `leaks`, the timing test of
//! `leaks.rs` runs instead (minutes).

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark has no caller")]

use std::hint::black_box;
use std::time::Instant;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{Group, P256, Ristretto255, Scalar, Secp256k1};
use theta_names::ShareIndex;
use theta_ot::{Choices, Session, base, copee, extension, gilboa};

/// The least time of a number of runs, in seconds, and what the last gave.
fn least<T>(runs: usize, mut run: impl FnMut() -> T) -> (f64, T) {
    let mut least = f64::MAX;
    let mut last = None;
    for _ in 0..runs {
        let start = Instant::now();
        last = Some(black_box(run()));
        least = least.min(start.elapsed().as_secs_f64());
    }
    (least, last.unwrap())
}

fn session() -> Session {
    Session::new([9; 32], ShareIndex::try_from(1).unwrap(), ShareIndex::try_from(2).unwrap()).unwrap()
}

fn base_transfers<G: Group>(rng: &mut ChaCha20Rng) {
    let choices = |rng: &mut ChaCha20Rng| Choices::random(128, rng);
    let (ask, _) = least(5, || base::Receiver::<G>::new(session(), choices(rng), rng).unwrap());
    let (receiver, message) = base::Receiver::<G>::new(session(), choices(rng), rng).unwrap();
    let (send, (_, answer)) = least(5, || base::send::<G>(session(), 128, &message, rng).unwrap());
    let start = Instant::now();
    black_box(receiver.finish(&answer).unwrap());
    let finish = start.elapsed().as_secs_f64();
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
        let start = Instant::now();
        let (mut sender, mut receiver) = set_up(k, rng);
        let setup = start.elapsed().as_secs_f64();
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
    let start = Instant::now();
    let result = black_box(run());
    (start.elapsed().as_secs_f64(), result)
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
}
