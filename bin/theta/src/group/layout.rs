//! The files of a group.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    num::NonZeroU16,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use theta_network::{
    GeneratedIdentity, Identity, PeerId,
    group::{GroupClient, GroupFile, GroupNode},
};
use theta_service::config::{ListenConfig, NodeConfig};

use super::{
    deal,
    plan::{Addresses, Plan},
};
use crate::{exit::Failure, files};

/// Whether others than the owner may read a file.
#[derive(Clone, Copy)]
pub(super) enum Readable {
    /// Everybody.
    ByAll,
    /// Nobody else.
    ByOwner,
}

/// Makes a group: certificates, configuration and keys. The directory must not exist; it appears complete or not at all.
pub(crate) fn create(dir: &Path, plan: &Plan, addresses: &[Addresses]) -> Result<(), Failure> {
    if dir.exists() {
        let name = dir.display();
        return Err(Failure::Usage(format!("{name} exists already, and is left as it is: name another with --dir")));
    }
    let parent = files::parent(dir);
    let draft = tempfile::Builder::new()
        .prefix(".theta-group-")
        .tempdir_in(&parent)
        .map_err(|error| Failure::writing(&dir.join("group.toml"), &error))?;
    write_group(draft.path(), &group_name(dir), plan, addresses)?;
    fs::rename(draft.path(), dir).map_err(|error| Failure::writing(dir, &error))?;
    // Nothing is left under the temporary name: there is nothing to remove.
    let _ = draft.keep();
    Ok(())
}

fn group_name(dir: &Path) -> String {
    dir.file_name().map_or_else(|| "theta".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn write_group(root: &Path, name: &str, plan: &Plan, addresses: &[Addresses]) -> Result<(), Failure> {
    let numbers = || (1..=plan.nodes()).filter_map(NonZeroU16::new);
    let identities: Vec<GeneratedIdentity> =
        numbers().map(|number| identity(&format!("node {number}"))).collect::<Result<_, _>>()?;
    let client = identity("client")?;

    let nodes = numbers().zip(addresses).zip(&identities).map(|((number, addresses), identity)| GroupNode {
        id: PeerId::from(number),
        peer_address: addresses.peer.to_string(),
        api_address: addresses.api.to_string(),
        certificate: identity.fingerprint,
    });
    let clients = vec![GroupClient { name: "client".to_owned(), certificate: client.fingerprint }];
    let group = GroupFile::new(name, plan.threshold(), nodes.collect(), clients).map_err(Failure::internal)?;
    let group = format!(
        "# The group: who belongs to it, where, and under which certificates. Public, and the same at all members.\n\n{}",
        group.to_text()
    );
    write(&root.join("group.toml"), group.as_bytes(), Readable::ByAll)?;

    for ((number, addresses), identity) in numbers().zip(addresses).zip(&identities) {
        let dir = node_dir(root, number.get());
        write_member(&dir, "node", &group, identity)?;
        let mut listen = ListenConfig { peer: addresses.peer, api: addresses.api, metrics: None };
        listen.metrics = Some(addresses.metrics);
        let config = NodeConfig::new(number, listen).to_toml().map_err(Failure::internal)?;
        write(&dir.join("node.toml"), config.as_bytes(), Readable::ByAll)?;
    }
    write_member(&root.join("client"), "client", &group, &client)?;
    write_keys(root, plan)
}

/// Where a node's files are.
pub(super) fn node_dir(root: &Path, number: u16) -> PathBuf {
    root.join(format!("node-{number}"))
}

fn identity(name: &str) -> Result<GeneratedIdentity, Failure> {
    Identity::generate(name).map_err(Failure::internal)
}

fn write_member(dir: &Path, what: &str, group: &str, identity: &GeneratedIdentity) -> Result<(), Failure> {
    for dir in [dir, &dir.join("keys")] {
        fs::DirBuilder::new().mode(0o700).create(dir).map_err(|error| Failure::writing(dir, &error))?;
    }
    write(&dir.join("group.toml"), group.as_bytes(), Readable::ByAll)?;
    write(&dir.join(format!("{what}.crt")), identity.certificate_pem.as_bytes(), Readable::ByAll)?;
    write(&dir.join(format!("{what}.key")), identity.key_pem.as_bytes(), Readable::ByOwner)
}

fn write_keys(root: &Path, plan: &Plan) -> Result<(), Failure> {
    let mut rng = crate::random::generator()?;
    plan.keys().iter().try_for_each(|key| {
        let dealt = deal::deal(key, plan.any_k_of_n(), plan.modulus_bits(), &mut rng)?;
        deal::write_key(root, plan.nodes(), key.key_name(), &dealt)
    })
}

/// Writes a new file.
pub(super) fn write(path: &Path, bytes: &[u8], readable: Readable) -> Result<(), Failure> {
    let mode = match readable {
        Readable::ByAll => 0o644,
        Readable::ByOwner => 0o600,
    };
    let written = (|| -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        // The mode at creation is subject to the umask; this one is not.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(bytes)
    })();
    written.map_err(|error| Failure::writing(path, &error))
}
