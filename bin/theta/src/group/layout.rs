//! The files of a group.

use std::{
    num::NonZeroU16,
    path::{Path, PathBuf},
};

use rand_core::CryptoRng;
use theta_ceremonies::CeremonyKeys;
use theta_names::NodeId;
use theta_network::{
    GeneratedIdentity, Identity,
    group::{CeremonyKey, GroupFile, GroupNode},
};
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
    vault::{self, SealWord},
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

/// A node whose files are being made.
struct Member {
    number: NonZeroU16,
    identity: GeneratedIdentity,
    ceremonies: CeremonyKeys,
}

impl Member {
    fn new(number: NonZeroU16, rng: &mut dyn CryptoRng) -> Result<Self, Failure> {
        let identity = Identity::generate(&format!("node {number}")).map_err(Failure::internal)?;
        Ok(Self { number, identity, ceremonies: CeremonyKeys::generate(number.into(), rng) })
    }

    fn ceremony_key(&self) -> Result<CeremonyKey, Failure> {
        // The encoding begins with the node's number, which the group file has already.
        let member = self.ceremonies.member().encode();
        let key = member.split_first_chunk::<2>().and_then(|(_, key)| <[u8; 32]>::try_from(key).ok());
        key.map(CeremonyKey::from).ok_or_else(|| Failure::internal("a ceremony key has another length"))
    }

    fn group_node(&self, addresses: &Addresses) -> Result<GroupNode, Failure> {
        Ok(GroupNode {
            id: NodeId::from(self.number),
            peer_address: addresses.peer.to_string(),
            api_address: addresses.api.to_string(),
            certificate: self.identity.fingerprint,
            ceremony_key: Some(self.ceremony_key()?),
        })
    }

    /// Makes the node's directory and returns its store, with the node's identity in it.
    fn write(
        &self,
        dir: &Path,
        group: &str,
        policy: &str,
        addresses: &Addresses,
        seal: &SealWord,
    ) -> Result<Store, Failure> {
        new_directory(dir)?;
        write_new(&dir.join("group.toml"), group.as_bytes(), false)?;
        write_new(&dir.join("policy.toml"), policy.as_bytes(), false)?;
        write_new(&dir.join("node.crt"), self.identity.certificate_pem.as_bytes(), false)?;
        write_new(&dir.join("node.key"), self.identity.key_pem.as_bytes(), true)?;
        let listen = ListenConfig { peer: addresses.peer, api: addresses.api, metrics: Some(addresses.metrics) };
        let mut config = NodeConfig::new(self.number, listen);
        config.store.sealing = seal.0.clone();
        let text = config.to_toml().map_err(Failure::internal)?;
        write_new(&dir.join("node.toml"), text.as_bytes(), false)?;
        config.resolve(dir);
        let store = vault::create(&config)?;
        store.set_identity(self.ceremonies.master())?;
        Ok(store)
    }
}

fn write_group(root: &Path, name: &str, plan: &Plan, addresses: &[Addresses]) -> Result<(), Failure> {
    let mut rng = crate::random::generator()?;
    let numbers = (1..=plan.nodes()).filter_map(NonZeroU16::new);
    let members = numbers.map(|number| Member::new(number, &mut rng)).collect::<Result<Vec<_>, _>>()?;
    let client = Credentials::generate(CLIENT)?;

    let nodes = members.iter().zip(addresses).map(|(member, addresses)| member.group_node(addresses));
    let clients = vec![client.group_client(CLIENT)];
    let group = GroupFile::new(name, plan.threshold(), nodes.collect::<Result<_, _>>()?, clients);
    let group = format!(
        "# The group: who belongs to it, where, and under which certificates. Public, and the same at all members.\n\n{}",
        group.map_err(Failure::internal)?.to_text()
    );
    write_new(&root.join("group.toml"), group.as_bytes(), false)?;
    let policy = permissions::of_client(CLIENT, &client.policy_lines(CLIENT));
    let stores = members.iter().zip(addresses).map(|(member, addresses)| {
        member.write(&node_dir(root, member.number.get()), &group, &policy, addresses, plan.seal())
    });
    let stores = stores.collect::<Result<Vec<_>, _>>()?;
    client.write(&root.join("client"))?;
    write_new(&root.join("client/group.toml"), group.as_bytes(), false)?;
    plan.keys().iter().try_for_each(|key| {
        let dealt = deal::deal(key, plan.any_k_of_n(), plan.modulus_bits(), &mut rng)?;
        deal::put(&stores, &root.join("client"), key.key_name(), &dealt)
    })
}

/// Where a node's files are.
pub(super) fn node_dir(root: &Path, number: u16) -> PathBuf {
    root.join(format!("node-{number}"))
}
