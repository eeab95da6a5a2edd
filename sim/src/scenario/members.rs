//! Members that get other machines, and new cards.

use rand_chacha::ChaCha8Rng;

use super::draw::node;
use super::{Aim, Fault, Planned, Scenario};
use crate::byzantine::LedgerLie;
use crate::chance::{below, one_of};

/// A machine is lost for good, with its store and its keys, and another one comes in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The member.
    pub node: u16,
    /// The time at which the machine is lost, in milliseconds.
    pub at: u64,
    /// The time at which the other machine starts, with new keys and nothing else, and somebody brings the group what was signed for it.
    pub until: u64,
    /// What was signed.
    pub by: Word,
    /// What becomes of the machine that is said to be gone.
    pub fate: Fate,
}

/// By whose word another machine comes in a member's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The member's own operator signs that it replaces the other one. The group decides it with the votes of the others.
    Operator,
    /// The operators of a quorum sign a warrant, under which it votes until it has replaced the other one.
    Warrant,
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

/// A new member: its machine starts, and somebody brings its card, to which the members consent by their policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, in milliseconds.
    pub at: u64,
}

/// A member leaves. As long as it holds a share, the group refuses that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The member.
    pub node: u16,
    /// From when on somebody asks for it, in milliseconds.
    pub at: u64,
}

impl Scenario {
    /// Members whose machines are lost where the others are too few to decide without them: as many as can be stood in for at once.
    pub(super) fn draw_warrants(&mut self, rng: &mut ChaCha8Rng) {
        for _ in 0..self.most_stand_ins() {
            let (who, at) = (node(rng, self.n), below(rng, self.calm));
            let is_odd = self.liars.contains_key(&who) || self.exchanges.iter().any(|exchange| exchange.node == who);
            // k honest members keep their shares.
            let most = usize::from(self.n - self.k);
            if !is_odd && self.liars.len() + self.exchanges.len() < most && below(rng, 4) > 0 {
                self.draw_exchange(rng, (who, at), Word::Warrant);
            }
        }
    }

    /// Somebody joins; then, or in a group that is large enough without, somebody leaves: when the keys are reshared to the others.
    pub(super) fn draw_coming_and_going(&mut self, rng: &mut ChaCha8Rng) {
        let (spare, t) = (self.n > 3 * (self.k - 1) + 1, self.k - 1);
        if self.n <= 3 * t || self.keys.len() > 1 || below(rng, 8) > 0 {
            return;
        }
        if !spare || below(rng, 2) == 0 {
            self.arrivals.push(Arrival { at: 1 + below(rng, self.calm) });
        }
        let odd: Vec<u16> = self.faults.iter().filter_map(Fault::node).chain(self.liars.keys().copied()).collect();
        let there = (1..=self.n).filter(|node| !odd.contains(node) && self.exchanges.iter().all(|it| it.node != *node));
        let there: Vec<u16> = there.collect();
        let Some(leaver) = one_of(rng, &there).filter(|_| below(rng, 3) > 0 && self.ceremonies.is_empty()) else {
            return;
        };
        // When nothing is lost any more: a reshare that comes to nothing would leave it where it is.
        let holders = (1..=self.last()).filter(|node| *node != leaver).collect();
        self.ceremonies.push(Planned { at: self.calm + below(rng, 2_000), aim: Aim::Reshare(0, self.k, holders) });
        self.departures.push(Departure { node: leaver, at: self.calm + below(rng, 6_000) });
    }

    /// A member whose machine is replaced; it counts as one of those that may be odd.
    pub(super) fn draw_exchange(&mut self, rng: &mut ChaCha8Rng, (node, at): (u16, u64), by: Word) {
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
        self.exchanges.push(Exchange { node, at, until, by, fate });
    }

    /// Members that renew their cards.
    pub(super) fn draw_renewals(&mut self, rng: &mut ChaCha8Rng) {
        let often = if self.exchanges.is_empty() { 12 } else { 2 };
        if below(rng, often) == 0 {
            let (node, at) = (node(rng, self.n), below(rng, self.calm));
            let is_honest = !self.liars.contains_key(&node);
            let stays = self.departures.iter().all(|departure| departure.node != node);
            if is_honest && stays && self.exchanges.iter().all(|exchange| exchange.node != node) {
                self.renewals.push(Renewal { node, at });
            }
        }
    }
}
