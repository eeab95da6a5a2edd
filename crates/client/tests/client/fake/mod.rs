//! A group whose four APIs are this test's: each has the certificate of its node, and says what the test wants.

mod api;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_agreement::{Ballot, MemberKeys, VoteCertificate, VoteKind};
use theta_client::genesis_of;
use theta_ledger::founding::{Card, CardContent, Founding, NodeSignatures};
use theta_ledger::{Action, AdoptedKey, CertifiedEntry, Consent, Entry, LedgerState, OperatorKey};
use theta_names::{Delivery, Epoch, NodeId, Version};
use theta_network::{
    Identity,
    group::{GroupFile, GroupNode},
    tls::{self, Pinned},
};
use theta_schemes::{
    Purpose, Statement, Suite,
    groups::{Secret, Transcript},
    keys::{AnyKeyShare, AnyPublicKey, deal_any, import_any},
};
use theta_sharing::Threshold;
use theta_wire::v1;
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, transport::Server};

use self::api::Both;
use crate::{connection::Connection, group::Prepared};

/// What one node says.
#[derive(Default)]
pub(crate) struct Said {
    /// Its ledger.
    pub(crate) entries: Vec<CertifiedEntry>,
    /// After which heights it was asked.
    pub(crate) asked: Vec<u64>,
    /// How long it takes to begin with its ledger.
    pub(crate) ledger_delay: Duration,
    /// What it does when it is asked for more of its ledger than the beginning.
    pub(crate) rest: Rest,
    /// Its answer to whatever it is asked to sign or draw.
    pub(crate) outcome: Option<v1::Outcome>,
    /// The text of the public key that it tells of, and the key's holders.
    pub(crate) public: Option<String>,
    /// With what it refuses to tell of one, if it does.
    pub(crate) public_refusal: Option<Status>,
    /// How often it was asked to sign.
    pub(crate) requests: usize,
    /// How often it says first that it has not caught up with its group.
    pub(crate) not_ready: usize,
    /// With what it refuses to sign, draw and decapsulate, if it does.
    pub(crate) refusal: Option<Status>,
    /// How long it takes for its answers to such requests.
    pub(crate) delay: Duration,
    /// What it says of a change of the members.
    pub(crate) members: Option<v1::MembersStatus>,
    /// The keys that it lists.
    pub(crate) keys: Vec<v1::KeyInfo>,
    /// With what it refuses to list them, if it does.
    pub(crate) list_refusal: Option<Status>,
    /// What it tells of these versions, such as `vault@2`, instead of `public`.
    pub(crate) versions: HashMap<String, Result<Option<String>, Status>>,
    /// Whether it answers nothing about keys.
    pub(crate) silent_about_keys: bool,
    /// The same, but for the list of them.
    pub(crate) tells_no_keys: bool,
    /// How long it takes to list them.
    pub(crate) list_delay: Duration,
    /// Whether it takes no new connection any more, and closes none.
    pub(crate) takes_no_more: bool,
}

/// How a node tells the rest of a long ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rest {
    #[default]
    AtOnce,
    /// It says that it will, and falls silent.
    Never,
    /// An entry after each such time.
    Every(Duration),
}

/// Four nodes, two of which act together.
pub(crate) struct FakeGroup {
    pub(crate) prepared: Prepared,
    pub(crate) nodes: Vec<Arc<Mutex<Said>>>,
    /// What was decided.
    pub(crate) state: LedgerState,
    tasks: Vec<JoinHandle<()>>,
}

/// A dealt key.
pub(crate) type Key = (AnyPublicKey, Vec<AnyKeyShare>);

fn threshold() -> Threshold {
    Threshold::new(2, 4).unwrap()
}

pub(crate) fn key(suite: Suite, seed: u64) -> Key {
    deal_any(suite, threshold(), &mut ChaCha20Rng::seed_from_u64(seed))
}

/// Two sharings of one secret: the same public key, other verification keys.
pub(crate) fn sharings(suite: Suite) -> (Key, Key) {
    let secret = || Secret::new(vec![3; 32].into_iter().take(31).chain([0]).collect::<Vec<u8>>());
    let share = |seed| import_any(suite, threshold(), &secret(), &mut ChaCha20Rng::seed_from_u64(seed)).unwrap();
    (share(1), share(2))
}

/// What k honest nodes answer.
pub(crate) fn outcome((public, shares): &Key, statement: &[u8]) -> v1::Outcome {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let is_coin = public.suite().purpose() == Purpose::Coin;
    let statement = if is_coin { Statement::FlipCoin(statement) } else { Statement::Sign(statement) };
    let made: Vec<_> = shares
        .iter()
        .take(2)
        .map(|share| (share.index(), public.create_share(share, statement, &mut rng).unwrap()))
        .collect();
    let parts: Vec<_> = made.iter().map(|(index, share)| (*index, share.as_slice())).collect();
    let combined = public.combine(statement, &parts, &mut rng).unwrap();
    v1::Outcome {
        result: combined.result.expose().clone().into(),
        proof: combined.proof.into(),
        contributors: vec![1, 2],
        ..Default::default()
    }
}

pub(crate) fn adopt(name: &str, version: u32, epoch: u32, public: &AnyPublicKey) -> Action {
    Action::Adopt(AdoptedKey {
        key: name.parse().unwrap(),
        version: Version::new(version).unwrap(),
        epoch: Epoch::new(epoch),
        suite: public.suite().into(),
        delivery: Delivery::All,
        k: 2,
        holders: vec![1, 2, 3, 4],
        public: public.to_bytes(),
    })
}

/// The entry that an action would be next, signed by these nodes.
pub(crate) fn certified(state: &LedgerState, action: Action, signers: &[u16]) -> CertifiedEntry {
    let entry = state.next_entry(action, Vec::new(), 5);
    let demand =
        state.demand(&entry.action, &entry.reason).map_or(Vec::new(), |demand| demand.of[..demand.needed].to_vec());
    let consents = demand
        .into_iter()
        .map(|node| Consent::give(&state.consent_subject(&entry.action), &keys_of(node), 5))
        .collect();
    let entry = Entry { consents, ..entry };
    let (ballot, digest) = (Ballot::new(VoteKind::Precommit, 0), entry.digest(state.id()));
    let signed = signers.iter().map(|number| {
        let keys = keys_of(*number);
        let message = Transcript::new("theta/ledger/vote/v1")
            .with("ledger", state.id().as_bytes())
            .with("height", &entry.height.to_be_bytes())
            .with("previous", &entry.previous)
            .with("author", &number.to_be_bytes())
            .with("ballot", &[7, 0, 0, 0, 0])
            .with("body", &digest);
        (keys.party(), keys.sign(&message))
    });
    let certificate = VoteCertificate::new(ballot, digest, signed.collect());
    CertifiedEntry { entry, certificate, warrants: Vec::new() }
}

/// A member's key, as the group of these tests has it.
pub(crate) fn keys_of(number: u16) -> MemberKeys {
    MemberKeys::new(NodeId::try_from(number).unwrap(), Secret::new([u8::try_from(number).unwrap(); 32]))
}

/// A member's card, made at this time, which says that it is reached by clients at this address.
pub(crate) fn card(node: &GroupNode, keys: &MemberKeys, api_address: &str, made: u64) -> Card {
    let number = u8::try_from(node.id.get()).unwrap();
    let content = CardContent {
        name: format!("node {number}").parse().unwrap(),
        ceremony_key: keys.member().verifying_key().bytes().try_into().unwrap(),
        tls_key: *node.certificate.as_bytes(),
        operator_key: OperatorKey::new(Secret::new([number ^ 0xA0; 32])).id().unwrap(),
        peer_address: node.peer_address.parse().unwrap(),
        api_address: api_address.parse().unwrap(),
        made,
        until: u64::MAX,
    };
    let signature = keys.sign(&content.signed());
    content.with_signature(signature, &NodeSignatures).unwrap()
}

impl FakeGroup {
    pub(crate) fn new() -> Self {
        Self::of(Prepared::new(2, 4))
    }

    /// Two nodes, which act together.
    pub(crate) fn pair() -> Self {
        Self::of(Prepared::new(2, 2))
    }

    /// A group that was founded with cards.
    pub(crate) fn founded() -> Self {
        let mut prepared = Prepared::new(2, 4);
        let nodes = prepared.group.nodes();
        let cards = nodes.iter().map(|node| card(node, &keys_of(node.id.get()), &node.api_address, 1)).collect();
        let founding = Founding::assemble("test", 2, cards).unwrap();
        prepared.group = prepared.group.with_founding(founding.to_text());
        std::fs::write(prepared.folder.path().join("client/group.toml"), prepared.group.to_text()).unwrap();
        Self::of(prepared)
    }

    /// Nobody is there any more.
    pub(crate) fn stop_node(&mut self, number: usize) {
        self.tasks[2 * (number - 1)..2 * number].iter().for_each(JoinHandle::abort);
    }

    /// The same node somewhere else; gives its address.
    pub(crate) fn serve_elsewhere(&mut self, number: usize) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let acceptor = acceptor_of(&self.prepared.folder, &self.prepared.group, number);
        let said = Arc::clone(&self.nodes[number - 1]);
        self.tasks.extend(serve(said, TcpListener::from_std(listener).unwrap(), acceptor));
        address
    }

    fn of(mut prepared: Prepared) -> Self {
        let state = LedgerState::new(&genesis_of(&prepared.group).unwrap());
        let (mut nodes, mut tasks) = (Vec::new(), Vec::new());
        for (number, listeners) in (1_usize..).zip(&mut prepared.listeners) {
            let api = listeners.api.take().unwrap();
            api.set_nonblocking(true).unwrap();
            let said = Arc::default();
            let acceptor = acceptor_of(&prepared.folder, &prepared.group, number);
            tasks.extend(serve(Arc::clone(&said), TcpListener::from_std(api).unwrap(), acceptor));
            nodes.push(said);
        }
        Self { prepared, nodes, state, tasks }
    }

    /// All nodes decide this.
    pub(crate) fn decide(&mut self, action: Action) {
        self.decide_by(action, &[1, 2, 3]);
    }

    /// The same with the votes of these.
    pub(crate) fn decide_by(&mut self, action: Action, signers: &[u16]) {
        let entry = certified(&self.state, action, signers);
        self.state.advance(&entry).unwrap();
        for node in &self.nodes {
            node.lock().unwrap().entries.push(entry.clone());
        }
    }

    /// All nodes answer so.
    pub(crate) fn answer(&self, outcome: &v1::Outcome) {
        self.nodes.iter().for_each(|node| node.lock().unwrap().outcome = Some(outcome.clone()));
    }

    /// A node that the test changes.
    pub(crate) fn node(&self, number: usize) -> std::sync::MutexGuard<'_, Said> {
        self.nodes[number - 1].lock().unwrap()
    }

    /// How often nodes were asked for the ledger.
    pub(crate) fn asked(&self) -> usize {
        self.nodes.iter().map(|node| node.lock().unwrap().asked.len()).sum()
    }

    pub(crate) fn stop(&mut self) {
        self.tasks.drain(..).for_each(|task| task.abort());
    }
}

fn acceptor_of(folder: &tempfile::TempDir, group: &GroupFile, number: usize) -> TlsAcceptor {
    let folder = folder.path().join(format!("node-{number}"));
    let identity = Identity::load(&folder.join("node.crt"), &folder.join("node.key")).unwrap();
    let pins = group.clients().iter();
    let pins = pins.map(|client| (client.certificate, Pinned::Client(Arc::from("tester")))).collect();
    TlsAcceptor::from(tls::server_config(&identity, pins, &[b"h2"]).unwrap())
}

fn serve(said: Arc<Mutex<Said>>, listener: TcpListener, acceptor: TlsAcceptor) -> [JoinHandle<()>; 2] {
    let (accepted, connections) = mpsc::channel(8);
    let told = Arc::clone(&said);
    let accepting = tokio::spawn(async move {
        let mut unanswered = Vec::new();
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            if told.lock().unwrap().takes_no_more {
                unanswered.push(tcp);
                continue;
            }
            if let Ok(tls) = acceptor.accept(tcp).await {
                let _ = accepted.send(Ok::<_, std::io::Error>(Connection(tls))).await;
            }
        }
    });
    let serving = tokio::spawn(async move {
        let both = Both::new(&said);
        Server::builder().serve_with_incoming(both, ReceiverStream::new(connections)).await.unwrap();
    });
    [accepting, serving]
}
