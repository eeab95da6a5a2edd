//! Members that get other machines, and new cards.

use rand_chacha::ChaCha8Rng;

use super::draw::{below, node, one_of};
use super::{Aim, Planned, Scenario};
use crate::byzantine::LedgerLie;

/// A machine is lost for good, with its store and its keys, and its operator signs for another one in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The member.
    pub node: u16,
    /// The time at which the machine is lost, in milliseconds.
    pub at: u64,
    /// The time at which the other machine starts, with new keys and nothing else, and the operator brings its word to the group.
    pub until: u64,
    /// What becomes of the machine that is said to be gone.
    pub fate: Fate,
}

/// What becomes of a machine that is said to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is gone.
    Gone,
    /// It comes back at this time with its keys and its store, and goes on as if nothing had happened.
    Back(u64),
    /// From this time on a thief runs it, who lies so in the ledger under its keys, to members and to clients.
    Stolen(u64, LedgerLie),
}

/// A member renews its card: other addresses, the same keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The member.
    pub node: u16,
    /// When it brings the card, in milliseconds.
    pub at: u64,
}

impl Scenario {
    /// A member whose machine is replaced; it counts as one of those that may be odd.
    pub(super) fn draw_exchange(&mut self, rng: &mut ChaCha8Rng, (node, at): (u16, u64)) {
        let until = at + below(rng, 3_000);
        // Before the change is decided, while it is, or long after.
        let back = at + 100 + below(rng, 6_000);
        let fate = match below(rng, 3) {
            0 => Fate::Gone,
            1 => Fate::Back(back),
            _ => Fate::Stolen(back, one_of(rng, &LedgerLie::ALL).unwrap_or(LedgerLie::TwoFaced)),
        };
        if let Some(key) = self.keys.first_mut().filter(|_| below(rng, 2) == 0) {
            key.lost_by = Some(node);
            self.ceremonies.push(Planned { at: until + 1_000 + below(rng, 4_000), aim: Aim::Recover(0, node) });
        }
        self.exchanges.push(Exchange { node, at, until, fate });
    }

    /// Members that renew their cards.
    pub(super) fn draw_renewals(&mut self, rng: &mut ChaCha8Rng) {
        let often = if self.exchanges.is_empty() { 12 } else { 2 };
        if below(rng, often) == 0 {
            let (node, at) = (node(rng, self.n), below(rng, self.calm));
            let is_honest = !self.liars.contains_key(&node);
            if is_honest && self.exchanges.iter().all(|exchange| exchange.node != node) {
                self.renewals.push(Renewal { node, at });
            }
        }
    }
}
