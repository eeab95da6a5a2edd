//! Scenarios about the ledger, and the ceremonies that begin and end by it.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_names::Delivery;
use theta_schemes::{Purpose, Suite};

use super::draw::{node, some_nodes};
use super::{Aim, Asked, Fault, HeldKey, Planned, Scenario, Weather, Word};
use crate::byzantine::{Behaviour, LedgerLie};
use crate::chance::{below, one_of};

/// Keys whose ceremonies and uses cost little: what is tried here is what a group decides, and not what its keys compute.
const SUITES: [Suite; 3] = [Suite::Cks05Ristretto255, Suite::Sg02Ristretto255, Suite::FrostRistretto255];
/// (t, n); k = t + 1. Of 2 of 3, and of 3 of 5, all take part in every decision, so that nobody may lie there or be away if anything
/// is to be decided; of 3 of 6 one may.
const GROUPS: [(u16, u16); 16] = [
    (1, 4),
    (1, 4),
    (1, 4),
    (1, 4),
    (1, 4),
    (1, 4),
    (1, 4),
    (1, 4),
    (1, 4),
    (1, 5),
    (1, 5),
    (1, 3),
    (1, 3),
    (2, 5),
    (2, 6),
    (2, 7),
];
/// Ticks are 100 ms: see [`Scenario::end`].
const SECONDS: u64 = 1_000;

impl Scenario {
    /// Draws the scenario of a seed in which the group's ledger is in trouble: ceremonies at once and one after the other, some about one
    /// key; liars, most of which lie in the ledger; partitions, loss, crashes, members that are away for long and come back with
    /// what they had, stores that are set back.
    #[must_use]
    pub fn of_ledger(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1);
        let (t, n) = one_of(&mut rng, &GROUPS).unwrap_or((1, 4));
        let (first, calm) = (below(&mut rng, SUITES.len() as u64), 4 * SECONDS);
        let suites = SUITES.iter().cycle().skip(usize::try_from(first).unwrap_or(0));
        let keys = suites.take(1 + usize::from(below(&mut rng, 4) == 0)).map(|suite| key(*suite)).collect();
        let mut scenario = Self {
            kept: true,
            n,
            k: t + 1,
            keys,
            weather: Weather {
                delay: 1 + below(&mut rng, 250),
                loss: below(&mut rng, 4) * below(&mut rng, 120),
                duplicates: below(&mut rng, 100),
            },
            again_from: (below(&mut rng, 4) == 0).then(|| below(&mut rng, calm)),
            calm,
            // Where all take part in every decision, whoever came in a lost machine's place waits for long before it gives a ceremony up.
            end: calm + if n > 3 * t { 120 } else { 300 } * SECONDS,
            ..Self::empty(seed)
        };
        if n > 3 * t {
            scenario.draw_absences(&mut rng, t);
        } else {
            scenario.draw_liar_of_few(&mut rng, t);
            scenario.draw_warrants(&mut rng);
        }
        scenario.draw_coming_and_going(&mut rng);
        scenario.draw_storm(&mut rng);
        scenario.draw_changes(&mut rng);
        scenario.draw_renewals(&mut rng);
        if below(&mut rng, 24) == 0 {
            scenario.draw_parting(&mut rng);
        }
        scenario
    }

    /// Up to t members lie, are away for long, or lose what their stores had.
    fn draw_absences(&mut self, rng: &mut ChaCha8Rng, t: u16) {
        let mut odd = BTreeSet::new();
        for _ in 0..t {
            let (who, at) = (node(rng, self.n), below(rng, self.calm));
            if !odd.insert(who) {
                continue;
            }
            match below(rng, 8) {
                0 => {
                    let copied = if below(rng, 4) == 0 { None } else { Some(below(rng, at.max(1))) };
                    let until = at + 300 + below(rng, 2 * SECONDS);
                    let confirmed = (below(rng, 2) == 0).then(|| until + 2 * SECONDS + below(rng, 4 * SECONDS));
                    self.faults.push(Fault::SetBack { copied, at, until, node: who, confirmed });
                }
                1 => {
                    let until = self.calm + below(rng, 8 * SECONDS);
                    self.faults.push(Fault::Crash { at, until, node: who, writes: u64::MAX });
                }
                2 => drop(self.liars.insert(who, Behaviour::draw(rng, (self.k, self.n), true))),
                3 => self.draw_exchange(rng, (who, at), Word::Operator),
                _ => {
                    let lie = one_of(rng, &LedgerLie::ALL).unwrap_or(LedgerLie::TwoFaced);
                    self.liars.insert(who, Behaviour::Ledger(lie));
                }
            }
        }
    }

    /// Where the honest members alone are no quorum, nothing may be decided beside a liar; nothing false is.
    fn draw_liar_of_few(&mut self, rng: &mut ChaCha8Rng, t: u16) {
        if t > 1 && below(rng, 2) == 0 {
            // In every third of these groups it wants other machines in members' places, by warrants that nobody signed: here alone they would serve.
            let lies: Vec<LedgerLie> = LedgerLie::ALL.into_iter().chain([LedgerLie::FalseMembers; 6]).collect();
            let lie = one_of(rng, &lies).unwrap_or(LedgerLie::TwoFaced);
            self.liars.insert(node(rng, self.n), Behaviour::Ledger(lie));
        }
    }

    /// What goes wrong for a while with anybody. A second absence of a node begins when the first is over.
    fn draw_storm(&mut self, rng: &mut ChaCha8Rng) {
        let mut away: BTreeSet<u16> = self.faults.iter().filter_map(Fault::node).collect();
        away.extend(self.exchanges.iter().map(|exchange| exchange.node));
        away.extend(self.departures.iter().map(|departure| departure.node));
        for _ in 0..below(rng, 5) {
            let at = below(rng, self.calm - SECONDS);
            let (who, until) = (node(rng, self.n), at + 100 + below(rng, self.calm - at - 100));
            match below(rng, 5) {
                0 | 1 => self.faults.push(Fault::Partition { at, until, side: some_nodes(rng, self.n, 4) }),
                2 => {
                    let seconds = i64::try_from(below(rng, 200_000)).unwrap_or(0) - 100_000;
                    let pause = below(rng, 2) * below(rng, until - at);
                    self.faults.push(Fault::Jump { at, node: who, seconds, pause });
                }
                _ if away.contains(&who) => {}
                _ => self.faults.push(Fault::Crash { at, until, node: who, writes: below(rng, 60) }),
            }
        }
    }

    /// What clients want.
    fn draw_changes(&mut self, rng: &mut ChaCha8Rng) {
        if self.exchanges.is_empty() && self.departures.is_empty() && below(rng, 6) == 0 {
            self.draw_loss(rng);
        }
        let mut reshared = false;
        // Who leaves holds nothing any more: no other version, and no new key.
        let most = if self.departures.is_empty() { 1 + below(rng, 5) / 3 } else { 1 };
        for _ in self.ceremonies.len() as u64..most {
            let at = below(rng, self.calm);
            let key = usize::try_from(below(rng, self.keys.len() as u64)).unwrap_or(0);
            let is_lost = self.keys.get(key).is_some_and(|key| key.lost_by.is_some());
            let aim = match below(rng, 5) {
                // Whatever makes new shares finds the lost one, too.
                _ if is_lost => Aim::Create(Suite::Cks05Ristretto255),
                0 => Aim::Create(one_of(rng, &SUITES).unwrap_or(Suite::Cks05Ristretto255)),
                1 => Aim::Rotate(key),
                2 if !reshared => {
                    reshared = true;
                    let mut holders: Vec<u16> = (1..=self.n).collect();
                    holders.rotate_left(usize::from(node(rng, self.n)) - 1);
                    Aim::Reshare(key, self.k, holders)
                }
                _ => Aim::Refresh(key),
            };
            self.ceremonies.push(Planned { at, aim });
        }
        let quick = self.keys.first().is_some_and(|key| key.suite.purpose() != Purpose::Sign);
        if quick && below(rng, 4) == 0 {
            let (at, text) = (below(rng, self.calm), format!("request of {}", self.seed));
            let (later_at, consents, bare_at) = (BTreeSet::new(), Vec::new(), BTreeSet::new());
            self.requests.push(Asked { at, key: 0, text, slot: None, later_at, consents, bare_at, hashed: false });
        }
    }
}

impl Scenario {
    /// Nobody has a quorum for long.
    fn draw_parting(&mut self, rng: &mut ChaCha8Rng) {
        let (at, until) = (SECONDS + below(rng, 2 * SECONDS), 22 * SECONDS);
        let first = node(rng, self.n);
        let side = (0..self.n / 2).map(|place| 1 + (first + place) % self.n).collect();
        self.faults.retain(|fault| !matches!(fault, Fault::Partition { .. }));
        self.faults.push(Fault::Partition { at, until, side });
        let later = until.saturating_sub(self.calm);
        self.calm = until;
        self.end += later;
    }

    /// An honest member has lost its share of the first key, and recovers it.
    fn draw_loss(&mut self, rng: &mut ChaCha8Rng) {
        // One that goes away for long in the middle: the ceremony comes to nothing.
        if let (Some(Fault::Crash { at, until, node: owner, writes: u64::MAX }), Some(key)) =
            (self.faults.first_mut(), self.keys.first_mut())
        {
            (*at, *until) = (1_000 + below(rng, 2 * SECONDS), self.calm + 25 * SECONDS);
            key.lost_by = Some(*owner);
            self.ceremonies.push(Planned { at: at.saturating_sub(below(rng, SECONDS)), aim: Aim::Recover(0, *owner) });
            return;
        }
        let away: BTreeSet<u16> = self.faults.iter().filter_map(Fault::node).collect();
        let there: Vec<u16> = self.honest().filter(|node| !away.contains(node)).collect();
        if let (Some(owner), Some(key)) = (one_of(rng, &there), self.keys.first_mut()) {
            key.lost_by = Some(owner);
            self.ceremonies.push(Planned { at: below(rng, self.calm), aim: Aim::Recover(0, owner) });
        }
    }
}

fn key(suite: Suite) -> HeldKey {
    HeldKey {
        suite,
        delivery: Delivery::All,
        refused_by: BTreeSet::new(),
        slots: false,
        consents: false,
        rated: false,
        lost_by: None,
    }
}
