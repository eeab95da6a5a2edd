//! A group of orchestrators over a [`Wire`].

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::gated::{Orchestrator, Request};
use bytes::Bytes;
use prometheus_client::{encoding::text::encode, registry::Registry};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_authority::KeyRequest;
use theta_custody::KeyTable;
use theta_groups::{Secret, modular::Integer};
use theta_names::{Delivery, Epoch};
use theta_orchestration::{Finished, InstanceId, OrchestratorConfig};
use theta_payload::{Aead, Encrypt as _, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::{
    Purpose, StatementBytes, Suite,
    keys::{AnyKeyShare, AnyPublicKey, KeyName, deal_any, deal_rsa_primes},
    signatures::sh00::RsaPrimes,
};
use theta_sharing::Threshold;
use theta_wire::peer::{Envelope, VERSION};

use crate::wire::{Wire, seal};

/// Long enough for the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(50);

pub(crate) struct Group {
    pub(crate) wire: Arc<Wire>,
    pub(crate) keys: BTreeMap<Suite, Key>,
    pub(crate) nodes: BTreeMap<u16, Node>,
    n: u16,
    delivery: Delivery,
}

pub(crate) struct Key {
    pub(crate) name: KeyName,
    pub(crate) public: AnyPublicKey,
    shares: Vec<Secret<Vec<u8>>>,
}

pub(crate) struct Node {
    pub(crate) orchestrator: Arc<Orchestrator>,
    registry: Registry,
}

/// Limits for tests: two threads, so that instances live on different ones.
pub(crate) fn config() -> OrchestratorConfig {
    OrchestratorConfig { threads: 2, tick: Duration::from_millis(10), ..OrchestratorConfig::default() }
}

pub(crate) fn rng() -> ChaCha20Rng {
    static SEED: AtomicU64 = AtomicU64::new(1);
    ChaCha20Rng::seed_from_u64(SEED.fetch_add(1, Relaxed))
}

impl Key {
    pub(crate) fn deal(suite: Suite, threshold: Threshold) -> Self {
        let name: KeyName = suite.name().parse().unwrap();
        // Safe primes of 1,024-bit moduli, made with `openssl prime -generate -bits 512 -safe`: searching for longer
        // ones takes longer than all of these tests.
        const PRIMES: [&str; 2] = [
            "c1c8e54a6989ddb78d093a60c9551145b88d01d09b9b213897987ad2b04283dd\
             f330f4dbd09c2a8f7f783c9fb677a720698a739c8ec57d7a77f63bf970cba647",
            "dc186f40363d6dc37a1694849c33e327f6bc6e718aa44984933e9991a6700fdc\
             886f39c9306cf38d62243c4adf266af0bf64924651a00ce6b9509f2abd76ff83",
        ];
        const COIN_PRIMES: [&str; 2] = [
            "fd939f35cb48d41a39331328879368850a16f75c82c6d637d7511c75dc006139\
             4f6d529d3b97a9389212cccd6ae6775ed22ac953d3dd25871a1f8dcdc4c7b4df",
            "c5f8dbed97409e878b40e557c708c3c2915bcd0728181a42aa7a54bfafac8cb1\
             cdcea4e781e190717fe9fdb4fca77be75ec76cdb1e767a0c94ae43a7e09f1fdf",
        ];
        let (public, shares) = if suite.group() == "RSA" {
            let primes = if suite.purpose() == Purpose::Coin { COIN_PRIMES } else { PRIMES };
            let [p, q] = primes.map(|hex| Secret::new(Integer::from_be_bytes(&hex::decode(hex).unwrap())));
            deal_rsa_primes(suite, &RsaPrimes::new(p, q).unwrap(), threshold, &mut rng()).unwrap()
        } else {
            deal_any(suite, threshold, &mut rng())
        };
        let shares = shares.iter().map(AnyKeyShare::to_bytes).collect();
        Self { name, public, shares }
    }

    pub(crate) fn share(&self, node: u16) -> AnyKeyShare {
        let bytes = self.shares[usize::from(node) - 1].expose();
        AnyKeyShare::from_bytes(bytes, &self.public).unwrap()
    }
}

/// The statement of a request.
fn statement(operation: &KeyRequest) -> StatementBytes {
    match operation.clone() {
        KeyRequest::Decapsulate(header) => StatementBytes::Decapsulate(header),
        KeyRequest::Decrypt(header) => StatementBytes::Decapsulate(header.bytes().clone()),
        KeyRequest::Sign(message) | KeyRequest::SignRandomized { message, .. } => StatementBytes::Sign(message),
        KeyRequest::SignDigest(_) => unreachable!("these tests sign messages"),
        KeyRequest::FlipCoin(name) => StatementBytes::FlipCoin(name),
    }
}

impl Group {
    /// Any `k` of `n`, with a key of each suite, all nodes running.
    pub(crate) fn new(k: u16, n: u16, suites: &[Suite], config: &OrchestratorConfig) -> Self {
        Self::delivered(k, n, suites, Delivery::All, config)
    }

    /// The same with keys in quorum mode.
    pub(crate) fn in_quorum_mode(k: u16, n: u16, suites: &[Suite], config: &OrchestratorConfig) -> Self {
        Self::delivered(k, n, suites, Delivery::Quorum, config)
    }

    fn delivered(k: u16, n: u16, suites: &[Suite], delivery: Delivery, config: &OrchestratorConfig) -> Self {
        let threshold = Threshold::new(k, n).unwrap();
        let keys = suites.iter().map(|&suite| (suite, Key::deal(suite, threshold))).collect();
        let mut group = Self { wire: Wire::new(n), keys, nodes: BTreeMap::new(), n, delivery };
        for id in 1..=n {
            group.start(id, config.clone());
        }
        group
    }

    /// Any 2 of 4 with limits for tests.
    pub(crate) fn of_four(suites: &[Suite]) -> Self {
        Self::new(2, 4, suites, &config())
    }

    pub(crate) fn key_store(&self, node: u16) -> KeyTable {
        let keys = self.keys.values();
        let keys = keys.map(|key| (key.name.clone(), key.public.clone(), key.share(node), self.delivery));
        KeyTable::delivered(keys).unwrap()
    }

    /// Starts a node, or restarts it with nothing in memory.
    pub(crate) fn start(&mut self, id: u16, config: OrchestratorConfig) {
        self.stop(id);
        let (port, inbound) = self.wire.attach(id);
        let mut registry = Registry::default();
        let orchestrator = Orchestrator::start(config, self.key_store(id), port, inbound, &mut registry).unwrap();
        self.nodes.insert(id, Node { orchestrator, registry });
    }

    /// Takes a node down at once.
    pub(crate) fn stop(&mut self, id: u16) {
        self.wire.detach(id);
        if let Some(node) = self.nodes.remove(&id) {
            node.orchestrator.shutdown();
        }
    }

    pub(crate) fn node(&self, id: u16) -> &Arc<Orchestrator> {
        &self.nodes[&id].orchestrator
    }

    /// A request for something with this text, such as a message to sign.
    pub(crate) fn request(&self, suite: Suite, text: &str) -> Request {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let operation = match suite.purpose() {
            Purpose::Sign => KeyRequest::Sign(bytes),
            Purpose::Coin => KeyRequest::FlipCoin(bytes),
            Purpose::Decrypt => {
                let ciphertext = self.encrypt(suite, text);
                KeyRequest::Decapsulate(Bytes::copy_from_slice(split_ciphertext(&ciphertext).unwrap().0))
            }
        };
        Request { key: suite.name().to_owned(), operation }
    }

    pub(crate) fn encrypt(&self, suite: Suite, text: &str) -> Vec<u8> {
        self.keys[&suite].public.encrypt(text.as_bytes(), b"label", Aead::default(), &mut rng()).unwrap()
    }

    pub(crate) fn id(&self, request: &Request) -> InstanceId {
        let key = self.keys.values().find(|key| key.name.as_str() == request.key).unwrap();
        InstanceId::new(key.public.key_id(), Epoch::FIRST, &statement(&request.operation))
    }

    /// A node's share for a request, as its peers would get it.
    pub(crate) fn share_of(&self, suite: Suite, node: u16, request: &Request) -> Bytes {
        let key = &self.keys[&suite];
        key.public.create_share(&key.share(node), &statement(&request.operation), &mut rng()).unwrap().into()
    }

    /// A share as a peer sends it, in the instance of `request`.
    pub(crate) fn share_message(&self, request: &Request, payload: Bytes) -> Bytes {
        let instance_id = Bytes::copy_from_slice(&self.id(request).0);
        seal(&Envelope { version: VERSION, instance_id, kind: 1, number: 1, payload, ..Envelope::default() })
    }

    /// Submits a request at these nodes and returns their results.
    pub(crate) async fn run_at(&self, nodes: &[u16], request: &Request) -> Vec<Arc<Finished>> {
        let mut waiting = Vec::new();
        for id in nodes {
            let (node, request) = (Arc::clone(self.node(*id)), request.clone());
            waiting.push(tokio::spawn(async move { node.run(request).await.unwrap().1.unwrap() }));
        }
        let mut finished = Vec::new();
        for task in waiting {
            finished.push(tokio::time::timeout(PATIENCE, task).await.expect("a result in time").unwrap());
        }
        finished
    }

    pub(crate) async fn run(&self, request: &Request) -> Vec<Arc<Finished>> {
        self.run_at(&self.nodes.keys().copied().collect::<Vec<_>>(), request).await
    }

    /// Checks that results are equal and right, by the public key alone where the scheme allows.
    pub(crate) fn check(&self, suite: Suite, text: &str, results: &[Arc<Finished>]) {
        let public = &self.keys[&suite].public;
        for finished in results {
            // If one coordinator was slow, two may get a signature, and nodes take the first that comes.
            if !["FROST", "ECDSA"].contains(&suite.scheme()) {
                assert_eq!(finished.result.expose(), results[0].result.expose());
            }
            let told = self.delivery == Delivery::Quorum && finished.contributors.is_empty();
            let (k, made) = (usize::from(public.threshold().k()), finished.contributors.len());
            // A program takes 2 k - 1 holders, whose shares of the signature are as many.
            assert!(told || made == k || (suite.scheme() == "ECDSA" && made == 2 * k - 1));
            if suite.purpose() != Purpose::Decrypt {
                public.verify(text.as_bytes(), finished.result.expose(), &finished.proof).unwrap();
            }
        }
    }

    /// Submits a request at all nodes and checks the results.
    pub(crate) async fn answers(&self, suite: Suite, text: &str) {
        if suite.purpose() == Purpose::Decrypt {
            let ciphertext = self.encrypt(suite, text);
            let header = Bytes::copy_from_slice(split_ciphertext(&ciphertext).unwrap().0);
            let request = Request { key: suite.name().to_owned(), operation: KeyRequest::Decapsulate(header) };
            let results = self.run(&request).await;
            self.check(suite, text, &results);
            let key = PayloadKey::from_bytes(results[0].result.expose()).unwrap();
            assert_eq!(open_bytes(&key, &ciphertext).unwrap().expose().as_slice(), text.as_bytes());
        } else {
            let results = self.run(&self.request(suite, text)).await;
            self.check(suite, text, &results);
        }
    }

    pub(crate) const fn size(&self) -> u16 {
        self.n
    }

    /// All metrics of a node.
    pub(crate) fn metrics(&self, node: u16) -> String {
        let mut text = String::new();
        encode(&mut text, &self.nodes[&node].registry).unwrap();
        text
    }

    /// The value of one metric, named with its labels; 0 if it is not there.
    pub(crate) fn metric(&self, node: u16, name: &str) -> f64 {
        let text = self.metrics(node);
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }
}

/// Waits until `check` holds.
pub(crate) async fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !check() {
        assert!(tokio::time::Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
