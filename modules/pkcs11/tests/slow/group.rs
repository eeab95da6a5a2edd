//! The files of a group whose nodes the tests play, and the sockets of these.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use tempfile::TempDir;
use theta_names::NodeId;
use theta_network::{
    Fingerprint, Identity,
    group::{GroupClient, GroupFile, GroupNode},
};

use crate::fake::keys_of;

/// A group on disk with its sockets bound.
pub(crate) struct Prepared {
    pub(crate) folder: TempDir,
    pub(crate) group: GroupFile,
    pub(crate) listeners: Vec<Listeners>,
}

/// The socket of one node.
pub(crate) struct Listeners {
    pub(crate) api: Option<TcpListener>,
}

fn write_identity(folder: &Path, stem: &str) -> Fingerprint {
    let made = Identity::generate(stem).unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(format!("{stem}.crt")), &made.certificate_pem).unwrap();
    let key = folder.join(format!("{stem}.key"));
    fs::write(&key, &made.key_pem).unwrap();
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
    made.fingerprint
}

fn bound() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

impl Prepared {
    pub(crate) fn new(k: u16, n: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut nodes, mut listeners) = (Vec::new(), Vec::new());
        for id in 1..=n {
            // Nobody listens for peers.
            let ((_, peer_address), (api, api_address)) = (bound(), bound());
            let certificate = write_identity(&folder.path().join(format!("node-{id}")), "node");
            let ceremony_key: [u8; 32] = keys_of(id).member().encode()[2..].try_into().unwrap();
            nodes.push(GroupNode {
                id: NodeId::try_from(id).unwrap(),
                name: None,
                peer_address: peer_address.to_string(),
                api_address: api_address.to_string(),
                certificate,
                ceremony_key: Some(ceremony_key.into()),
            });
            listeners.push(Listeners { api: Some(api) });
        }
        let client = folder.path().join("client");
        let certificate = write_identity(&client, "client");
        let group = GroupFile::new("slow", k, nodes, vec![GroupClient { name: "tester".to_owned(), certificate }]);
        let group = group.unwrap();
        fs::create_dir_all(client.join("keys")).unwrap();
        fs::write(client.join("group.toml"), group.to_text()).unwrap();
        Self { folder, group, listeners }
    }
}
