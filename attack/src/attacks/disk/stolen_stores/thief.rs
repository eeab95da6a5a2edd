//! What the thief does with stolen stores.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use bytes::Bytes;
use theta_ceremonies::CeremonyMember;
use theta_custody::{Custodian, CustodyEffect, CustodyInput, KeyEntry, Roster, To};
use theta_groups::{Group as _, Ristretto255, RistrettoScalar};
use theta_names::{Epoch, NodeId};
use theta_network::group::GroupFile;
use theta_schemes::Suite;
use theta_schemes::keys::{TypedKeyShare, TypedPublicKey};
use theta_sharing::{ShareIndex, coefficients_at_zero};
use theta_store::{Options, SealingKey, Store, disk::SimulatedDisk};

use crate::{attack::Trouble, group::Group};

/// For how many ticks stolen nodes run with each other.
const TICKS: u64 = 40;
/// A time after all thefts, in seconds since 1970.
const LATER: u64 = 1_800_000_000;

/// A copy of a node.
#[derive(Clone)]
pub(super) struct Theft {
    pub(super) node: u16,
    /// The epoch of the key at that time, or the one before the ceremony that was running.
    pub(super) epoch: Epoch,
    pub(super) store: Vec<u8>,
    /// The file with the sealing key.
    pub(super) key: PathBuf,
}

/// All that was stolen.
pub(super) struct Thief {
    roster: Roster,
    thefts: Vec<Theft>,
}

/// What the thief has found.
#[derive(Default)]
pub(super) struct Found {
    /// The number of shares in the stores, and of their epochs.
    pub(super) shares: usize,
    pub(super) epochs: usize,
    /// The number of copies with a running ceremony.
    pub(super) running: usize,
    /// Shares that the thief recovered although it did not rob their node in that epoch.
    pub(super) opened: Vec<String>,
    /// The number of pairs of shares that were tried, and whether one gives the key.
    pub(super) pairs: usize,
    pub(super) key: bool,
}

/// The key's shares by epoch and node, with its public key.
struct Hoard {
    shares: BTreeMap<(Epoch, u16), (ShareIndex, RistrettoScalar)>,
    public: Option<<Ristretto255 as theta_groups::Group>::Element>,
}

/// A stolen node that the thief runs.
type Runs = (u16, Custodian);

fn trouble(error: impl core::fmt::Display) -> Trouble {
    Trouble::new(error.to_string())
}

impl Thief {
    pub(super) fn new(group: &Group) -> Result<Self, Trouble> {
        Ok(Self { roster: credulous(group.file())?, thefts: Vec::new() })
    }

    pub(super) fn takes(&mut self, theft: Theft) {
        self.thefts.push(theft);
    }

    /// Opens the stores, runs any two of them with each other, and combines the shares.
    pub(super) fn tries(&self, key: &str) -> Result<Found, Trouble> {
        let mut found = Found::default();
        let mut hoard = Hoard { shares: BTreeMap::new(), public: None };
        // A copy counts for the epoch in which it was made; one made during a ceremony counts for the epochs on both sides.
        let mut robbed = BTreeSet::new();
        for theft in &self.thefts {
            let custodian = self.open(theft)?;
            let running = custodian.reports().iter().any(|report| !report.state.is_over());
            found.running += usize::from(running);
            robbed.insert((theft.epoch, theft.node));
            if running {
                robbed.extend(theft.epoch.next().map(|next| (next, theft.node)));
            }
            let entry = custodian.keys().get(key).ok_or_else(|| Trouble::new("a stolen store lacks the key"))?;
            if entry.epoch < theft.epoch {
                return Err(Trouble::new("a node was robbed before it had the epoch for which it was"));
            }
            if hoard.take(theft.node, &entry) {
                robbed.insert((entry.epoch, theft.node));
            }
        }
        found.shares = hoard.shares.len();
        found.epochs = hoard.shares.keys().map(|(epoch, _)| *epoch).collect::<BTreeSet<_>>().len();
        for (place, early) in self.thefts.iter().enumerate() {
            for late in self.thefts.iter().skip(place + 1).filter(|late| late.node != early.node) {
                self.run(key, early, late, &mut hoard)?;
            }
        }
        for (epoch, node) in hoard.shares.keys().filter(|of| !robbed.contains(of)) {
            found.opened.push(format!("node {node}'s of epoch {epoch}"));
        }
        (found.pairs, found.key) = hoard.combine()?;
        Ok(found)
    }

    fn open(&self, theft: &Theft) -> Result<Custodian, Trouble> {
        let key = SealingKey::from_file(&theft.key).map_err(trouble)?;
        let disk = SimulatedDisk::with_content(theft.store.clone());
        let store = Store::open_on(disk.backend(), &key, Options::default()).map_err(trouble)?;
        self.start(theft.node, store)
    }

    /// The node with its identity and an empty store.
    fn bare(&self, theft: &Theft) -> Result<Custodian, Trouble> {
        let key = SealingKey::from_file(&theft.key).map_err(trouble)?;
        let stolen = SimulatedDisk::with_content(theft.store.clone());
        let stolen = Store::open_on(stolen.backend(), &key, Options::default()).map_err(trouble)?;
        let identity = stolen.identity().map_err(trouble)?;
        let identity = identity.ok_or_else(|| Trouble::new("a stolen store has no identity"))?;
        let store = Store::create_on(SimulatedDisk::default().backend(), &key, Options::default()).map_err(trouble)?;
        store.set_identity(&identity).map_err(trouble)?;
        self.start(theft.node, store)
    }

    fn start(&self, node: u16, store: Store) -> Result<Custodian, Trouble> {
        let node = NodeId::try_from(node).map_err(trouble)?;
        Custodian::open(Arc::new(store), node, self.roster.clone()).map_err(trouble)
    }

    /// Lets two stolen nodes exchange all that they have; the earlier one as it was, and with its identity alone.
    fn run(&self, key: &str, early: &Theft, late: &Theft, hoard: &mut Hoard) -> Result<(), Trouble> {
        for first in [self.open(early)?, self.bare(early)?] {
            let mut nodes = [(early.node, first), (late.node, self.open(late)?)];
            talk(&mut nodes);
            for (node, custodian) in &nodes {
                if let Some(entry) = custodian.keys().get(key) {
                    hoard.take(*node, &entry);
                }
            }
        }
        Ok(())
    }
}

/// The roster of a group with k = 1, whose nodes believe every single node.
fn credulous(file: &GroupFile) -> Result<Roster, Trouble> {
    let mut members = Vec::new();
    for node in file.nodes() {
        let key = node.ceremony_key.ok_or_else(|| Trouble::new("a node without an identity"))?;
        members.push(CeremonyMember::of(node.id, key.as_bytes()).map_err(trouble)?);
    }
    let nodes = file.nodes().iter().map(|node| node.id).collect();
    Ok(Roster { name: file.name().to_owned(), nodes, members, k: 1, founding: None })
}

/// Lets two nodes talk with each other only.
fn talk(nodes: &mut [Runs; 2]) {
    let mut packets: Vec<(u16, u16, Bytes)> = Vec::new();
    let [first, second] = [&nodes[0], &nodes[1]].map(|(number, _)| *number);
    for tick in 0..TICKS {
        for (number, custodian) in nodes.iter_mut() {
            let other = if *number == first { second } else { first };
            let greet = NodeId::try_from(other).ok().filter(|_| tick == 0).map(CustodyInput::Connected);
            for input in greet.into_iter().chain([CustodyInput::Tick(LATER + tick)]) {
                send(*number, other, custodian.handle(input), &mut packets);
            }
        }
        while let Some((from, to, bytes)) = packets.pop() {
            let Some((_, custodian)) = nodes.iter_mut().find(|(number, _)| *number == to) else { continue };
            let Ok(sender) = NodeId::try_from(from) else { continue };
            let said = custodian.handle(CustodyInput::Message { from: sender, bytes });
            send(to, from, said, &mut packets);
        }
    }
}

fn send(from: u16, other: u16, effects: Vec<CustodyEffect>, packets: &mut Vec<(u16, u16, Bytes)>) {
    for effect in effects {
        match effect {
            CustodyEffect::Send { to: To::One(to), bytes } if to.get() == other => packets.push((from, other, bytes)),
            CustodyEffect::Send { to: To::All, bytes } => packets.push((from, other, bytes)),
            _ => {}
        }
    }
}

impl Hoard {
    /// Takes the share of an entry; returns whether there is one.
    fn take(&mut self, node: u16, entry: &KeyEntry) -> bool {
        let (Suite::Cks05Ristretto255, Some(share)) = (entry.public.suite(), entry.expose_share()) else {
            return false;
        };
        let (TypedPublicKey::Ristretto255(public), TypedKeyShare::Ristretto255(share)) =
            (entry.public.typed(), share.typed())
        else {
            return false;
        };
        self.public = Some(*public.public_key());
        self.shares.insert((entry.epoch, node), (share.index(), *share.secret().expose()));
        true
    }

    /// Combines all pairs of shares, of any epochs. Returns the number of pairs, and whether one gives the key.
    fn combine(&self) -> Result<(usize, bool), Trouble> {
        let public = self.public.ok_or_else(|| Trouble::new("no share was stolen"))?;
        let (mut pairs, mut opened) = (0, false);
        for (place, (first, one)) in self.shares.values().enumerate() {
            for (second, other) in self.shares.values().skip(place + 1).filter(|(second, _)| second != first) {
                let coefficients = coefficients_at_zero::<RistrettoScalar>(&[*first, *second]).map_err(trouble)?;
                let sum = coefficients.into_iter().zip([one, other]).map(|(factor, share)| factor * *share);
                let sum = sum.reduce(|sum, part| sum + part);
                pairs += 1;
                opened |= sum.is_some_and(|sum| Ristretto255::mul_base(&sum) == public);
            }
        }
        Ok((pairs, opened))
    }
}
