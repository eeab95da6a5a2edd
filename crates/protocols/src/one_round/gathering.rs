//! The shares of a request so far.

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
use theta_groups::Secret;
use theta_rounds::PartyId;
use theta_schemes::Shares;

use super::setting::Setting;

/// The shares so far, and how to treat them.
pub(super) struct Gathering {
    pub(super) shares: Box<dyn Shares>,
    pub(super) weights: WeightSource,
    /// Whether only proven shares count: either a result was false, or neither results of this scheme nor the shares of several
    /// requests can be checked.
    pub(super) doubts: bool,
}

impl Gathering {
    /// Forgets the share of a party.
    pub(super) fn remove(&mut self, party: PartyId) {
        self.shares.remove(party.share());
    }

    /// A result was false: from now on only proven shares count.
    pub(super) fn doubt(&mut self, setting: &Setting, bare: bool) {
        self.doubts = true;
        if bare {
            self.shares.put_own_proof(&mut setting.share_rng());
        }
    }
}

/// The source of the random weights of batch verification: a seed drawn when the share is made, so that a run replays
/// from its inputs, and a new stream for every batch.
pub(super) struct WeightSource {
    seed: Secret<[u8; 32]>,
    batches: u64,
}

impl WeightSource {
    pub(super) fn draw(rng: &mut dyn CryptoRng) -> Self {
        let mut seed = Secret::new([0; 32]);
        rng.fill_bytes(seed.expose_mut());
        Self { seed, batches: 0 }
    }

    pub(super) fn next_batch(&mut self) -> ChaCha20Rng {
        let mut rng = ChaCha20Rng::from_seed(*self.seed.expose());
        rng.set_stream(self.batches);
        self.batches += 1;
        rng
    }
}
