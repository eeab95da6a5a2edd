//! A whole group in one process: real nodes, real sockets, real keys.
#![allow(dead_code, unreachable_pub, reason = "each test crate uses a part of it")]

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    num::NonZeroU16,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hyper_util::rt::TokioIo;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use tempfile::TempDir;
use theta_ceremonies::CeremonyKeys;
use theta_custody::{DealtKey, import_dealt};
use theta_keyfiles::PublicKeyText as _;
use theta_names::{Delivery, Holders, NodeId};
use theta_network::{
    Identity,
    group::{CeremonyKey, GroupClient, GroupFile, GroupNode},
    tls,
};
use theta_schemes::{
    Suite,
    groups::Secret,
    keys::{AnyPublicKey, KeyName, deal_any},
};
use theta_service::{
    Listeners, Node, NodeBuilder, NodeConfig,
    config::{ListenConfig, Sealing, StoreConfig},
};
use theta_sharing::Threshold;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};

pub const CIPHER: &str = "vault";
pub const SIGNER: &str = "release";
pub const COIN: &str = "lottery";

pub const KEYS: [(&str, Suite); 3] =
    [(CIPHER, Suite::Sg02Ristretto255), (SIGNER, Suite::Bls04MinPk), (COIN, Suite::Cks05Ristretto255)];

/// A group on disk, and its nodes.
pub struct TestGroup {
    pub folder: TempDir,
    pub group: GroupFile,
    pub nodes: Vec<Option<Node>>,
}

/// A group on disk with its sockets bound; no node runs yet.
pub struct Prepared {
    pub folder: TempDir,
    pub group: GroupFile,
    pub listeners: Vec<Listeners>,
}

pub fn write_private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

pub fn write_identity(folder: &Path, name: &str) -> theta_network::Fingerprint {
    let made = Identity::generate(name).unwrap();
    let stem = name.split('-').next().unwrap();
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(format!("{stem}.crt")), &made.certificate_pem).unwrap();
    write_private(&folder.join(format!("{stem}.key")), &made.key_pem);
    made.fingerprint
}

/// An empty store, sealed by a key file, with an identity for ceremonies.
fn create_store(here: &Path, id: u16) -> CeremonyKey {
    store_with(here, id, [u8::try_from(id).unwrap(); 32])
}

/// The secret of one of a member's machines.
pub fn secret_of(id: u16, machine: u8) -> [u8; 32] {
    let mut secret = [machine; 32];
    secret[..2].copy_from_slice(&id.to_be_bytes());
    secret
}

pub fn store_with(here: &Path, id: u16, secret: [u8; 32]) -> CeremonyKey {
    fs::set_permissions(here, fs::Permissions::from_mode(0o700)).unwrap();
    write_private(&here.join("store.key"), &format!("{id:02x}").repeat(32));
    let config = StoreConfig { path: here.join("theta.redb"), sealing: Sealing::File(here.join("store.key")) };
    let store = config.create().unwrap();
    let secret = || Secret::new(secret);
    store.set_identity(&secret()).unwrap();
    let keys = CeremonyKeys::new(NodeId::try_from(id).unwrap(), secret());
    let encoded: [u8; 32] = keys.member().encode()[2..].try_into().unwrap();
    encoded.into()
}

pub fn bound() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

impl Prepared {
    pub fn new(k: u16, n: u16) -> Self {
        Self::delivered(k, n, Delivery::All)
    }

    /// The same with keys of this delivery, where their suites have it.
    pub fn delivered(k: u16, n: u16, delivery: Delivery) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut nodes = Vec::new();
        let mut listeners = Vec::new();
        for id in 1..=n {
            let ((peer, peer_address), (api, api_address), (metrics, metrics_address)) = (bound(), bound(), bound());
            let here = folder.path().join(format!("node-{id}"));
            let certificate = write_identity(&here, &format!("node-{id}"));
            let ceremony_key = create_store(&here, id);
            nodes.push(GroupNode {
                id: NodeId::try_from(id).unwrap(),
                name: None,
                peer_address: peer_address.to_string(),
                api_address: api_address.to_string(),
                certificate,
                ceremony_key: Some(ceremony_key),
            });
            let listen = ListenConfig { peer: peer_address, api: api_address, metrics: Some(metrics_address) };
            let config = NodeConfig::new(NonZeroU16::new(id).unwrap(), listen);
            fs::write(here.join("node.toml"), config.to_toml().unwrap()).unwrap();
            listeners.push(Listeners { peer: Some(peer), api: Some(api), metrics: Some(metrics) });
        }
        let client = folder.path().join("client");
        let certificate = write_identity(&client, "client");
        fs::create_dir_all(client.join("keys")).unwrap();
        let clients = vec![GroupClient { name: "tester".to_owned(), certificate }];
        let group = GroupFile::new("test", k, nodes, clients).unwrap();
        let prepared = Self { folder, group, listeners };
        for place in prepared.places() {
            fs::write(place.join("group.toml"), prepared.group.to_text()).unwrap();
        }
        prepared.deal(k, n, delivery);
        prepared.write_policy(&prepared.open_policy());
        prepared
    }

    fn places(&self) -> Vec<PathBuf> {
        let nodes = self.group.nodes().iter().map(|node| self.folder.path().join(format!("node-{}", node.id)));
        nodes.chain([self.folder.path().join("client")]).collect()
    }

    fn deal(&self, k: u16, n: u16, wanted: Delivery) {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        for (name, suite) in KEYS {
            let name: KeyName = name.parse().unwrap();
            let delivery = if suite.supports(wanted) { wanted } else { Delivery::All };
            let (public, shares) = deal_any(suite, Threshold::new(k, n).unwrap(), &mut rng);
            let folder = self.folder.path().join("client/keys");
            fs::write(folder.join(format!("{name}.pub")), public.to_text(&name)).unwrap();
            let holders = Holders::first(n);
            for (id, share) in (1..=n).zip(&shares) {
                let store = self.config(id).store.open().unwrap();
                let (name, public, share, holders) = (&name, &public, Some(share), &holders);
                import_dealt(&store, &DealtKey { name, public, share, delivery, holders, created: 1 }).unwrap();
            }
        }
    }

    /// A policy that lets the tester do everything.
    pub fn open_policy(&self) -> String {
        format!(
            "format = 1\n\n[[client]]\nname = \"tester\"\ncertificates = [\"{}\"]\n\n[[rule]]\nname = \"all\"\n\
             effect = \"allow\"\nclients = [\"tester\"]\nkeys = [\"*\"]\noperations = [\"*\"]\n",
            self.group.clients()[0].certificate
        )
    }

    /// Gives all nodes a policy.
    pub fn write_policy(&self, text: &str) {
        for id in 1..=self.group.nodes().len() {
            fs::write(self.folder.path().join(format!("node-{id}/policy.toml")), text).unwrap();
        }
    }

    pub fn config(&self, id: u16) -> NodeConfig {
        NodeConfig::load(&self.folder.path().join(format!("node-{id}/node.toml"))).unwrap()
    }

    /// Starts all nodes, each with the changes of `shape`.
    pub async fn start(
        self,
        mut configure: impl FnMut(u16, &mut NodeConfig),
        mut shape: impl FnMut(u16, NodeBuilder) -> NodeBuilder,
    ) -> TestGroup {
        let mut nodes = Vec::new();
        let configs: Vec<NodeConfig> = (1..=self.group.nodes().len()).map(|id| self.config(id as u16)).collect();
        for ((id, mut config), listeners) in (1..).zip(configs).zip(self.listeners) {
            config.cpu_threads = std::num::NonZeroUsize::new(1);
            configure(id, &mut config);
            let node = shape(id, Node::builder(config).listeners(listeners)).start().await.unwrap();
            nodes.push(Some(node));
        }
        TestGroup { folder: self.folder, group: self.group, nodes }
    }
}

impl TestGroup {
    /// Any 2 of 4, all honest.
    pub async fn new() -> Self {
        Prepared::new(2, 4).start(|_, _| {}, |_, node| node).await
    }

    pub fn client_folder(&self) -> PathBuf {
        self.folder.path().join("client")
    }

    pub fn client_identity(&self) -> Identity {
        let folder = self.client_folder();
        Identity::load(&folder.join("client.crt"), &folder.join("client.key")).unwrap()
    }

    pub fn public(&self, name: &str) -> AnyPublicKey {
        let text = fs::read_to_string(self.client_folder().join(format!("keys/{name}.pub"))).unwrap();
        AnyPublicKey::from_text(&text).unwrap().1
    }

    /// Gives a node another policy; returns when it is in force.
    pub async fn set_policy(&self, id: u16, text: &str) {
        fs::write(self.folder.path().join(format!("node-{id}/policy.toml")), text).unwrap();
        self.node(id).reload_policy().await.unwrap();
    }

    /// Gives all running nodes another policy.
    pub async fn set_policies(&self, text: &str) {
        for node in self.nodes.iter().flatten() {
            self.set_policy(node.id().get(), text).await;
        }
    }

    /// Waits until enough peers have confirmed each node's store.
    pub async fn trusted(&self) {
        for node in self.nodes.iter().flatten() {
            while !node.orchestrator().is_trusted() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Stops a node and starts it again with what it kept.
    pub async fn restart(&mut self, id: u16) {
        let place = usize::from(id) - 1;
        self.nodes[place].take().unwrap().shutdown().await;
        let file = self.folder.path().join(format!("node-{id}/node.toml"));
        let mut config = NodeConfig::load(&file).unwrap();
        config.cpu_threads = std::num::NonZeroUsize::new(1);
        self.nodes[place] = Some(Node::start(config).await.unwrap());
    }

    /// Stops a node at once, as if its process were gone.
    pub fn kill(&mut self, id: u16) {
        drop(self.nodes[usize::from(id) - 1].take());
    }

    pub async fn shutdown(self) {
        for node in self.nodes.into_iter().flatten() {
            node.shutdown().await;
        }
    }

    pub fn node(&self, id: u16) -> &Node {
        self.nodes[usize::from(id) - 1].as_ref().unwrap()
    }

    /// A connection to a node's API as any gRPC library would make it.
    pub async fn channel(&self, id: u16) -> Channel {
        self.channel_as(id, &self.client_identity()).await.unwrap()
    }

    pub async fn channel_as(&self, id: u16, identity: &Identity) -> Result<Channel, tonic::transport::Error> {
        let node = self.group.node(NodeId::try_from(id).unwrap()).unwrap().clone();
        channel_to(&node.api_address, node.certificate, identity).await
    }
}

/// A connection to the API at this address, of the node with this certificate.
pub async fn channel_to(
    address: &str,
    certificate: theta_network::Fingerprint,
    identity: &Identity,
) -> Result<Channel, tonic::transport::Error> {
    let config = tls::client_config(identity, certificate, &[b"h2"]).unwrap();
    let place = address.to_owned();
    let connector = tower::service_fn(move |_| {
        let (address, config) = (place.clone(), Arc::clone(&config));
        async move {
            let tcp = TcpStream::connect(&address).await?;
            tcp.set_nodelay(true)?;
            let tls = TlsConnector::from(config).connect(tls::server_name(), tcp).await?;
            Ok::<_, std::io::Error>(TokioIo::new(tls))
        }
    });
    Endpoint::from_shared(format!("http://{address}"))?
        .connect_timeout(Duration::from_secs(20))
        .connect_with_connector(connector)
        .await
}
