//! Safe primes p = 2 p' + 1, p' prime, found on all cores.
//!
//! The candidates for p' are cut into windows: a random start, and the numbers 5 modulo 6 from there on (others make p'
//! or p divisible by 2 or 3). A sieve drops those where a small prime divides p' or p; the rest are tested from below,
//! and the first good one is the window's prime.
//!
//! **Bias.** A search from a random start favours primes behind long gaps. Here a window is shorter than a tenth of the
//! mean gap between safe primes and every window has a start of its own, so a safe prime is found if and only if a start
//! falls into the window's length before it with no other safe prime between: the probability of any one prime exceeds
//! that of a uniform choice by a factor below 1.1. The few at the very bottom of the range have less.
//!
//! **Determinism.** Window i takes its start from stream i of one ChaCha20 generator, and the primes of the lowest
//! windows win, so the same randomness gives the same primes on any number of threads.
//!
//! The strong tests run in constant time. The sieve's divisions may not: the search is for a dealer's machine, whose
//! other processes are trusted.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, Rng, SeedableRng};
use zeroize::Zeroize;

use super::ffi::{Bn, Montgomery};
use super::{Integer, MAX_MODULUS_BITS};
use crate::Secret;

/// The sieve's primes are below this. They have two bytes each, so that the product of four fits a word.
const SIEVE_LIMIT: u16 = u16::MAX;
/// The shortest primes, in bits: the sieve must not drop the primes that it sieves with.
const MIN_BITS: u32 = 64;

/// How far a search has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchProgress {
    /// Candidates that the sieve has left and that were tested. A safe prime of 1024 bits takes about 1,300 on average,
    /// one of 2048 bits four times as many.
    pub tested: u64,
    /// Primes found: 0 to 2.
    pub found: usize,
}

/// Two safe primes p and q of exactly `bits` bits, both with the top two bits set so that p q has exactly twice as many
/// bits, and with |p - q| >= 2^(bits - 100) (FIPS 186-5, appendix A.1.1), against Fermat's factorisation.
///
/// `progress` is called from this thread whenever a window of candidates is done. `bits` below 64 or above half of
/// [`MAX_MODULUS_BITS`] are taken for these.
pub fn find_safe_prime_pair(
    bits: u32,
    progress: &mut dyn FnMut(SearchProgress),
    rng: &mut dyn CryptoRng,
) -> [Secret<Integer>; 2] {
    let bits = bits.clamp(MIN_BITS, MAX_MODULUS_BITS / 2);
    loop {
        let mut seed = Secret::new([0; 32]);
        rng.fill_bytes(seed.expose_mut());
        // The lowest pair is too close with probability 2^-98; then the search starts again.
        if let Some(pair) = Search::new(bits, &seed).run(progress) {
            return pair;
        }
    }
}

/// The state that the threads share.
struct Search<'a> {
    bits: u32,
    seed: &'a Secret<[u8; 32]>,
    primes: Vec<u16>,
    next_window: AtomicU64,
    last_window: AtomicU64,
}

/// A window that is done.
struct Window {
    number: u64,
    tested: u64,
    prime: Option<Secret<Integer>>,
}

impl<'a> Search<'a> {
    fn new(bits: u32, seed: &'a Secret<[u8; 32]>) -> Self {
        Self {
            bits,
            seed,
            primes: sieve_primes(),
            next_window: AtomicU64::new(0),
            last_window: AtomicU64::new(u64::MAX),
        }
    }

    /// The primes of the two lowest windows that have one, if they lie far enough apart.
    fn run(&self, progress: &mut dyn FnMut(SearchProgress)) -> Option<[Secret<Integer>; 2]> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let mut found = BTreeMap::new();
        let mut tested = 0;
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..threads {
                let sender = sender.clone();
                scope.spawn(move || self.work(&sender));
            }
            drop(sender);
            for window in receiver {
                tested += window.tested;
                if let Some(prime) = window.prime {
                    found.insert(window.number, prime);
                }
                if let Some(second) = found.keys().nth(1) {
                    // Windows below it that are under way are finished; none above it is begun.
                    self.last_window.fetch_min(*second, Ordering::Relaxed);
                }
                progress(SearchProgress { tested, found: found.len().min(2) });
            }
        });
        let mut lowest = found.into_values();
        let (p, q) = (lowest.next()?, lowest.next()?);
        let distance = p.expose().sub(q.expose()).or_else(|| q.expose().sub(p.expose())).map(Secret::new)?;
        (distance.expose().bits() > self.bits.saturating_sub(100)).then_some([p, q])
    }

    fn work(&self, done: &mpsc::Sender<Window>) {
        loop {
            let number = self.next_window.fetch_add(1, Ordering::Relaxed);
            if number > self.last_window.load(Ordering::Relaxed) || done.send(self.search(number)).is_err() {
                return;
            }
        }
    }

    /// Looks for a prime in one window.
    fn search(&self, number: u64) -> Window {
        let start = self.start(number);
        let sieve = self.sieve(start.expose());
        let mut window = Window { number, tested: 0, prime: None };
        for (step, _) in (0_u64..).zip(sieve.expose()).filter(|(_, dropped)| **dropped == 0) {
            if number > self.last_window.load(Ordering::Relaxed) {
                break;
            }
            window.tested += 1;
            let mut half = Secret::new(start.expose().clone());
            half.expose_mut().add_u64(6 * step);
            if !passes_fermat(half.expose()) {
                continue;
            }
            let mut prime = Secret::new(half.expose().clone());
            prime.expose_mut().mul_u64(2);
            prime.expose_mut().add_u64(1);
            let good = passes_fermat(prime.expose())
                && prime.expose().bits() == self.bits
                && half.expose().is_prime()
                && prime.expose().is_prime();
            if good {
                window.prime = Some(prime);
                break;
            }
        }
        window
    }

    /// The window's first candidate for p': bits - 1 bits, the top two set, 5 modulo 6.
    fn start(&self, number: u64) -> Secret<Integer> {
        let mut rng = ChaCha20Rng::from_seed(*self.seed.expose());
        rng.set_stream(number);
        let bits = self.bits - 1;
        let mut bytes = Secret::new(vec![0; usize::try_from(bits.div_ceil(8)).unwrap_or(0)]);
        rng.fill_bytes(bytes.expose_mut());
        // The bits of the first byte that are in use: 1 to 8.
        let used = (bits - 1) % 8 + 1;
        let mut top = bytes.expose_mut().iter_mut();
        if let (Some(first), Some(second)) = (top.next(), top.next()) {
            let set = u16::from_be_bytes([*first, *second]) & (u16::MAX >> (8 - used)) | (0b11 << (6 + used));
            [*first, *second] = set.to_be_bytes();
        }
        let mut start = Secret::new(Integer::from_be_bytes(bytes.expose()));
        let past = start.expose().rem_u64(6);
        start.expose_mut().add_u64((11 - past) % 6);
        start
    }

    /// For each candidate, whether a small prime divides p' or p.
    fn sieve(&self, start: &Integer) -> Secret<Vec<u8>> {
        // The mean gap between safe primes is about bits^2 / 16 candidates.
        let candidates = usize::try_from((self.bits * self.bits / 256).min(4 * self.bits)).unwrap_or(usize::MAX);
        let mut dropped = Secret::new(vec![0_u8; candidates]);
        for primes in self.primes.chunks(4) {
            let product = primes.iter().map(|prime| u64::from(*prime)).product();
            let mut remainder = start.rem_u64(product);
            for &prime in primes {
                let prime = u64::from(prime);
                // 6 has the inverse (r + 1) / 6 or -(r - 1) / 6 modulo a prime r.
                let sixth = if prime % 6 == 5 { prime.div_ceil(6) } else { prime - prime / 6 };
                // p' is 0 or p = 2 p' + 1 is.
                for target in [prime, prime / 2 + prime] {
                    let first = (target - remainder % prime) * sixth % prime;
                    let (Ok(first), Ok(prime)) = (usize::try_from(first), usize::try_from(prime)) else { continue };
                    for drop in dropped.expose_mut().iter_mut().skip(first).step_by(prime) {
                        *drop = 1;
                    }
                }
            }
            remainder.zeroize();
        }
        dropped
    }
}

/// Whether 2^(n - 1) = 1 modulo n. So few composites pass that the strong tests after it cost almost nothing.
fn passes_fermat(n: &Integer) -> bool {
    let Some(exponent) = n.sub(&Integer::from_u64(1)).map(Secret::new) else { return false };
    let power = Montgomery::new(&n.0).pow(&Bn::from_u64(2), &exponent.expose().0, &n.0);
    Integer(power) == Integer::from_u64(1)
}

/// The primes from 5 on, by Eratosthenes.
fn sieve_primes() -> Vec<u16> {
    let mut composite = vec![false; usize::from(SIEVE_LIMIT)];
    let mut primes = Vec::new();
    for number in 2..SIEVE_LIMIT {
        let n = usize::from(number);
        if composite.get(n) == Some(&false) {
            if n >= 5 {
                primes.push(number);
            }
            composite.iter_mut().skip(n * n).step_by(n).for_each(|multiple| *multiple = true);
        }
    }
    primes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(bits: u32, seed: u64) -> [Integer; 2] {
        let mut last = SearchProgress { tested: 0, found: 0 };
        let mut progress = |now: SearchProgress| {
            assert!(now.tested >= last.tested && now.found >= last.found);
            last = now;
        };
        let pair = find_safe_prime_pair(bits, &mut progress, &mut ChaCha20Rng::seed_from_u64(seed));
        assert_eq!(last.found, 2);
        pair.map(|prime| prime.expose().clone())
    }

    #[test]
    fn primes_are_safe_and_large() {
        for (bits, seed) in [(64, 1), (65, 2), (71, 3), (128, 4), (192, 5), (256, 6)] {
            let [p, q] = find(bits, seed);
            for prime in [&p, &q] {
                assert_eq!(prime.bits(), bits);
                assert!(prime.bit(bits - 2));
                let mut half = prime.clone();
                assert_eq!(half.div_u64(2), 1);
                assert!(prime.is_prime() && half.is_prime());
            }
            assert_ne!(p, q);
            assert_eq!(p.mul(&q).bits(), 2 * bits);
        }
    }

    #[test]
    fn the_same_randomness_gives_the_same_primes() {
        assert_eq!(find(160, 7), find(160, 7));
        assert_ne!(find(160, 7), find(160, 8));
    }

    #[test]
    fn the_sieve_drops_what_small_primes_divide_and_nothing_else() {
        let seed = Secret::new([7; 32]);
        let search = Search::new(256, &seed);
        let start = search.start(3);
        assert_eq!(start.expose().rem_u64(6), 5);
        assert_eq!(start.expose().bits(), 255);
        for (step, dropped) in (0..).zip(search.sieve(start.expose()).expose()) {
            let mut half = start.expose().clone();
            half.add_u64(6 * step);
            let divides = |r: u64| half.rem_u64(r) == 0 || (2 * half.rem_u64(r) + 1).is_multiple_of(r);
            assert_eq!(search.primes.iter().any(|r| divides(u64::from(*r))), *dropped == 1, "{step}");
        }
        assert_eq!(search.primes.len(), 6540);
    }

    #[test]
    fn short_sizes_are_lengthened() {
        assert_eq!(find(0, 1), find(64, 1));
    }
}
