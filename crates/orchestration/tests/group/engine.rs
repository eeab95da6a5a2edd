//! Whole groups on one thread: every run replays from its seeds.

use std::{sync::Arc, time::Duration};

use crate::gated::{Engine, Request};
use bytes::Bytes;
use prometheus_client::registry::Registry;
use theta_network::{Inbound, Transport};
use theta_orchestration::{Finished, InstanceError, InstanceState, OrchestratorConfig, SubmitError};
use theta_schemes::Suite;
use tokio::time::Instant;

use crate::{
    group::{Group, config},
    kept::cluster::Outbox,
    wire::{is_share, peer},
};

/// Engines, their time, and all messages that they sent: sender, recipient, bytes.
struct Engines {
    nodes: Vec<(Engine, Arc<Outbox>)>,
    now: Instant,
    log: Vec<(u16, u16, Bytes)>,
}

impl Engines {
    /// Engines with the keys of a group, whose own nodes need not run.
    fn new(group: &Group, limits: &OrchestratorConfig, seed: u8, now: Instant) -> Self {
        let node = |local: u16| {
            let outbox = Outbox::new(local, group.size());
            let transport = Arc::clone(&outbox) as Arc<dyn Transport>;
            let seed = [seed.wrapping_add(u8::try_from(local).unwrap()); 32];
            let registry = &mut Registry::default();
            (Engine::new(limits.clone(), group.key_store(local), transport, registry, seed, now).unwrap(), outbox)
        };
        Self { nodes: (1..=group.size()).map(node).collect(), now, log: Vec::new() }
    }

    fn node(&mut self, id: u16) -> &mut Engine {
        &mut self.nodes[usize::from(id) - 1].0
    }

    /// Delivers messages, node by node, until there are none; `keep` selects those that arrive.
    fn settle(&mut self, keep: impl Fn(u16, u16, &Bytes) -> bool) {
        loop {
            let mut carried = Vec::new();
            for (from, (_, outbox)) in (1..).zip(&self.nodes) {
                carried.extend(outbox.take().into_iter().map(|(to, bytes)| (from, to, bytes)));
            }
            if carried.is_empty() {
                return;
            }
            for (from, to, bytes) in carried {
                self.log.push((from, to, bytes.clone()));
                if keep(from, to, &bytes) {
                    self.node(to).receive(Inbound { from: peer(from), channel: theta_names::Channel::Private, bytes });
                }
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for (engine, _) in &mut self.nodes {
            engine.tick(self.now, 0);
        }
    }

    /// Submits the request at all nodes, which all get the result.
    fn run(&mut self, request: &Request) -> Vec<Arc<Finished>> {
        let pending: Vec<_> = self.nodes.iter_mut().map(|(node, _)| node.submit(request.clone()).unwrap()).collect();
        self.settle(|_, _, _| true);
        pending.iter().map(|pending| pending.outcome().unwrap().unwrap()).collect()
    }
}

const SUITES: [Suite; 4] = [Suite::Sg02Ristretto255, Suite::Cks05Ristretto255, Suite::Bls04MinPk, Suite::FrostEd25519];

#[tokio::test]
async fn a_run_replays_from_its_seeds() {
    let group = Group::new(3, 4, &SUITES, &config());
    let requests: Vec<(Suite, String, Request)> = (0..12)
        .map(|i| (SUITES[i % 4], format!("text {i}")))
        .map(|(suite, text)| (suite, text.clone(), group.request(suite, &text)))
        .collect();
    let now = Instant::now();
    let run = |seed| {
        let mut engines = Engines::new(&group, &config(), seed, now);
        for (suite, text, request) in &requests {
            let results = engines.run(request);
            group.check(*suite, text, &results);
            engines.pass(Duration::from_millis(40));
        }
        assert!(engines.nodes.iter().all(|(node, _)| node.culprits().is_empty() && node.load().running == 0));
        engines.log
    };
    let first = run(1);
    assert_eq!(first, run(1));
    // FROST draws new nonces each time.
    assert_ne!(first, run(2));
}

#[tokio::test]
async fn time_is_what_it_is_told() {
    let suite = Suite::Cks05Ristretto255;
    let limits = OrchestratorConfig { instance_ttl: Duration::from_secs(60), ..config() };
    let group = Group::new(3, 4, &[suite], &limits);
    let request = group.request(suite, "hours in no time");
    let run = || {
        let mut engines = Engines::new(&group, &limits, 7, Instant::now());
        let pending: Vec<_> = (1..=4).map(|id| engines.node(id).submit(request.clone()).unwrap()).collect();
        // The wire loses all shares, again and again.
        for _ in 0..600 {
            engines.settle(|_, _, bytes| !is_share(bytes));
            assert!(pending.iter().all(|pending| pending.outcome().is_none()));
            engines.pass(Duration::from_millis(99));
        }
        let id = pending[0].id();
        assert!(matches!(engines.node(1).status(id).unwrap().state, InstanceState::Running));
        let watch = engines.node(1).watch(id).unwrap();
        engines.pass(Duration::from_secs(1));
        let text = "1 of 3 shares after 60 s; nothing from nodes 2, 3, 4: are they running? see theta status";
        assert_eq!(pending[0].outcome().unwrap().unwrap_err(), InstanceError::Expired(text.to_owned()));
        assert!(matches!(&watch.borrow().state, InstanceState::Failed(said) if said == text));
        // The wire works again. A node that was asked too often does not answer at once.
        let again: Vec<_> = (1..=4).map(|id| engines.node(id).submit(request.clone()).unwrap()).collect();
        while again.iter().any(|pending| pending.outcome().is_none()) {
            engines.settle(|_, _, _| true);
            engines.pass(Duration::from_millis(100));
        }
        let results: Vec<_> = again.iter().map(|pending| pending.outcome().unwrap().unwrap()).collect();
        group.check(suite, "hours in no time", &results);
        engines.log.into_iter().map(|(from, to, bytes)| (from, to, bytes.len())).collect::<Vec<_>>()
    };
    // The real clock has advanced in between.
    assert_eq!(run(), run());
}

#[tokio::test]
async fn an_engine_refuses_as_an_orchestrator_does() {
    let group = Group::of_four(&[Suite::Cks05Ristretto255]);
    let limits = OrchestratorConfig { max_instances: 1, ..config() };
    let mut engines = Engines::new(&group, &limits, 1, Instant::now());
    let node = engines.node(1);
    let request = group.request(Suite::Cks05Ristretto255, "one");
    let unknown = Request { key: "nokey".to_owned(), ..request.clone() };
    assert!(matches!(node.submit(unknown).unwrap_err(), SubmitError::Key(_)));
    let id = node.submit(request.clone()).unwrap().id();
    assert_eq!(node.submit(request).unwrap().id(), id);
    let refused = node.submit(group.request(Suite::Cks05Ristretto255, "two")).unwrap_err();
    assert_eq!(refused, SubmitError::Overloaded("running instances"));
    node.receive(Inbound {
        from: peer(2),
        channel: theta_names::Channel::Private,
        bytes: Bytes::from_static(b"GET / HTTP/1.1"),
    });
    assert_eq!(node.culprits().len(), 1);
    assert_eq!((node.load().running, node.keys().len()), (1, 1));
}
