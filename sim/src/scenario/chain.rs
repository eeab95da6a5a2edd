//! What the chain of the hosts does.

use std::collections::BTreeSet;
use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::Scenario;
use crate::chance::below;

/// A chain that orders the nodes' claims of slots. All signing rules of the scenario follow it.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The interval of its blocks, in milliseconds.
    pub interval: u64,
    /// When it stands still.
    pub halt: Range<u64>,
    /// The nodes whose hosts show them another order, for ever. Nobody, if it does not fork.
    pub forked: BTreeSet<u16>,
}

impl Scenario {
    /// The same with a chain, which stands still for a time in half of the seeds, and forks in a quarter.
    #[must_use]
    pub fn with_chain(mut self) -> Self {
        // A generator of its own: what else a seed draws stays as it is.
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ 0x0063_6861_696e);
        let from = below(&mut rng, self.calm.max(1));
        let halt = if below(&mut rng, 2) == 0 { from..from + below(&mut rng, 4_000) } else { 0..0 };
        let mut forked = BTreeSet::new();
        if below(&mut rng, 4) == 0 {
            forked.extend((1..=self.last()).filter(|_| below(&mut rng, 2) == 0));
        }
        self.chain = Some(Chain { interval: 100 + below(&mut rng, 900), halt, forked });
        self
    }
}
