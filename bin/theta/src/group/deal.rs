//! Deals keys, and puts them into the stores of nodes that do not run.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use rand_core::CryptoRng;
use theta_custody::{CustodyError, KeyEntry, KeyTable, KeyTableError};
use theta_keyfiles::PublicKeyText as _;
use theta_names::{Delivery, Holders, NodeId, WallTime};
use theta_network::group::GroupFile;
use theta_schemes::{
    Suite,
    keys::{AnyKeyShare, AnyPublicKey, KeyKind, KeyName, deal_any, deal_rsa},
};
use theta_sharing::Threshold;
use theta_store::Store;

use super::{layout::node_dir, plan::KeySpec};
use crate::{exit::Failure, files::write_new, interrupt::Whole, progress::PrimeSearch, vault};

/// A dealt key: the public key and its shares.
pub(crate) type DealtKey = (AnyPublicKey, Vec<AnyKeyShare>);

/// The bits of an RSA key by default.
pub(crate) const DEFAULT_BITS: u32 = 2048;

/// The size of RSA keys.
#[derive(Debug, Args)]
pub(crate) struct ModulusArgs {
    /// Bits of the RSA keys: 2048 (the default; seconds), 3072 or 4096 (minutes)
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    bits: Option<u32>,
}

fn parse_bits(text: &str) -> Result<u32, String> {
    match text {
        "2048" => Ok(2048),
        "3072" => Ok(3072),
        "4096" => Ok(4096),
        _ => Err("RSA keys have 2048, 3072 or 4096 bits".to_owned()),
    }
}

impl ModulusArgs {
    /// The size for these keys.
    pub(crate) fn bits(&self, keys: &[KeySpec]) -> Result<u32, Failure> {
        if self.bits.is_some() && !keys.iter().any(|key| is_rsa(key.suite())) {
            return Err(Failure::Usage(
                "--bits is for RSA keys (sh00-..., cks05-sh00), and none is to be dealt".to_owned(),
            ));
        }
        Ok(self.bits.unwrap_or(DEFAULT_BITS))
    }
}

fn is_rsa(suite: Suite) -> bool {
    suite.key_kind() == KeyKind::Rsa
}

/// Deals a new key. The search for an RSA key's primes is shown on a terminal.
pub(crate) fn deal(
    key: &KeySpec,
    threshold: Threshold,
    bits: u32,
    rng: &mut dyn CryptoRng,
) -> Result<DealtKey, Failure> {
    key.check_threshold(threshold)?;
    if !is_rsa(key.suite()) {
        return Ok(deal_any(key.suite(), threshold, rng));
    }
    let search = PrimeSearch::new(key.name(), bits);
    let mut progress =
        |found: theta_schemes::groups::modular::SearchProgress| search.reached(found.tested, found.found);
    deal_rsa(key.suite(), bits, threshold, &mut progress, rng).map_err(|error| Failure::Usage(error.to_string()))
}

/// Puts a key into the stores of a group's nodes, in the order of these, and its public key into the client's directory.
pub(super) fn put(
    (stores, holders): (&[Store], &Holders),
    client: &Path,
    (name, delivery): (&KeyName, Delivery),
    (public, shares): &DealtKey,
) -> Result<(), Failure> {
    let created = WallTime::now().seconds();
    // A signal must not leave a key at some nodes only.
    let _whole = Whole::begin()?;
    for (store, share) in stores.iter().zip(shares) {
        let dealt = theta_custody::DealtKey { name, public, share: Some(share), delivery, holders, created };
        theta_custody::import_dealt(store, &dealt)
            .map_err(|error| Failure::Failed(format!("{}: {error}", store.place())))?;
    }
    write_new(&public_file(client, name), public.to_text(name).as_bytes(), false)
}

fn public_file(client: &Path, name: &KeyName) -> PathBuf {
    client.join(format!("keys/{name}.pub"))
}

/// The directories of a group, all in one place as `theta group init` leaves them, with the stores of its nodes open; no
/// node runs.
pub(crate) struct ExistingGroup {
    client: PathBuf,
    numbers: Vec<NodeId>,
    stores: Vec<Store>,
    threshold: u16,
}

/// The refusal of a secret that a key of another purpose has already.
pub(crate) fn one_secret(other: &KeyName) -> Failure {
    Failure::Usage(format!(
        "the group has this secret already, for another purpose: it is that of the key {other}, and what is done with one could \
         be turned against the other; make a new key instead"
    ))
}

impl ExistingGroup {
    /// Looks for the group's directories.
    pub(crate) fn open(root: &Path) -> Result<Self, Failure> {
        let file = root.join("group.toml");
        if !file.is_file() {
            let root = root.display();
            return Err(Failure::Usage(format!(
                "{root} is not a group's directory (it has no group.toml): name the one that theta group init made with --group"
            )));
        }
        let group = GroupFile::load(&file).map_err(|error| Failure::Usage(error.to_string()))?;
        let dirs: Vec<PathBuf> = group.nodes().iter().map(|node| node_dir(root, node.id.get())).collect();
        let client = root.join("client");
        if let Some(missing) = dirs.iter().chain([&client]).find(|dir| !dir.is_dir()) {
            return Err(Failure::Usage(format!(
                "{} is missing: a dealer needs the directories of all nodes in one place; theta keys create needs no dealer",
                missing.display()
            )));
        }
        let stores = dirs.iter().map(|dir| vault::open(&vault::config(dir)?)).collect::<Result<_, _>>()?;
        let numbers = group.nodes().iter().map(|node| node.id).collect();
        Ok(Self { client, numbers, stores, threshold: group.threshold() })
    }

    /// n.
    pub(crate) fn nodes(&self) -> u16 {
        u16::try_from(self.stores.len()).unwrap_or(u16::MAX)
    }

    /// The k that the group file names.
    pub(crate) const fn threshold(&self) -> u16 {
        self.threshold
    }

    /// Refuses the name of a key that exists or has existed.
    pub(crate) fn check_free(&self, name: &KeyName) -> Result<(), Failure> {
        let taken =
            |place: &str| Failure::Usage(format!("a key {name} exists already in {place}: choose another name"));
        let stored = name.as_str().parse().map_err(Failure::internal)?;
        for store in &self.stores {
            if store.key(&stored)?.is_some() {
                return Err(taken(store.place()));
            }
        }
        let file = public_file(&self.client, name);
        if file.exists() { Err(taken(&file.display().to_string())) } else { Ok(()) }
    }

    /// Refuses a key that a node has, or whose secret it has for another purpose: with both keys the node would not start.
    pub(crate) fn check_new(&self, name: &KeyName, (public, _): &DealtKey) -> Result<(), Failure> {
        self.stores.iter().try_for_each(|store| match theta_custody::check_new_key(store, name, public) {
            Err(CustodyError::Table(KeyTableError::SameKey { first, .. })) => Err(Failure::Usage(format!(
                "the group has this key already: it is {first}; a node does not start with one key under two names"
            ))),
            Err(CustodyError::Table(KeyTableError::SameSecret { first, .. })) => Err(one_secret(&first)),
            checked => checked.map_err(|error| Failure::Failed(format!("{}: {error}", store.place()))),
        })
    }

    /// All nodes.
    pub(crate) fn members(&self) -> impl Iterator<Item = NodeId> {
        self.numbers.iter().copied()
    }

    /// All versions of the keys that any of the nodes has.
    pub(crate) fn keys(&self) -> Result<Vec<Arc<KeyEntry>>, Failure> {
        let tables = self.numbers.iter().zip(&self.stores).map(|(node, store)| {
            let table = theta_custody::read_keys(store, *node);
            table.map_err(|error| Failure::Failed(format!("{}: {error}", store.place())))
        });
        Ok(tables.collect::<Result<Vec<_>, _>>()?.iter().flat_map(KeyTable::iter).collect())
    }

    /// Puts all these keys into all stores, or none into any. Their names must be free ([`ExistingGroup::check_free`]).
    pub(crate) fn add(&self, keys: &[(&KeyName, Delivery, DealtKey)]) -> Result<(), Failure> {
        let _whole = Whole::begin()?;
        let holders = Holders::new(self.numbers.clone()).map_err(Failure::internal)?;
        for (place, (name, delivery, key)) in keys.iter().enumerate() {
            put((&self.stores, &holders), &self.client, (name, *delivery), key).inspect_err(|_| {
                self.remove(name);
                for (before, ..) in keys.iter().take(place) {
                    self.remove(before);
                    // The public file of the one that failed, if there is one, is somebody else's.
                    let _ = std::fs::remove_file(public_file(&self.client, before));
                }
            })?;
        }
        Ok(())
    }

    fn remove(&self, name: &KeyName) {
        for store in &self.stores {
            // Stores without the key return an error; where removing fails, theta keys remove can remove it later.
            let _ = store.write(|transaction| transaction.remove_key(name));
        }
    }
}
