//! The scenario of a seed.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use theta_names::{Delivery, KeyState};
use theta_schemes::{Purpose, Suite};

use super::{
    APPROVERS, Aim, Asked, Consent, ConsentFault, Fault, HeldKey, Planned, Scenario, StateWish, Theft, Weather,
};
use crate::byzantine::{Behaviour, EcdsaLie};
use crate::chance::{below, one_of};

pub(super) fn node(rng: &mut impl Rng, n: u16) -> u16 {
    1 + u16::try_from(below(rng, u64::from(n))).unwrap_or(0)
}

pub(super) fn some_nodes(rng: &mut impl Rng, n: u16, most: u64) -> BTreeSet<u16> {
    (0..below(rng, most + 1)).map(|_| node(rng, n)).collect()
}

/// The fastest suite of each protocol: half of the keys are of these, the others of any suite.
const QUICK: [Suite; 4] =
    [Suite::Sg02Ristretto255, Suite::FrostEd25519, Suite::Cks05Ristretto255, Suite::FrostRistretto255];
const FAULTS: [ConsentFault; 8] = [
    ConsentFault::OtherMessage,
    ConsentFault::OtherKey,
    ConsentFault::OtherOperation,
    ConsentFault::OtherGroup,
    ConsentFault::Expired,
    ConsentFault::Early,
    ConsentFault::TooLong,
    ConsentFault::Forged,
];
/// (t, n); k = t + 1.
const GROUPS: [(u16, u16); 6] = [(1, 3), (1, 4), (1, 4), (2, 5), (1, 5), (2, 7)];
const CEREMONY_GROUPS: [(u16, u16); 4] = [(1, 4), (1, 4), (1, 5), (2, 7)];

impl Scenario {
    /// Draws the scenario of a seed; one in eight has ceremonies.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kept = seed.is_multiple_of(8);
        let groups = if kept { &CEREMONY_GROUPS[..] } else { &GROUPS[..] };
        let (t, n) = one_of(&mut rng, groups).unwrap_or((1, 4));
        // In some groups all must sign.
        let (t, n) = match seed % 32 {
            7 => (1, 2),
            23 => (2, 3),
            _ => (t, n),
        };
        let mut keys = vec![key(&mut rng, n, t)];
        if below(&mut rng, 3) == 0 {
            let other = key(&mut rng, n, t);
            // A secret serves one purpose, so each suite has one key at most; and there are primes for one RSA key.
            let alike = |a: Suite, b: Suite| a == b || (is_rsa(a) && is_rsa(b));
            keys.extend(Some(other).filter(|other| !keys.iter().any(|key| alike(key.suite, other.suite))));
        }
        let mut scenario = Self {
            n,
            k: t + 1,
            kept,
            keys,
            weather: Weather {
                delay: 1 + below(&mut rng, 300),
                loss: below(&mut rng, 4) * below(&mut rng, 100),
                duplicates: below(&mut rng, 100),
            },
            calm: 8_000,
            end: 90_000,
            ..Self::empty(seed)
        };
        scenario.draw_liars(&mut rng, t);
        scenario.draw_presigned(t);
        scenario.draw_deliveries();
        scenario.draw_lies_of_holders();
        scenario.draw_faults(&mut rng);
        scenario.draw_requests(&mut rng);
        scenario.draw_digests();
        if kept {
            scenario.draw_ceremonies(&mut rng);
            scenario.draw_trials(&mut rng, t);
        }
        scenario
    }

    /// Half of the keys whose suites have quorum mode are in it: drawn apart, so that a seed has the same keys and faults as without.
    fn draw_deliveries(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(1);
        for key in &mut self.keys {
            if below(&mut rng, 2) == 0 && key.suite.supports(Delivery::Quorum) {
                key.delivery = Delivery::Quorum;
            }
        }
    }

    /// Some of the keys that sign are of ECDSA: drawn apart, too. With an honest majority that takes 2t + 1 honest holders; nodes whose policies refuse a use, or
    /// that see too few approvals of it, are not willing, and nothing is promised where too few are left. With a dishonest one any k will do, and where all must
    /// sign there is no other. Passive security is for holders none of which lies.
    fn draw_presigned(&mut self, t: u16) {
        let [mut rng, mut apart] = [2, 3].map(|stream| {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(stream);
            rng
        });
        let (by_all, passive) = (self.n == self.k, self.liars.is_empty());
        let mut taken = Vec::new();
        for key in &mut self.keys {
            let curve = if below(&mut rng, 2) == 0 { Suite::EcdsaP256 } else { Suite::EcdsaSecp256k1 };
            let signs = key.suite.purpose() == Purpose::Sign && !is_rsa(key.suite);
            let all_may = !self.kept && self.n > 3 * t;
            let is_drawn = below(&mut rng, 3) == 0;
            let (by_k, passive) = (below(&mut apart, 2) == 0 || by_all, below(&mut apart, 2) == 0 && passive);
            // Each suite has one key at most.
            if (is_drawn || by_all) && signs && (all_may || by_k) && !taken.contains(&curve) {
                key.suite = curve;
                key.delivery = match (by_k, passive) {
                    (false, false) => Delivery::All,
                    (false, true) => Delivery::Passive,
                    (true, false) => Delivery::DishonestMajority,
                    (true, true) => Delivery::PassiveDishonestMajority,
                };
                taken.push(curve);
            }
        }
    }

    /// Half of the liars lie as holders of keys of ECDSA, where there are any: drawn apart, too.
    fn draw_lies_of_holders(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(4);
        let any = self.keys.iter().any(|key| key.suite.scheme() == "ECDSA");
        for behaviour in self.liars.values_mut().filter(|_| any) {
            if below(&mut rng, 2) == 0 {
                *behaviour = Behaviour::Ecdsa(EcdsaLie::draw(&mut rng));
            }
        }
    }

    fn draw_liars(&mut self, rng: &mut impl Rng, t: u16) {
        for _ in 0..below(rng, u64::from(t) + 1) {
            self.liars.insert(node(rng, self.n), Behaviour::draw(rng, (self.k, self.n), self.kept));
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
        // Half of the time all requests come at once, and race for their slots.
        let raced = below(rng, 2) == 0;
        let together = below(rng, 5_000);
        for number in 0..1 + below(rng, 5) {
            let key = usize::try_from(below(rng, self.keys.len() as u64)).unwrap_or(0);
            let slots = self.keys.get(key).is_some_and(|key| key.slots);
            self.requests.push(Asked {
                at: if raced && slots { together } else { below(rng, 5_000) },
                key,
                text: format!("request {number} of {}", self.seed),
                slot: slots.then(|| below(rng, 2)),
                later_at: some_nodes(rng, self.n, 3),
                consents: consents(rng),
                bare_at: if below(rng, 4) == 0 { some_nodes(rng, self.n, 2) } else { BTreeSet::new() },
                hashed: false,
            });
        }
    }

    /// Half of the requests to keys of ECDSA bring a digest, which the caller has chosen: drawn apart, too.
    fn draw_digests(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(5);
        for asked in &mut self.requests {
            let is_ecdsa = self.keys.get(asked.key).is_some_and(|key| key.suite.scheme() == "ECDSA");
            asked.hashed = below(&mut rng, 2) == 0 && is_ecdsa;
        }
    }

    fn draw_ceremonies(&mut self, rng: &mut impl Rng) {
        let at = below(rng, 3_000);
        let all: Vec<u16> = (1..=self.n).collect();
        let lost = node(rng, self.n);
        let lost = (1..=self.n).cycle().skip(usize::from(lost)).find(|node| !self.liars.contains_key(node));
        // RSA keys come from a dealer only, and no ceremony changes them.
        let fixed = self.keys.first().is_some_and(|key| is_rsa(key.suite));
        let aim = match if fixed { 0 } else { below(rng, 5) } {
            0 => Aim::Create(Some(suite(rng)).filter(|suite| !is_rsa(*suite)).unwrap_or(Suite::FrostEd25519)),
            1 => Aim::Rotate(0),
            2 => {
                // The holders in another order. The groups here need all of them for as many liars.
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
}

impl Scenario {
    /// Draws attacks from outside: exchanged disks, replayed requests, stolen stores.
    fn draw_trials(&mut self, rng: &mut impl Rng, t: u16) {
        // A node whose store was set back counts as one of the nodes that may lie.
        if self.liars.len() < usize::from(t) && below(rng, 2) == 0 {
            let node = one_of(rng, &self.honest().collect::<Vec<_>>()).unwrap_or(1);
            // Nothing is lost any more by then, and nodes have exchanged greetings since the last request.
            let at = self.calm + 4_000 + below(rng, 3_000);
            let copied = if below(rng, 4) == 0 { None } else { Some(below(rng, self.calm)) };
            let confirmed = if below(rng, 2) == 0 { Some(at + 6_000) } else { None };
            self.faults.push(Fault::SetBack { copied, at, until: at + 300, node, confirmed });
            if let Some(asked) = self.requests.first().cloned() {
                // Another request for the same slot.
                let (text, at) = (format!("another request of {}", self.seed), at + 1_000);
                self.requests.push(Asked { at, text, later_at: BTreeSet::new(), ..asked });
            }
        }
        if self.keys.len() > 1 && below(rng, 2) == 0 {
            // No other request uses this key.
            self.requests.retain(|asked| asked.key != 1);
            for state in [KeyState::Disabled, KeyState::Active, KeyState::Disabled] {
                let after = self.changes.last().map_or(0, |change: &StateWish| change.at);
                self.changes.push(StateWish { at: after + below(rng, 3_000), key: 1, state });
            }
        }
        self.again_from = (below(rng, 2) == 0).then(|| below(rng, self.calm));
        for _ in 0..if self.liars.is_empty() { below(rng, 4) } else { 0 } {
            self.thefts.push(Theft { at: below(rng, 2 * self.calm), node: node(rng, self.n) });
        }
    }
}

/// Whether keys of the suite come from a dealer only.
pub(crate) fn is_rsa(suite: Suite) -> bool {
    suite.group() == "RSA"
}

fn suite(rng: &mut impl Rng) -> Suite {
    // Keys of ECDSA are drawn apart.
    let others = || Suite::ALL.into_iter().filter(|suite| suite.scheme() != "ECDSA").collect();
    let suites = if below(rng, 2) == 0 { QUICK.to_vec() } else { others() };
    one_of(rng, &suites).unwrap_or(Suite::FrostEd25519)
}

fn key(rng: &mut impl Rng, n: u16, t: u16) -> HeldKey {
    let suite = suite(rng);
    let most = if below(rng, 4) == 0 { u64::from(n) } else { u64::from(n.saturating_sub(2 * t)) / 2 };
    HeldKey {
        suite,
        delivery: Delivery::All,
        refused_by: some_nodes(rng, n, most),
        slots: suite.purpose() == Purpose::Sign && below(rng, 2) == 0,
        consents: below(rng, 4) == 0,
        rated: below(rng, 4) == 0,
        lost_by: None,
    }
}

/// Approvals of a request: mostly of two approvers; now and then some are faulty.
fn consents(rng: &mut impl Rng) -> Vec<Consent> {
    let count = if below(rng, 4) == 0 { below(rng, 4) } else { 2 };
    let first = below(rng, u64::from(APPROVERS));
    let mut consents = Vec::new();
    for place in 0..count {
        // Each of another approver; now and then one who has approved already, or whom no policy knows.
        let approver = if below(rng, 8) == 0 { below(rng, 5) } else { (first + place) % u64::from(APPROVERS) };
        let fault = if below(rng, 8) == 0 { one_of(rng, &FAULTS) } else { None };
        consents.push(Consent { approver: u8::try_from(approver).unwrap_or(0), fault });
    }
    consents
}
