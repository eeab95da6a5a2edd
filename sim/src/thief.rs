//! A thief that copies whole stores, records all messages, and afterwards tries what follows from all of it together.
//!
//! This is the mobile adversary of `spec/ceremonies.md`, which reads and does not send. What must hold:
//!
//! - A stolen store gives the share in it, and those of ceremonies that ran when it was stolen. Nothing follows from the
//!   other recorded ceremonies, neither with that store nor with the identity alone.
//! - If no epoch of a key had k of its nodes stolen, no k shares of any epochs give the key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use theta_custody::{Custodian, CustodyInput, KeyEntry, Roster};
use theta_groups::{Group, Ristretto255, RistrettoScalar};
use theta_names::{Epoch, Version};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName, TypedKeyShare, TypedPublicKey};
use theta_sharing::{ShareIndex, coefficients_at_zero};
use theta_statements::CeremonyRequest;
use theta_store::{Options, Store, disk::SimulatedDisk};
use theta_wire::peer::{CUSTODY, Envelope};

use crate::group::{EPOCH, Failed, party};
use crate::setup::{Setup, sealing_key, seeded};
use crate::watch::{Observation, Observations};

/// For how many ticks a stolen node runs on the recorded messages.
const TICKS: u64 = 12;
/// The most combinations of shares that are tried for one key.
const COMBINATIONS: usize = 20_000;

/// One sharing of a key.
type Sharing = (KeyName, Version, Epoch);

/// What the thief has.
#[derive(Default)]
pub(crate) struct Thief {
    stores: Vec<(u16, Vec<u8>)>,
    /// The recorded messages of ceremonies, with sender and receiver.
    recorded: Vec<(u16, u16, Bytes)>,
}

/// A share that the thief has.
struct Loot {
    epoch: Epoch,
    node: u16,
    share: Arc<AnyKeyShare>,
}

/// All shares that the thief has, and their keys.
#[derive(Default)]
struct Hoard {
    shares: BTreeMap<(KeyName, Version), Vec<Loot>>,
    public: BTreeMap<(KeyName, Version), AnyPublicKey>,
}

impl Hoard {
    fn take(&mut self, node: u16, entry: &KeyEntry) {
        let key = (entry.name.clone(), entry.version);
        self.public.insert(key.clone(), entry.public.clone());
        let shares = self.shares.entry(key).or_default();
        let known = shares.iter().any(|loot| (loot.epoch, loot.node) == (entry.epoch, node));
        if let Some(share) = entry.expose_share().cloned().filter(|_| !known) {
            shares.push(Loot { epoch: entry.epoch, node, share });
        }
    }

    fn has(&self, node: u16, (name, version, epoch): &Sharing) -> bool {
        let shares = self.shares.get(&(name.clone(), *version));
        shares.is_some_and(|shares| shares.iter().any(|loot| (loot.epoch, loot.node) == (*epoch, node)))
    }
}

impl Thief {
    pub(crate) fn records(&mut self, from: u16, to: u16, bytes: &Bytes) {
        if let Ok(envelope) = Envelope::decode(bytes.clone())
            && envelope.stream == CUSTODY
        {
            self.recorded.push((from, to, envelope.payload));
        }
    }

    pub(crate) fn steals(&mut self, node: u16, content: Vec<u8>) {
        self.stores.push((node, content));
    }

    /// Tries everything; `requests` are those that clients have made, which the thief knows. The error is what it should
    /// not have found.
    pub(crate) fn tries(
        &self,
        setup: &Setup,
        requests: &[CeremonyRequest],
        observations: &mut Observations,
    ) -> Result<(), Failed> {
        let mut hoard = Hoard::default();
        for (node, content) in &self.stores {
            observations.note(Observation::Stolen);
            self.run(
                *node,
                &SimulatedDisk::with_content(content.clone()),
                &setup.roster,
                requests,
                (&mut hoard, observations),
            )?;
        }
        for node in self.stores.iter().map(|(node, _)| *node).collect::<BTreeSet<_>>() {
            self.run(node, &setup.empty_disk(node)?, &setup.roster, requests, (&mut hoard, observations))?;
        }
        for (key, shares) in &hoard.shares {
            let Some(public) = hoard.public.get(key) else { continue };
            let mut robbed: BTreeMap<Epoch, BTreeSet<u16>> = BTreeMap::new();
            for loot in shares {
                robbed.entry(loot.epoch).or_default().insert(loot.node);
            }
            let most = robbed.values().map(BTreeSet::len).max().unwrap_or(0);
            let epochs = robbed.len();
            let Some(opened) = combinations(shares, public) else { continue };
            if epochs > 1 {
                observations.note(Observation::EpochsRobbed);
            }
            if opened {
                observations.note(Observation::KeyCombined);
            }
            if opened && most < usize::from(public.threshold().k()) {
                return Err(format!(
                    "shares of key {} of {epochs} epochs, {most} of each at most, give the key",
                    key.0
                ));
            }
        }
        Ok(())
    }

    /// Runs a stolen node on everything that was recorded, and collects its shares.
    fn run(
        &self,
        node: u16,
        disk: &SimulatedDisk,
        roster: &Roster,
        requests: &[CeremonyRequest],
        (hoard, observations): (&mut Hoard, &mut Observations),
    ) -> Result<(), Failed> {
        let options = Options::default().with_rng(seeded(3, u64::from(node)));
        let store = Store::open_on(disk.backend(), &sealing_key(), options).map_err(|error| error.to_string())?;
        let custodian = Custodian::open(Arc::new(store), party(node)?, roster.clone());
        let mut custodian = custodian.map_err(|error| error.to_string())?;
        custodian.keys().iter().for_each(|entry| hoard.take(node, &entry));
        // A copy made during a ceremony contains its secret, hence the shares of both epochs.
        let running: BTreeSet<Sharing> = custodian
            .reports()
            .into_iter()
            .filter(|report| !report.state.is_over())
            .map(|report| (report.key, report.version, report.epoch))
            .collect();
        if !running.is_empty() {
            observations.note(Observation::StolenInCeremony);
        }
        for request in core::iter::once(None).chain(requests.iter().map(Some)) {
            if let Some(request) = request {
                // The result does not matter: no request can make this node deal, or open old messages.
                drop(custodian.hold(request.clone(), Vec::new(), &mut Vec::new()));
            }
            let to_node = self.recorded.iter().filter(|(_, to, _)| *to == node);
            for (from, _, payload) in to_node {
                let message = CustodyInput::Message { from: party(*from)?, bytes: payload.clone() };
                custodian.handle(message);
            }
            for tick in 0..TICKS {
                custodian.handle(CustodyInput::Tick(EPOCH + tick));
            }
            for entry in custodian.keys().iter().filter(|entry| entry.has_share()) {
                let sharing = (entry.name.clone(), entry.version, entry.epoch);
                if !running.contains(&sharing) && !hoard.has(node, &sharing) {
                    let (name, epoch) = (&entry.name, entry.epoch);
                    return Err(format!(
                        "node {node}, stolen, opens what was recorded: its share of {name} in epoch {epoch}"
                    ));
                }
                hoard.take(node, &entry);
            }
        }
        Ok(())
    }
}

/// Whether any k of these shares, of any epochs, give the key; `None` for keys of suites that are not tried.
fn combinations(shares: &[Loot], public: &AnyPublicKey) -> Option<bool> {
    let (Suite::Cks05Ristretto255, TypedPublicKey::Ristretto255(public)) = (public.suite(), public.typed()) else {
        return None;
    };
    let of = |loot: &Loot| match loot.share.typed() {
        TypedKeyShare::Ristretto255(share) => Some((share.index(), *share.secret().expose())),
        _ => None,
    };
    let known: Vec<_> = shares.iter().filter_map(of).collect();
    let k = usize::from(public.threshold().k());
    let mut chosen: Vec<Vec<usize>> = vec![Vec::new()];
    let mut tried = 0;
    while let Some(places) = chosen.pop() {
        if places.len() < k {
            let from = places.last().map_or(0, |last| last + 1);
            chosen.extend((from..known.len()).map(|next| [&places[..], &[next]].concat()));
            continue;
        }
        tried += 1;
        let parts: Vec<_> = places.iter().filter_map(|place| known.get(*place)).collect();
        let indices: Vec<ShareIndex> = parts.iter().map(|(index, _)| *index).collect();
        // Combinations with one index twice are skipped.
        if let Ok(coefficients) = coefficients_at_zero::<RistrettoScalar>(&indices) {
            let products = coefficients.into_iter().zip(&parts).map(|(coefficient, (_, secret))| coefficient * *secret);
            let sum = products.reduce(|sum, product| sum + product)?;
            if Ristretto255::mul_base(&sum) == *public.public_key() {
                return Some(true);
            }
        }
        if tried >= COMBINATIONS {
            break;
        }
    }
    Some(false)
}
