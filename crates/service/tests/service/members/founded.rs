//! Groups that were founded with cards, whose members come and go while they run.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use tempfile::TempDir;
use theta_ceremonies::CeremonyKeys;
use theta_custody::{DealtKey, import_dealt};
use theta_ledger::founding::{Card, CardContent, Founding, NodeSignatures};
use theta_ledger::{MemberChange, OperatorKey};
use theta_names::{Delivery, Holders, NodeId};
use theta_network::{
    Fingerprint, Identity,
    group::{CeremonyKey, GroupClient, GroupFile, GroupNode},
};
use theta_schemes::{
    groups::Secret,
    keys::{AnyPublicKey, KeyName, deal_any},
};
use theta_service::{Listeners, Node, NodeConfig, config::ListenConfig};
use theta_sharing::Threshold;
use theta_statements::{CeremonyRequest, KeyChange, MemberRequest};
use theta_wire::v1::{
    self, CeremonyState, Wait, governance_client::GovernanceClient, threshold_keys_client::ThresholdKeysClient,
    threshold_protocol_client::ThresholdProtocolClient,
};
use tokio::time;
use tonic::transport::Channel;

use crate::group::{KEYS, SIGNER, bound, channel_to, secret_of, store_with, write_identity};

/// Long enough for a busy machine; only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn node(number: u16) -> NodeId {
    NodeId::try_from(number).unwrap()
}

pub(crate) fn operator(number: u16) -> OperatorKey {
    OperatorKey::new(Secret::new([u8::try_from(number).unwrap() ^ 0xa0; 32]))
}

/// One machine: its folder, its card, and its sockets while it does not run.
pub(crate) struct Machine {
    pub(crate) number: u16,
    pub(crate) folder: PathBuf,
    pub(crate) card: Card,
    secret: [u8; 32],
    listeners: Option<Listeners>,
}

fn listen() -> (Listeners, ListenConfig) {
    let ((peer, peer_address), (api, api_address)) = (bound(), bound());
    let bound: (TcpListener, TcpListener) = (peer, api);
    let listeners = Listeners { peer: Some(bound.0), api: Some(bound.1), metrics: None };
    (listeners, ListenConfig { peer: peer_address, api: api_address, metrics: None })
}

impl Machine {
    /// A machine of the member of this number; `which` tells a member's machines apart.
    fn new(folder: PathBuf, number: u16, which: u8) -> Self {
        let (listeners, addresses) = listen();
        let tls_key = *write_identity(&folder, &format!("node-{number}")).as_bytes();
        let secret = secret_of(number, which);
        store_with(&folder, number, secret);
        let keys = CeremonyKeys::new(node(number), Secret::new(secret));
        let content = CardContent {
            name: format!("node-{number}").parse().unwrap(),
            ceremony_key: keys.member().verifying_key().bytes().try_into().unwrap(),
            tls_key,
            operator_key: operator(number).id().unwrap(),
            peer_address: addresses.peer.to_string().parse().unwrap(),
            api_address: addresses.api.to_string().parse().unwrap(),
            made: 1,
            until: u64::MAX,
        };
        let signature = keys.sign(&content.signed());
        let card = content.with_signature(signature, &NodeSignatures).unwrap();
        let config = NodeConfig::new(NonZeroU16::new(number).unwrap(), addresses);
        fs::write(folder.join("node.toml"), config.to_toml().unwrap()).unwrap();
        Self { number, folder, card, secret, listeners: Some(listeners) }
    }

    /// Other sockets, and the card with which the member tells of them.
    pub(crate) fn moves(&mut self) -> MemberChange {
        self.renews(self.card.content().tls_key)
    }

    /// Other sockets and another TLS key. What the machine was stays in a folder of its own, as somebody may have copied it.
    pub(crate) fn rekeys(&mut self) -> (Self, MemberChange) {
        let folder = self.folder.with_extension("old");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::metadata(&self.folder).unwrap().permissions()).unwrap();
        for file in fs::read_dir(&self.folder).unwrap().map(Result::unwrap).filter(|file| file.path().is_file()) {
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
        let old = Self { number: self.number, folder, card: self.card.clone(), secret: self.secret, listeners: None };
        let tls_key = *write_identity(&self.folder, &format!("node-{}", self.number)).as_bytes();
        (old, self.renews(tls_key))
    }

    fn renews(&mut self, tls_key: [u8; 32]) -> MemberChange {
        let (listeners, addresses) = listen();
        let mut content = self.card.content().clone();
        content.tls_key = tls_key;
        content.peer_address = addresses.peer.to_string().parse().unwrap();
        content.api_address = addresses.api.to_string().parse().unwrap();
        content.made += 1;
        let keys = CeremonyKeys::new(node(self.number), Secret::new(self.secret));
        let signature = keys.sign(&content.signed());
        self.card = content.with_signature(signature, &NodeSignatures).unwrap();
        let config = NodeConfig::new(NonZeroU16::new(self.number).unwrap(), addresses);
        fs::write(self.folder.join("node.toml"), config.to_toml().unwrap()).unwrap();
        self.listeners = Some(listeners);
        MemberChange::Renew { node: self.number, card: self.card.clone() }
    }

    fn listed(&self) -> GroupNode {
        let content = self.card.content();
        GroupNode {
            id: node(self.number),
            name: Some(content.name.clone()),
            peer_address: content.peer_address.to_string(),
            api_address: content.api_address.to_string(),
            certificate: Fingerprint::from(content.tls_key),
            ceremony_key: Some(CeremonyKey::from(content.ceremony_key)),
        }
    }

    pub(crate) async fn start(&mut self) -> Node {
        let mut config = NodeConfig::load(&self.folder.join("node.toml")).unwrap();
        config.cpu_threads = NonZeroUsize::new(1);
        let builder = Node::builder(config);
        let listeners = self.listeners.take().unwrap_or_default();
        builder.listeners(listeners).start().await.unwrap()
    }

    pub(crate) fn group_file(&self) -> GroupFile {
        GroupFile::load(&self.folder.join("group.toml")).unwrap()
    }
}

/// A group, and all machines that its members have.
pub(crate) struct Founded {
    folder: TempDir,
    pub(crate) founding: Founding,
    client: Identity,
    clients: Vec<GroupClient>,
    policy: String,
    pub(crate) machines: BTreeMap<u16, Machine>,
    pub(crate) nodes: BTreeMap<u16, Node>,
    pub(crate) publics: BTreeMap<String, AnyPublicKey>,
    nonces: u8,
}

impl Founded {
    /// Any k of n, with the keys that a dealer brought, all running.
    pub(crate) async fn new(k: u16, n: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machines: BTreeMap<u16, Machine> =
            (1..=n).map(|id| (id, Machine::new(folder.path().join(format!("node-{id}")), id, 7))).collect();
        let cards = machines.values().map(|machine| machine.card.clone()).collect();
        let founding = Founding::assemble("test", k, cards).unwrap();
        let here = folder.path().join("client");
        let certificate = write_identity(&here, "client");
        let client = Identity::load(&here.join("client.crt"), &here.join("client.key")).unwrap();
        let policy = format!(
            "format = 1\n\n[[client]]\nname = \"tester\"\ncertificates = [\"{certificate}\"]\n\n[[rule]]\nname = \"all\"\n\
             effect = \"allow\"\nclients = [\"tester\"]\nkeys = [\"*\"]\noperations = [\"*\", \"group.change\"]\n"
        );
        let clients = vec![GroupClient { name: "tester".to_owned(), certificate }];
        let (nodes, publics) = (BTreeMap::new(), BTreeMap::new());
        let mut group = Self { folder, founding, client, clients, policy, machines, nodes, publics, nonces: 0 };
        group.deal(k, n);
        let listed = group.machines.values().map(Machine::listed).collect();
        let file = GroupFile::new("test", k, listed, group.clients.clone()).unwrap();
        let text = file.with_founding(group.founding.to_text()).to_text();
        for id in 1..=n {
            group.furnish(id, &text);
            group.start(id).await;
        }
        group
    }

    fn deal(&mut self, k: u16, n: u16) {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        for (name, suite) in KEYS {
            let key: KeyName = name.parse().unwrap();
            let (public, shares) = deal_any(suite, Threshold::new(k, n).unwrap(), &mut rng);
            for (id, share) in (1..=n).zip(&shares) {
                let config = NodeConfig::load(&self.machines[&id].folder.join("node.toml")).unwrap();
                let store = config.store.open().unwrap();
                let (public, share, holders) = (&public, Some(share), &Holders::first(n));
                import_dealt(
                    &store,
                    &DealtKey { name: &key, public, share, delivery: Delivery::All, holders, created: 1 },
                )
                .unwrap();
            }
            self.publics.insert(name.to_owned(), public);
        }
    }

    /// Gives a machine its group file and its policy.
    fn furnish(&self, id: u16, group: &str) {
        let folder = &self.machines[&id].folder;
        fs::write(folder.join("group.toml"), group).unwrap();
        fs::write(folder.join("policy.toml"), &self.policy).unwrap();
    }

    pub(crate) async fn start(&mut self, id: u16) {
        let node = self.machines.get_mut(&id).unwrap().start().await;
        self.nodes.insert(id, node);
    }

    pub(crate) async fn stop(&mut self, id: u16) {
        self.nodes.remove(&id).unwrap().shutdown().await;
    }

    /// A new machine for the member of this number, which may be a new one; it has the group as another node has it.
    pub(crate) fn machine(&mut self, id: u16, which: u8) -> Option<Machine> {
        let folder = self.folder.path().join(format!("node-{id}-{which}"));
        self.machines.insert(id, Machine::new(folder, id, which))
    }

    /// What a client or another node gives a new machine: the group with this machine in it.
    pub(crate) fn join(&self, id: u16, like: u16) {
        let file = self.machines[&like].group_file();
        let mut nodes: Vec<GroupNode> = file.nodes().iter().filter(|it| it.id != node(id)).cloned().collect();
        nodes.push(self.machines[&id].listed());
        let at = file.members_at().unwrap_or(0);
        let text = file.with_members(nodes, at).unwrap().to_text();
        self.furnish(id, &text);
    }

    async fn channel(&self, id: u16) -> Channel {
        self.channel_of(&self.machines[&id]).await
    }

    async fn channel_of(&self, machine: &Machine) -> Channel {
        let content = machine.card.content();
        let (address, pin) = (content.api_address.to_string(), Fingerprint::from(content.tls_key));
        time::timeout(PATIENCE, channel_to(&address, pin, &self.client)).await.unwrap().unwrap()
    }

    /// Asks these nodes for a change, until each says that it is decided.
    pub(crate) async fn change(&mut self, change: &MemberChange, proof: &[u8], whom: &[u16]) {
        self.nonces += 1;
        let request = MemberRequest { nonce: [self.nonces; 32], change: change.encode(), proof: proof.to_vec() };
        for id in whom {
            let status = self.ask(*id, &request).await;
            assert_ne!(status.state, "refused", "{}", status.text);
        }
        for id in whom {
            eventually("the change is decided", async || {
                let status = self.ask(*id, &request).await;
                assert_ne!(status.state, "refused", "node {id}: {}", status.text);
                status.state == "decided"
            })
            .await;
        }
    }

    pub(crate) async fn ask(&self, id: u16, request: &MemberRequest) -> v1::MembersStatus {
        let request = v1::ChangeMembersRequest {
            change: request.change.clone().into(),
            nonce: Bytes::copy_from_slice(&request.nonce),
            proof: request.proof.clone().into(),
            ..Default::default()
        };
        GovernanceClient::new(self.channel(id).await).change_members(request).await.unwrap().into_inner()
    }

    pub(crate) async fn bring(&self, id: u16, warrant: &theta_ledger::Warrant) -> v1::MembersStatus {
        let request = v1::BringWarrantRequest { warrant: warrant.encode().into(), ..Default::default() };
        GovernanceClient::new(self.channel(id).await).bring_warrant(request).await.unwrap().into_inner()
    }

    /// A signature, of which these nodes are asked; all of them answer.
    pub(crate) async fn signs(&self, whom: &[u16], message: &'static str) {
        let sign = |id: u16| async move {
            let mut client = ThresholdProtocolClient::new(self.channel(id).await);
            let (key, message) = (SIGNER.to_owned(), Bytes::from(message));
            let request = v1::SignRequest { key, message, wait: Wait::Done.into(), ..Default::default() };
            time::timeout(PATIENCE, client.sign(request)).await.unwrap().unwrap().into_inner().outcome.unwrap()
        };
        let (first, second) = tokio::join!(sign(whom[0]), sign(whom[1]));
        for outcome in [first, second] {
            self.publics[SIGNER].verify(message.as_bytes(), &outcome.result, &[]).unwrap();
        }
    }

    /// What a machine says of itself.
    pub(crate) async fn status_of(&self, machine: &Machine) -> v1::GetStatusResponse {
        let mut client = ThresholdProtocolClient::new(self.channel_of(machine).await);
        client.get_status(v1::GetStatusRequest {}).await.unwrap().into_inner()
    }

    /// Why a machine does not sign with a key of this name.
    pub(crate) async fn refuses_to_sign(&self, machine: &Machine, key: &str) -> tonic::Status {
        let mut client = ThresholdProtocolClient::new(self.channel_of(machine).await);
        let (key, message) = (key.to_owned(), Bytes::from_static(b"a message"));
        let request = v1::SignRequest { key, message, wait: Wait::Done.into(), ..Default::default() };
        time::timeout(PATIENCE, client.sign(request)).await.unwrap().unwrap_err()
    }

    /// Makes these nodes hold a ceremony, until each says that it has ended so.
    pub(crate) async fn hold(&mut self, change: KeyChange, whom: &[u16], end: CeremonyState) {
        self.nonces += 1;
        let CeremonyRequest { nonce, change } = CeremonyRequest { nonce: [self.nonces; 32], change };
        let request = v1::HoldCeremonyRequest {
            change: change.encode().into(),
            nonce: Bytes::copy_from_slice(&nonce),
            ..Default::default()
        };
        for id in whom {
            let mut client = ThresholdKeysClient::new(self.channel(*id).await);
            // Keys of a dealer come into the ledger soon after the start.
            eventually("the node takes the request", async || client.hold_ceremony(request.clone()).await.is_ok())
                .await;
        }
        for id in whom {
            let mut client = ThresholdKeysClient::new(self.channel(*id).await);
            eventually("the ceremony ends well", async || {
                let status = client.hold_ceremony(request.clone()).await;
                status.is_ok_and(|status| status.into_inner().state() == end)
            })
            .await;
        }
    }

    /// How many entries the ledger has at a node.
    pub(crate) fn height(&self, id: u16) -> u64 {
        let entries = self.nodes[&id].authority().store().ledger_entries(0, usize::MAX).unwrap();
        u64::try_from(entries.len()).unwrap()
    }

    /// Waits until these nodes are confirmed by their peers, and serve.
    pub(crate) async fn ready(&self, whom: &[u16]) {
        for id in whom {
            let orchestrator = self.nodes[id].orchestrator();
            eventually("it serves", async || orchestrator.is_trusted() && orchestrator.departure().is_none()).await;
        }
    }

    /// Waits until the group files of these nodes have these members.
    pub(crate) async fn listed(&self, whom: &[u16], members: &[u16]) {
        for id in whom {
            eventually("the group file has the members", async || {
                let file = self.machines[id].group_file();
                file.nodes().iter().map(|node| node.id.get()).eq(members.iter().copied())
            })
            .await;
        }
    }
}

/// Polls until the condition holds; fails only if that takes too long.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = time::Instant::now() + PATIENCE;
    while !condition().await {
        assert!(time::Instant::now() < deadline, "never: {what}");
        time::sleep(Duration::from_millis(50)).await;
    }
}
