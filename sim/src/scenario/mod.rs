//! What happens in a run, as data: drawn from a seed, or written down by a test.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use theta_schemes::{Purpose, Suite};

use crate::byzantine::Behaviour;

/// A whole run but for what its generator decides on the way: times in milliseconds, nodes by number.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Everything random follows from it.
    pub seed: u64,
    /// How many nodes there are.
    pub n: u16,
    /// How many shares it takes.
    pub k: u16,
    /// Whether keys are kept by custodians, so that there can be ceremonies, or fixed.
    pub kept: bool,
    /// The keys that were dealt before.
    pub keys: Vec<HeldKey>,
    /// What clients ask for.
    pub requests: Vec<Asked>,
    /// What becomes of keys.
    pub ceremonies: Vec<Planned>,
    /// What the network does all the time.
    pub weather: Weather,
    /// What goes wrong besides.
    pub faults: Vec<Fault>,
    /// Nodes that do not what they should: k - 1 at most.
    pub liars: BTreeMap<u16, Behaviour>,
    /// From when on nothing goes wrong any more.
    pub calm: u64,
    /// By when all must have ended.
    pub end: u64,
    /// A bug that an honest node has, for tests of the tests.
    pub sabotage: Option<Sabotage>,
}

/// A dealt key.
#[derive(Clone, Debug)]
pub struct HeldKey {
    /// Its suite; the suite's name is its name.
    pub suite: Suite,
    /// Nodes whose policies let nobody use it.
    pub refused_by: BTreeSet<u16>,
    /// Whether a signing rule counts slots.
    pub slots: bool,
    /// A node that has lost its share.
    pub lost_by: Option<u16>,
}

/// A request, made to all nodes.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When.
    pub at: u64,
    /// Which of [`Scenario::keys`].
    pub key: usize,
    /// The message, coin or plaintext.
    pub text: String,
    /// For which slot.
    pub slot: Option<u64>,
    /// The nodes that are asked later than the others.
    pub later_at: BTreeSet<u16>,
}

/// A ceremony.
#[derive(Clone, Debug)]
pub struct Planned {
    /// When.
    pub at: u64,
    /// What for.
    pub aim: Aim,
}

/// What a ceremony is for; keys by their place in [`Scenario::keys`].
#[derive(Clone, Debug)]
pub enum Aim {
    /// A new key for all nodes.
    Create(Suite),
    /// A new version.
    Rotate(usize),
    /// New shares.
    Refresh(usize),
    /// New shares for these holders.
    Reshare(usize, u16, Vec<u16>),
    /// The lost share of this node.
    Recover(usize, u16),
}

/// What the network does to each message.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// The longest delay; each message has its own, so they overtake each other.
    pub delay: u64,
    /// How many of a thousand are lost.
    pub loss: u64,
    /// How many of a thousand arrive twice.
    pub duplicates: u64,
}

/// What goes wrong.
#[derive(Clone, Debug)]
pub enum Fault {
    /// These nodes and the others do not hear each other for a while.
    Partition {
        /// From when.
        at: u64,
        /// Until when.
        until: u64,
        /// One side.
        side: BTreeSet<u16>,
    },
    /// A node loses power, after so many more writes to its disk if it is writing, and starts again.
    Crash {
        /// When.
        at: u64,
        /// When it starts again.
        until: u64,
        /// Which.
        node: u16,
        /// How many writes its disk still takes from half a second before.
        writes: u64,
    },
    /// A node's wall clock is set, and its process stood still for a while.
    Jump {
        /// When.
        at: u64,
        /// Which.
        node: u16,
        /// By how many seconds the wall clock is set.
        seconds: i64,
        /// For how many milliseconds it stood still.
        pause: u64,
    },
}

/// Bugs to be caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A node does not ask its policy.
    NoPolicy,
    /// A node forgets its slots when it starts again.
    ForgetsSlots,
    /// A node draws the same nonces in each life.
    SameNonces,
    /// A node tells its clients something else than the others.
    OtherResult,
    /// A node hears nothing from half a second on.
    Deaf,
    /// A node reports another end of ceremonies.
    OtherOutcome,
    /// A node takes on more than it should.
    NoLimits,
}

/// A number below `bound`, 0 for 0.
pub(crate) fn below(rng: &mut impl Rng, bound: u64) -> u64 {
    rng.next_u64().checked_rem(bound).unwrap_or(0)
}

fn one_of<T: Clone>(rng: &mut impl Rng, list: &[T]) -> Option<T> {
    list.get(usize::try_from(below(rng, list.len() as u64)).ok()?).cloned()
}

fn node(rng: &mut impl Rng, n: u16) -> u16 {
    1 + u16::try_from(below(rng, u64::from(n))).unwrap_or(0)
}

fn some_nodes(rng: &mut impl Rng, n: u16, most: u64) -> BTreeSet<u16> {
    (0..below(rng, most + 1)).map(|_| node(rng, n)).collect()
}

const SUITES: [Suite; 7] = [
    Suite::Sg02Ristretto255,
    Suite::FrostEd25519,
    Suite::Cks05Ristretto255,
    Suite::FrostRistretto255,
    Suite::Bls04MinPk,
    Suite::Sg02Ristretto255,
    Suite::FrostEd25519,
];
/// (t, n); k = t + 1.
const GROUPS: [(u16, u16); 6] = [(1, 3), (1, 4), (1, 4), (2, 5), (1, 5), (2, 7)];
const CEREMONY_GROUPS: [(u16, u16); 4] = [(1, 4), (1, 4), (1, 5), (2, 7)];

impl Scenario {
    /// The scenario of a seed: one in eight has ceremonies.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kept = seed.is_multiple_of(8);
        let groups = if kept { &CEREMONY_GROUPS[..] } else { &GROUPS[..] };
        let (t, n) = one_of(&mut rng, groups).unwrap_or((1, 4));
        let mut keys = vec![key(&mut rng, n, t)];
        if below(&mut rng, 3) == 0 {
            let other = key(&mut rng, n, t);
            keys.extend(Some(other).filter(|other| keys.iter().all(|key| key.suite != other.suite)));
        }
        let mut scenario = Self {
            seed,
            n,
            k: t + 1,
            kept,
            keys,
            requests: Vec::new(),
            ceremonies: Vec::new(),
            weather: Weather {
                delay: 1 + below(&mut rng, 300),
                loss: below(&mut rng, 4) * below(&mut rng, 100),
                duplicates: below(&mut rng, 100),
            },
            faults: Vec::new(),
            liars: BTreeMap::new(),
            calm: 8_000,
            end: 90_000,
            sabotage: None,
        };
        scenario.draw_liars(&mut rng, t);
        scenario.draw_faults(&mut rng);
        scenario.draw_requests(&mut rng);
        if kept {
            scenario.draw_ceremonies(&mut rng);
        }
        scenario
    }

    fn draw_liars(&mut self, rng: &mut impl Rng, t: u16) {
        for _ in 0..below(rng, u64::from(t) + 1) {
            self.liars.insert(node(rng, self.n), Behaviour::draw(rng, self.kept));
        }
    }

    fn draw_faults(&mut self, rng: &mut impl Rng) {
        for _ in 0..below(rng, 4) {
            let at = below(rng, 6_000);
            let (node, until) = (node(rng, self.n), at + 200 + below(rng, 1_500));
            self.faults.push(match below(rng, 4) {
                0 => Fault::Partition { at, until, side: some_nodes(rng, self.n, 4) },
                1 => Fault::Jump {
                    at,
                    node,
                    seconds: i64::try_from(below(rng, 200_000)).unwrap_or(0) - 100_000,
                    pause: below(rng, 3) * below(rng, 2_000),
                },
                _ => Fault::Crash { at, until, node, writes: below(rng, 60) },
            });
        }
    }

    fn draw_requests(&mut self, rng: &mut impl Rng) {
        for number in 0..1 + below(rng, 5) {
            let key = usize::try_from(below(rng, self.keys.len() as u64)).unwrap_or(0);
            let slots = self.keys.get(key).is_some_and(|key| key.slots);
            self.requests.push(Asked {
                at: below(rng, 5_000),
                key,
                text: format!("request {number} of {}", self.seed),
                slot: slots.then(|| below(rng, 2)),
                later_at: some_nodes(rng, self.n, 3),
            });
        }
    }

    fn draw_ceremonies(&mut self, rng: &mut impl Rng) {
        let at = below(rng, 3_000);
        let all: Vec<u16> = (1..=self.n).collect();
        let lost = node(rng, self.n);
        let lost = (1..=self.n).cycle().skip(usize::from(lost)).find(|node| !self.liars.contains_key(node));
        let aim = match below(rng, 5) {
            0 => Aim::Create(one_of(rng, &SUITES).unwrap_or(Suite::FrostEd25519)),
            1 => Aim::Rotate(0),
            2 => {
                // The holders in another order; in the groups here, all of them are needed for as many liars.
                let mut holders = all;
                holders.rotate_left(usize::from(node(rng, self.n)) - 1);
                Aim::Reshare(0, self.k, holders)
            }
            3 => match (lost, self.keys.first_mut()) {
                (Some(node), Some(key)) => {
                    key.lost_by = Some(node);
                    Aim::Recover(0, node)
                }
                _ => Aim::Refresh(0),
            },
            _ => Aim::Refresh(0),
        };
        self.ceremonies.push(Planned { at, aim });
        if below(rng, 4) == 0 {
            self.ceremonies.push(Planned { at: below(rng, 6_000), aim: Aim::Create(Suite::Cks05P256) });
        }
    }

    /// The honest nodes.
    pub fn honest(&self) -> impl Iterator<Item = u16> {
        (1..=self.n).filter(|node| !self.liars.contains_key(node))
    }
}

fn key(rng: &mut impl Rng, n: u16, t: u16) -> HeldKey {
    let suite = one_of(rng, &SUITES).unwrap_or(Suite::FrostEd25519);
    let most = if below(rng, 4) == 0 { u64::from(n) } else { u64::from(n - 2 * t) / 2 };
    HeldKey {
        suite,
        refused_by: some_nodes(rng, n, most),
        slots: suite.purpose() == Purpose::Sign && below(rng, 2) == 0,
        lost_by: None,
    }
}
