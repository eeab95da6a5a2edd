//! The group before a run: identities, dealt keys, stores, policies.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_authority::Gate;
use theta_custody::{DealtKey, KeyTable, Roster, import_dealt};
use theta_groups::{Secret, modular::Integer};
use theta_names::{Holders, NodeId};
use theta_orchestration::OrchestratorConfig;
use theta_policy::{MemorySlots, Policy};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName, deal_any, deal_rsa_primes};
use theta_schemes::signatures::sh00::RsaPrimes;
use theta_sharing::Threshold;
use theta_store::{Options, SealingKey, Store, disk::SimulatedDisk};

use crate::founded::{founding, second_secret};
use crate::group::{EPOCH, Failed, GROUP, identity, party, secret_of};
use crate::permission;
use crate::scenario::{HeldKey, Sabotage, Scenario, is_rsa};

/// Known safe primes, because searching for others would take longer than all runs.
const PRIMES: &str = include_str!("../../vectors/sh00/safe_primes.json");

fn rsa_primes() -> Result<RsaPrimes, Failed> {
    let stored: serde_json::Value = serde_json::from_str(PRIMES).map_err(|error| error.to_string())?;
    let prime = |name: &str| {
        let digits = stored.pointer(&format!("/primes/2048/{name}")).and_then(serde_json::Value::as_str);
        let bytes = digits.and_then(|digits| hex::decode(digits).ok()).ok_or("a prime is missing")?;
        Ok::<_, Failed>(Secret::new(Integer::from_be_bytes(&bytes)))
    };
    RsaPrimes::new(prime("p")?, prime("q")?).map_err(|error| error.to_string())
}

/// A public key and its shares, which are kept as bytes because shares cannot be cloned.
type Dealt = Arc<(AnyPublicKey, Vec<Secret<Vec<u8>>>)>;

/// The parameters of a dealt key: its suite, k and n.
type Kind = (&'static str, u16, u16);

/// The dealt keys. Each is dealt once a process, so all runs use the same ones.
static DEALT: LazyLock<Mutex<BTreeMap<Kind, Dealt>>> = LazyLock::new(Mutex::default);

/// What the content of a node's disk depends on before a run: node, k, n, and each key with its delivery and whether the node has lost its share; no keys
/// for a node without a custodian.
type DiskKind = (u16, u16, u16, Option<Vec<(&'static str, u8, bool)>>);

/// The disks before a run. Each is written once a process, since it is the same in all runs.
static DISKS: LazyLock<Mutex<BTreeMap<DiskKind, Pages>>> = LazyLock::new(Mutex::default);

/// The most disks that are kept.
const MOST_DISKS: usize = 1_000;
const PAGE: usize = 4_096;

/// The content of a disk, most of which is zeros: its length, and the pages that are not.
#[derive(Default)]
struct Pages(usize, Vec<(usize, Vec<u8>)>);

impl Pages {
    fn of(content: &[u8]) -> Self {
        let pages = content.chunks(PAGE).enumerate();
        let pages = pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0));
        Self(content.len(), pages.map(|(place, page)| (place * PAGE, page.to_vec())).collect())
    }

    fn content(&self) -> Vec<u8> {
        let mut content = vec![0; self.0];
        for (from, page) in &self.1 {
            if let Some(place) = content.get_mut(*from..from + page.len()) {
                place.copy_from_slice(page);
            }
        }
        content
    }
}

pub(crate) fn seeded(seed: u64, stream: u64) -> ChaCha20Rng {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

pub(crate) fn sealing_key() -> SealingKey {
    SealingKey::key(Secret::new([7; 32]))
}

fn name_of(suite: Suite) -> Result<KeyName, Failed> {
    suite.name().parse().map_err(|error| format!("{error}"))
}

fn dealt(suite: Suite, k: u16, n: u16) -> Result<Dealt, Failed> {
    let mut all = DEALT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(dealt) = all.get(&(suite.name(), k, n)) {
        return Ok(Arc::clone(dealt));
    }
    let threshold = Threshold::new(k, n).map_err(|error| error.to_string())?;
    // Each suite has a key of its own, because a secret serves one purpose.
    let mut rng = seeded(1, u64::from(n));
    let place = Suite::ALL.iter().position(|other| *other == suite).unwrap_or(0);
    rng.set_stream((u64::from(n) << 32) | place as u64);
    let (public, shares) = if is_rsa(suite) {
        deal_rsa_primes(suite, &rsa_primes()?, threshold, &mut rng).map_err(|error| error.to_string())?
    } else {
        deal_any(suite, threshold, &mut rng)
    };
    let dealt = Arc::new((public, shares.iter().map(AnyKeyShare::to_bytes).collect()));
    all.insert((suite.name(), k, n), Arc::clone(&dealt));
    Ok(dealt)
}

fn bare_disk(rng: ChaCha20Rng, identity: Option<Secret<[u8; 32]>>) -> Result<SimulatedDisk, Failed> {
    let disk = SimulatedDisk::default();
    let options = Options::default().with_rng(rng);
    let store = Store::create_on(disk.backend(), &sealing_key(), options).map_err(|error| error.to_string())?;
    if let Some(identity) = identity {
        store.set_identity(&identity).map_err(|error| error.to_string())?;
    }
    drop(store);
    Ok(disk)
}

/// The group before a run.
pub(crate) struct Setup {
    pub(crate) config: OrchestratorConfig,
    pub(crate) roster: Roster,
    keys: Vec<(KeyName, HeldKey, Dealt)>,
    kept: bool,
}

impl Setup {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, Failed> {
        let (k, n) = (scenario.k, scenario.n);
        let nodes = (1..=n).map(party).collect::<Result<Vec<_>, _>>()?;
        let members = (1..=n).map(|node| Ok(identity(node)?.member().clone())).collect::<Result<Vec<_>, Failed>>()?;
        let key = |held: &HeldKey| Ok((name_of(held.suite)?, held.clone(), dealt(held.suite, k, n)?));
        let keys = scenario.keys.iter().map(key).collect::<Result<_, Failed>>()?;
        // Small bounds, so that floods reach them.
        let config = OrchestratorConfig {
            threads: 2,
            max_instances: 16,
            results_count: 16,
            nonces_per_peer: 4,
            // In groups of even size with stores.
            burn_nonces: scenario.kept && n % 2 == 0,
            backlog_messages_per_peer: 64,
            backlog_bytes_per_peer: 64 << 10,
            tick: Duration::from_millis(100),
            instance_ttl: Duration::from_secs(20),
            ..OrchestratorConfig::default()
        };
        let founding = if scenario.is_founded() { Some(founding(k, n)?) } else { None };
        Ok(Self {
            config,
            roster: Roster { name: GROUP.to_owned(), nodes, members, k, founding },
            keys,
            kept: scenario.kept,
        })
    }

    /// The group as the file of a node has it: that of one that comes later lists it, too.
    pub(crate) fn roster_of(&self, node: u16) -> Result<Roster, Failed> {
        let mut roster = self.roster.clone();
        if self.comes_later(node) {
            roster.nodes.push(party(node)?);
            roster.members.push(identity(node)?.member().clone());
        }
        Ok(roster)
    }

    fn comes_later(&self, node: u16) -> bool {
        usize::from(node) > self.roster.nodes.len()
    }

    pub(crate) fn key(&self, place: usize) -> Result<(&KeyName, &AnyPublicKey, &HeldKey), Failed> {
        let (name, held, dealt) = self.keys.get(place).ok_or("no such key")?;
        Ok((name, &dealt.0, held))
    }

    fn share(node: u16, held: &HeldKey, dealt: &Dealt) -> Option<AnyKeyShare> {
        let bytes = dealt.1.get(usize::from(node) - 1).filter(|_| held.lost_by != Some(node))?;
        AnyKeyShare::from_bytes(bytes.expose(), &dealt.0).ok()
    }

    /// The key table of a node without a custodian.
    pub(crate) fn table(&self, node: u16) -> Result<KeyTable, Failed> {
        let keys = self.keys.iter().filter_map(|(name, held, dealt)| {
            Some((name.clone(), dealt.0.clone(), Self::share(node, held, dealt)?, held.delivery))
        });
        KeyTable::delivered(keys).map_err(|error| error.to_string())
    }

    /// A node's disk with its store.
    pub(crate) fn disk(&self, node: u16) -> Result<SimulatedDisk, Failed> {
        let keys =
            self.keys.iter().map(|(_, held, _)| (held.suite.name(), held.delivery.code(), held.lost_by == Some(node)));
        let n = u16::try_from(self.roster.nodes.len()).unwrap_or(u16::MAX);
        let kind = (node, self.roster.k, n, self.kept.then(|| keys.collect()));
        let mut all = DISKS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pages) = all.get(&kind) {
            return Ok(SimulatedDisk::with_content(pages.content()));
        }
        let content = self.written(node)?.content();
        if all.len() < MOST_DISKS {
            all.insert(kind, Pages::of(&content));
        }
        Ok(SimulatedDisk::with_content(content))
    }

    fn written(&self, node: u16) -> Result<SimulatedDisk, Failed> {
        if self.comes_later(node) {
            return bare_disk(seeded(2, u64::from(node)), Some(secret_of(node)));
        }
        let disk = SimulatedDisk::default();
        let options = Options::default().with_rng(seeded(2, u64::from(node)));
        let store = Store::create_on(disk.backend(), &sealing_key(), options).map_err(|error| error.to_string())?;
        if self.kept {
            store.set_identity(&secret_of(node)).map_err(|error| error.to_string())?;
            for (name, held, dealt) in &self.keys {
                let share = Self::share(node, held, dealt);
                let holders = Holders::new(self.roster.nodes.clone()).map_err(|error| error.to_string())?;
                let (public, share, delivery, created) = (&dealt.0, share.as_ref(), held.delivery, EPOCH - 1);
                let key = DealtKey { name, public, share, delivery, holders: &holders, created };
                import_dealt(&store, &key).map_err(|error| error.to_string())?;
            }
        }
        drop(store);
        Ok(disk)
    }

    /// A disk with a new store that holds a node's identity and nothing else.
    pub(crate) fn empty_disk(&self, node: u16) -> Result<SimulatedDisk, Failed> {
        bare_disk(seeded(4, u64::from(node)), self.kept.then(|| secret_of(node)))
    }

    /// The disk of another machine in a node's place, with keys of its own and nothing else.
    pub(crate) fn second_disk(node: u16) -> Result<SimulatedDisk, Failed> {
        bare_disk(seeded(5, u64::from(node)), Some(second_secret(node)))
    }

    /// The gate of a node that does not ask its own policy. Nobody reads its records, which have a number for all nodes.
    pub(crate) fn open_gate(&self) -> Result<Gate<MemorySlots>, Failed> {
        Ok(Gate::new(GROUP, NodeId::FIRST, permission::none()?, MemorySlots::default()))
    }

    /// The policy of a node, parsed.
    pub(crate) fn policy(&self, node: u16, ordered: bool, bug: Option<Sabotage>) -> Result<Policy, Failed> {
        let keys: Vec<_> = self.keys.iter().map(|(name, held, _)| (name, held)).collect();
        permission::policy(node, &keys, ordered, bug)
    }
}
