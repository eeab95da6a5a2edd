//! Whether the time that a step takes depends on its secrets: Welch's t-test between two classes of inputs, in the manner of dudect
//! (Reparaz, Balasch, Verbauwhede, *Dude, is my code constant time?*, DATE 2017). `cargo bench -p theta-ot --bench leaks`; takes
//! minutes, and wants a machine that does nothing else.
//!
//! One class has a fixed secret, the other random ones; both take the same code and public inputs of the same kind. Measurements alternate
//! at random. The slowest are cut off, at several places, since interrupts are no leak. Values of |t| beyond 4.5 speak for a leak,
//! if they grow with the number of measurements.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark has no caller")]

use std::hint::black_box;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};
use rustix::time::{ClockId, clock_gettime};
use theta_groups::{Group, P256, P256Scalar, Ristretto255, Scalar, Secret};
use theta_names::ShareIndex;
use theta_ot::{Choices, Session, base, copee, extension, gilboa};

/// The CPU time that this thread has used, in seconds: what other programs take does not count, what they do to caches and clock
/// rates does.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn session() -> Session {
    Session::new([9; 32], ShareIndex::try_from(1).unwrap(), ShareIndex::try_from(2).unwrap()).unwrap()
}

/// Welch's t of two samples.
fn welch(samples: &[Vec<f64>; 2]) -> f64 {
    let [(n, mean, variance), (m, other, other_variance)] = [0, 1].map(|class| {
        let sample = samples.get(class).unwrap();
        let n = sample.len() as f64;
        let mean = sample.iter().sum::<f64>() / n;
        (n, mean, sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0))
    });
    (mean - other) / (variance / n + other_variance / m).sqrt()
}

/// Measures a step that `prepare` makes ready for a class: 0 for the fixed secret, 1 for a random one.
fn test<T, U>(
    name: &str,
    runs: usize,
    mut prepare: impl FnMut(usize, &mut ChaCha20Rng) -> T,
    mut step: impl FnMut(T) -> U,
) -> f64 {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut times = Vec::with_capacity(runs);
    for run in 0..runs {
        let class = usize::from(rng.next_u32() & 1 == 1);
        let ready = prepare(class, &mut rng);
        let start = cpu_seconds();
        let result = black_box(step(ready));
        let time = cpu_seconds() - start;
        drop(result);
        // The first ones warm up caches.
        if run > runs / 20 {
            times.push((time, class));
        }
    }
    let mut sorted: Vec<f64> = times.iter().map(|(time, _)| *time).collect();
    sorted.sort_by(f64::total_cmp);
    let mut worst = 0.0_f64;
    for percent in [50, 75, 90, 95, 100] {
        let limit = *sorted.get((sorted.len() * percent / 100).saturating_sub(1)).unwrap();
        let mut classes = [Vec::new(), Vec::new()];
        for (time, class) in times.iter().filter(|(time, _)| *time <= limit) {
            classes.get_mut(*class).unwrap().push(*time);
        }
        let t = welch(&classes);
        if t.abs() > worst.abs() {
            worst = t;
        }
    }
    let median = sorted.get(sorted.len() / 2).unwrap() * 1e6;
    let verdict = if worst.abs() < 4.5 { "no leak seen" } else { "LOOK" };
    println!("{name:36} {runs:7} runs, median {median:9.1} us, largest |t| {:5.2}: {verdict}", worst.abs());
    worst.abs()
}

/// `blocks` blocks of choices: all zero, or random.
fn choices(class: usize, blocks: usize, rng: &mut ChaCha20Rng) -> Choices {
    let mut bytes = vec![0; 16 * blocks];
    if class == 1 {
        rng.fill_bytes(&mut bytes);
    }
    Choices::from_le_bytes(&bytes)
}

fn scalar(class: usize, rng: &mut ChaCha20Rng) -> P256Scalar {
    if class == 1 { P256Scalar::random(rng) } else { P256Scalar::ONE }
}

/// One base OT with choice 0, or 1.
fn base_receiver<G: Group>(runs: usize) {
    let one = |class: usize, rng: &mut ChaCha20Rng| {
        let byte = if class == 0 { 0 } else { 0xff };
        (Choices::from_le_bytes(&[byte]), ChaCha20Rng::from_rng(rng))
    };
    let begin = |(choices, mut rng)| base::Receiver::<G>::new(session(), choices, &mut rng).unwrap();
    test(&format!("base OT, receiver's question, {}", G::NAME), runs, one, begin);
    let asked = |class: usize, rng: &mut ChaCha20Rng| {
        let (choices, mut other) = one(class, rng);
        let (receiver, ask) = base::Receiver::<G>::new(session(), choices, &mut other).unwrap();
        let (_, answer) = base::send::<G>(session(), 8, &ask, rng).unwrap();
        (receiver, answer)
    };
    let finish = |(receiver, answer): (base::Receiver<G>, base::Answer)| receiver.finish(&answer).unwrap();
    test(&format!("base OT, receiver's seeds, {}", G::NAME), runs, asked, finish);
}

fn set_up(k: u8, rng: &mut ChaCha20Rng) -> (extension::Sender, extension::Receiver) {
    let (sender, ask) = extension::Setup::<Ristretto255>::new(session(), k, rng).unwrap();
    let (receiver, grown) = extension::Receiver::new::<Ristretto255>(session(), k, &ask, rng).unwrap();
    (sender.finish(&grown).unwrap(), receiver)
}

/// A state that every step consumes and gives back.
struct Kept<T>(std::cell::Cell<Option<T>>);

impl<T> Kept<T> {
    fn new(value: T) -> Self {
        Self(std::cell::Cell::new(Some(value)))
    }

    fn with<U>(&self, step: impl FnOnce(T) -> (T, U)) -> U {
        let (value, result) = step(self.0.take().unwrap());
        self.0.set(Some(value));
        result
    }
}

/// The extension's receiver, whose secrets are its choices.
fn extension_receiver(runs: usize) {
    let (_, receiver) = set_up(4, &mut ChaCha20Rng::seed_from_u64(2));
    let receiver = Kept::new(receiver);
    let prepare = |class: usize, rng: &mut ChaCha20Rng| (choices(class, 8, rng), ChaCha20Rng::from_rng(rng));
    test("extension, receiver's batch", runs, prepare, |(choices, mut rng)| {
        receiver.with(|receiver| {
            let (receiver, message, received) = receiver.extend(choices, &mut rng).unwrap();
            (receiver, (message, received))
        })
    });
}

/// Randomness whose first 16 bytes are zero: with it, a sender's Delta is.
struct ZeroFirst(ChaCha20Rng, bool);

impl TryRng for ZeroFirst {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        self.0.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        self.0.try_fill_bytes(bytes)?;
        if core::mem::take(&mut self.1) {
            bytes.fill(0);
        }
        Ok(())
    }
}

impl TryCryptoRng for ZeroFirst {}

/// A class, how many batches are left, and both parties with a batch.
type Ready = (usize, usize, extension::Sender, extension::Receiver, extension::Extension);

/// The extension's sender, whose Delta is zero or random. A set-up serves for a few batches only: two senders that are kept for
/// all runs differ in where they lie in memory, too, and that shows (|t| of 13 once, 2 another time).
fn extension_sender(runs: usize) {
    const BATCHES: usize = 10;
    let kept = [const { std::cell::Cell::new(None) }; 2];
    let prepare = |class: usize, rng: &mut ChaCha20Rng| {
        let (left, sender, receiver) = match kept.get(class).unwrap().take() {
            Some((left, sender, receiver)) if left > 0 => (left, sender, receiver),
            _ => {
                let mut first = ZeroFirst(ChaCha20Rng::from_rng(rng), class == 0);
                let (sender, ask) = extension::Setup::<Ristretto255>::new(session(), 4, &mut first).unwrap();
                let (receiver, grown) = extension::Receiver::new::<Ristretto255>(session(), 4, &ask, rng).unwrap();
                (BATCHES, sender.finish(&grown).unwrap(), receiver)
            }
        };
        let (receiver, message, _) = receiver.extend(Choices::random(1024, rng), rng).unwrap();
        (class, left - 1, sender, receiver, message)
    };
    let step = |(class, left, sender, receiver, message): Ready| {
        let (sender, sent) = sender.extend(1024, &message).unwrap();
        kept.get(class).unwrap().set(Some((left, sender, receiver)));
        sent
    };
    test("extension, sender's batch", runs, prepare, step);
    let prepare = |class: usize, rng: &mut ChaCha20Rng| {
        let mut first = ZeroFirst(ChaCha20Rng::from_rng(rng), class == 0);
        let (sender, ask) = extension::Setup::<Ristretto255>::new(session(), 4, &mut first).unwrap();
        let (_, grown) = extension::Receiver::new::<Ristretto255>(session(), 4, &ask, rng).unwrap();
        (sender, grown)
    };
    let step = |(sender, grown): (extension::Setup<Ristretto255>, _)| sender.finish(&grown).unwrap();
    test("extension, sender's set-up", runs / BATCHES, prepare, step);
}

/// Gilboa's receiver, whose factor is 1 or random.
fn gilboa_receiver(runs: usize) {
    let (sender, receiver) = set_up(4, &mut ChaCha20Rng::seed_from_u64(4));
    let (sender, receiver) = (Kept::new(sender), Kept::new(receiver));
    let prepare = |class: usize, rng: &mut ChaCha20Rng| {
        let (message, received) = receiver.with(|receiver| {
            let choices = Choices::of_scalars(&[scalar(class, rng)]);
            let (receiver, message, received) = receiver.extend(choices, rng).unwrap();
            (receiver, (message, received))
        });
        let sent = sender.with(|sender| sender.extend(256, &message).unwrap());
        let (corrections, _) = gilboa::send(sent, &[P256Scalar::random(rng)]).unwrap();
        (received, corrections)
    };
    let step = |(received, corrections)| gilboa::receive::<P256Scalar>(received, &corrections).unwrap();
    test("Gilboa, receiver", runs, prepare, step);
}

/// Gilboa's sender, whose factor is 1 or random.
fn gilboa_sender(runs: usize) {
    let (sender, receiver) = set_up(4, &mut ChaCha20Rng::seed_from_u64(5));
    let (sender, receiver) = (Kept::new(sender), Kept::new(receiver));
    let prepare = |class: usize, rng: &mut ChaCha20Rng| {
        let message = receiver.with(|receiver| {
            let (receiver, message, _) = receiver.extend(Choices::random(256, rng), rng).unwrap();
            (receiver, message)
        });
        (sender.with(|sender| sender.extend(256, &message).unwrap()), [scalar(class, rng)])
    };
    test("Gilboa, sender", runs, prepare, |(sent, factors)| gilboa::send(sent, &factors).unwrap());
}

/// COPEe's P_B: set-up and products with the MAC key 1 or a random one.
fn copee_receiver(runs: usize) {
    let (sender, receiver) = set_up(4, &mut ChaCha20Rng::seed_from_u64(6));
    let (sender, receiver) = (Kept::new(sender), Kept::new(receiver));
    let prepare = |class: usize, rng: &mut ChaCha20Rng| {
        let delta = Secret::new(scalar(class, rng));
        let (message, received) = receiver.with(|receiver| {
            let choices = Choices::of_scalars(core::slice::from_ref(delta.expose()));
            let (receiver, message, received) = receiver.extend(choices, rng).unwrap();
            (receiver, (message, received))
        });
        let sent = sender.with(|sender| sender.extend(256, &message).unwrap());
        let (input, opening) = copee::Sender::new(&session(), 4, &sent.into_seeds()).unwrap();
        let (_, corrections, _) = input.extend(&[P256Scalar::random(rng)]).unwrap();
        (delta, received.into_seeds(), opening, corrections)
    };
    let step = |(delta, received, opening, corrections)| {
        let key = copee::Receiver::new::<P256Scalar>(&session(), 4, &delta, received, &opening).unwrap();
        key.extend::<P256Scalar>(1, &corrections).unwrap()
    };
    test("COPEe, P_B's set-up and product", runs, prepare, step);
}

/// A step that takes longer for more ones: what has to be seen, or nothing that is not seen means anything.
fn control(runs: usize) {
    let step = |choices: Choices| {
        let mut hash = 1_u64;
        for choice in choices.iter() {
            if bool::from(choice) {
                hash = black_box(hash.wrapping_mul(3));
            }
        }
        hash
    };
    let t = test("control, which leaks", runs, |class, rng| choices(class, 4, rng), step);
    assert!(t >= 4.5, "the control's leak was not seen: the machine is too busy, or the runs too few");
}

/// A test's name, the test, and by how much its runs are fewer.
type Named = (&'static str, fn(usize), usize);

fn main() {
    // `--runs N` for longer ones; the name of a test for it alone.
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runs = words.iter().find_map(|word| word.parse().ok()).unwrap_or(20_000);
    let name = words.iter().find(|word| !word.starts_with('-') && word.parse::<usize>().is_err());
    let tests: [Named; 8] = [
        ("control", control, 1),
        ("base-ristretto255", base_receiver::<Ristretto255>, 1),
        ("base-p256", base_receiver::<P256>, 4),
        ("extension-receiver", extension_receiver, 1),
        ("extension-sender", extension_sender, 1),
        ("gilboa-receiver", gilboa_receiver, 1),
        ("gilboa-sender", gilboa_sender, 1),
        ("copee", copee_receiver, 1),
    ];
    // Where what is measured, or what comes before it, takes long, there are fewer runs.
    for (_, test, fewer) in tests.into_iter().filter(|(this, ..)| name.is_none_or(|name| name == this)) {
        test(runs / fewer);
    }
}
