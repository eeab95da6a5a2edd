//! The files of a group.

use std::{
    num::NonZeroU16,
    path::{Path, PathBuf},
};

use theta_ledger::founding::Founding;
use theta_names::{AddressError, Holders, NodeId, NodeNameError, WallTime};
use theta_service::config::{ListenConfig, NodeConfig};
use theta_store::Store;

use super::{
    deal, permissions,
    plan::{Addresses, Plan},
};
use crate::{
    access::Credentials,
    exit::Failure,
    files::{DraftDirectory, new_directory, write_new},
    founding::{About, FOUNDING, NodeKeys, OPERATOR, group_text},
    interrupt::Whole,
    vault::SealWord,
};

/// The name of a new group's client.
const CLIENT: &str = "client";

/// Makes a group: certificates, configuration, policies, stores and keys. The directory must not exist; it appears complete
/// or not at all.
pub fn create(dir: &Path, plan: &Plan, addresses: &[Addresses]) -> Result<(), Failure> {
    let draft = DraftDirectory::new(dir, 0o755, "name another with --dir")?;
    write_group(draft.path(), &group_name(dir), plan, addresses)?;
    draft.commit()
}

fn group_name(dir: &Path) -> String {
    dir.file_name().map_or_else(|| "theta".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Where a node is, and what it is called among the nodes of one machine: names are in the order of numbers.
fn about(number: NodeId, nodes: u16, addresses: &Addresses) -> Result<About, Failure> {
    let digits = nodes.to_string().len();
    let usage = |error: &dyn core::fmt::Display| Failure::Usage(error.to_string());
    Ok(About {
        name: format!("node {:0digits$}", number.get()).parse().map_err(|error: NodeNameError| usage(&error))?,
        peer: addresses.peer.to_string().parse().map_err(|error: AddressError| usage(&error))?,
        api: addresses.api.to_string().parse().map_err(|error: AddressError| usage(&error))?,
        number: Some(number),
    })
}

/// What all nodes of the group have.
struct Common {
    group: String,
    founding: String,
    policy: String,
}

impl Common {
    /// Makes a node's directory and gives its store, with the node's identity in it.
    fn write(
        &self,
        dir: &Path,
        number: NonZeroU16,
        (keys, addresses): (&NodeKeys, &Addresses),
        seal: &SealWord,
    ) -> Result<Store, Failure> {
        // A signal removes what is unfinished, and must not do so while more is being put there.
        let _whole = Whole::begin()?;
        new_directory(dir)?;
        write_new(&dir.join("group.toml"), self.group.as_bytes(), false)?;
        write_new(&dir.join(FOUNDING), self.founding.as_bytes(), false)?;
        write_new(&dir.join("policy.toml"), self.policy.as_bytes(), false)?;
        let listen = ListenConfig { peer: addresses.peer, api: addresses.api, metrics: Some(addresses.metrics) };
        let mut config = NodeConfig::new(number, listen);
        config.store.sealing = seal.0.clone();
        let text = config.to_toml().map_err(Failure::internal)?;
        write_new(&dir.join("node.toml"), text.as_bytes(), false)?;
        keys.write(dir, config)
    }
}

fn write_group(root: &Path, name: &str, plan: &Plan, addresses: &[Addresses]) -> Result<(), Failure> {
    let mut rng = crate::random::generator()?;
    let now = WallTime::now().seconds();
    let numbers: Vec<NonZeroU16> = (1..=plan.nodes()).filter_map(NonZeroU16::new).collect();
    let members = numbers.iter().zip(addresses).map(|(number, addresses)| {
        NodeKeys::generate(about(NodeId::from(*number), plan.nodes(), addresses)?, None, now, &mut rng)
    });
    let members = members.collect::<Result<Vec<_>, _>>()?;
    let client = Credentials::generate(CLIENT)?;

    let cards = members.iter().map(|keys| keys.card().clone()).collect();
    let founding = Founding::assemble(name, plan.threshold(), cards);
    let founding = founding.map_err(|error| Failure::Usage(error.to_string()))?;
    let common = Common {
        group: group_text(&founding, vec![client.group_client(CLIENT)])?,
        founding: founding.to_text(),
        policy: permissions::of_client(CLIENT, &client.policy_lines(CLIENT)),
    };
    write_new(&root.join("group.toml"), common.group.as_bytes(), false)?;
    // Here they are on one machine with all nodes, as all else is.
    let operators = root.join("operators");
    new_directory(&operators)?;
    for (number, keys) in numbers.iter().zip(&members) {
        keys.write_operator(&operators.join(format!("node-{number}.{OPERATOR}")))?;
    }
    let stores = numbers
        .iter()
        .zip(members.iter().zip(addresses))
        .map(|(number, member)| common.write(&node_dir(root, number.get()), *number, member, plan.seal()));
    let stores = stores.collect::<Result<Vec<_>, _>>()?;
    client.write(&root.join("client"))?;
    write_new(&root.join("client/group.toml"), common.group.as_bytes(), false)?;
    // Beside each group file, for clients that are made with it.
    write_new(&root.join(FOUNDING), common.founding.as_bytes(), false)?;
    write_new(&root.join("client").join(FOUNDING), common.founding.as_bytes(), false)?;
    let holders = Holders::first(plan.nodes());
    plan.keys().iter().try_for_each(|key| {
        let dealt = deal::deal(key, plan.any_k_of_n(), plan.modulus_bits(), &mut rng)?;
        deal::put((&stores, &holders), &root.join("client"), (key.key_name(), key.delivery()), &dealt)
    })
}

/// Where a node's files are.
pub(super) fn node_dir(root: &Path, number: u16) -> PathBuf {
    root.join(format!("node-{number}"))
}
