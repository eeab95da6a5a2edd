//! The source of a CPU thread's randomness.

use core::convert::Infallible;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryCryptoRng, TryRng};
use theta_groups::{Secret, SecretRng, Transcript};

/// The randomness of one CPU thread.
pub(crate) enum Entropy {
    /// Everything follows from a seed, so that a run can be repeated to the byte. For simulations.
    Seeded(Box<ChaCha20Rng>),
    /// Every draw asks the operating system anew, and mixes its answer with a generator of this thread's own. If a
    /// machine is copied or resumed from a snapshot, both copies have the same state of that generator, and would make
    /// the same nonce for two messages, which gives a key share away; the operating system's answers differ. The
    /// thread's own generator is mixed in, in case the operating system's can be predicted.
    Fresh(Box<ChaCha20Rng>),
}

impl Entropy {
    /// A stream of this seed, which can be repeated.
    pub(crate) fn seeded(seed: [u8; 32], stream: u64) -> Self {
        Self::Seeded(Box::new(generator(seed, stream)))
    }

    /// A stream that cannot be repeated.
    pub(crate) fn fresh(seed: [u8; 32], stream: u64) -> Self {
        Self::Fresh(Box::new(generator(seed, stream)))
    }
}

fn generator(seed: [u8; 32], stream: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::from_seed(seed);
    rng.set_stream(stream);
    rng
}

/// A generator for one draw: seeded by a hash of the operating system's present answer and of the thread's own
/// generator.
fn hedged(own: &mut ChaCha20Rng) -> SecretRng {
    let [mut system, mut standby] = [Secret::new([0; 32]), Secret::new([0; 32])];
    own.fill_bytes(standby.expose_mut());
    if let Err(error) = getrandom::fill(system.expose_mut()) {
        // The system gave randomness when the node started, and the thread's own generator continues from that.
        tracing::error!(%error, "the operating system gives no randomness");
    }
    let transcript = Transcript::new("theta/orchestration/entropy/v1").with("system", system.expose());
    SecretRng::new(&Secret::new(transcript.with("standby", standby.expose()).finish32()))
}

impl TryRng for Entropy {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        match self {
            Self::Seeded(own) => own.try_next_u32(),
            Self::Fresh(own) => hedged(own).try_next_u32(),
        }
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        match self {
            Self::Seeded(own) => own.try_next_u64(),
            Self::Fresh(own) => hedged(own).try_next_u64(),
        }
    }

    fn try_fill_bytes(&mut self, destination: &mut [u8]) -> Result<(), Infallible> {
        match self {
            Self::Seeded(own) => own.try_fill_bytes(destination),
            Self::Fresh(own) => hedged(own).try_fill_bytes(destination),
        }
    }
}

impl TryCryptoRng for Entropy {}

#[cfg(test)]
mod tests {
    use theta_schemes::Suite;
    use theta_schemes::keys::{TypedKeyShare, deal_any};
    use theta_schemes::signatures::frost::{Ed25519Sha512, commit, commit_batch};
    use theta_sharing::Threshold;

    use super::*;

    /// The commitments that a node makes with this randomness: for one session, and in advance.
    fn commitments(entropy: &mut Entropy) -> Vec<Vec<u8>> {
        let mut dealer = ChaCha20Rng::from_seed([1; 32]);
        let (_, shares) = deal_any(Suite::FrostEd25519, Threshold::new(2, 3).unwrap(), &mut dealer);
        let TypedKeyShare::Ed25519(key) = shares[0].typed() else { panic!("another suite") };
        let one = commit::<Ed25519Sha512>(key, entropy).1;
        let batch = commit_batch::<Ed25519Sha512>(key, 3, entropy);
        core::iter::once(one).chain(batch.into_iter().map(|(_, made)| made)).map(|made| made.encode()).collect()
    }

    /// The attack: a virtual machine is resumed twice from one snapshot, with the same key and the same state of the
    /// generator. Two messages signed with the same nonces give the share away.
    #[test]
    fn a_state_that_is_there_twice_makes_no_nonce_twice() {
        let seed = [7; 32];
        // Without the operating system, the same state makes the same nonces.
        assert_eq!(commitments(&mut Entropy::seeded(seed, 3)), commitments(&mut Entropy::seeded(seed, 3)));
        let (one, other) = (commitments(&mut Entropy::fresh(seed, 3)), commitments(&mut Entropy::fresh(seed, 3)));
        assert!(one.iter().all(|made| !other.contains(made)));
        let mut all = [one, other].concat();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 8, "nor within one");
    }

    #[test]
    fn words_are_fresh_too_and_threads_differ() {
        let words = |entropy: &mut Entropy| (entropy.next_u32(), entropy.next_u64());
        assert_ne!(words(&mut Entropy::fresh([7; 32], 0)), words(&mut Entropy::fresh([7; 32], 0)));
        assert_eq!(words(&mut Entropy::seeded([7; 32], 0)), words(&mut Entropy::seeded([7; 32], 0)));
        assert_ne!(words(&mut Entropy::seeded([7; 32], 0)), words(&mut Entropy::seeded([7; 32], 1)));
    }
}
