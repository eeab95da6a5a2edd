//! What programs of ECDSA without an honest majority leave to later ones, over all keys of a node.

use std::sync::Arc;

use theta_custody::KeyEntry;
use theta_names::Delivery;
use theta_orchestration::OrchestratorConfig;
use theta_schemes::Suite;
use theta_statements::KeyChange;

use super::{
    cluster::Cluster,
    members::{Question, name},
};
use crate::group::config;

const KEYS: [&str; 5] = ["one", "two", "three", "four", "five"];
/// There is room for so many of keys of two.
const ROOM: usize = 2;

fn entry(cluster: &mut Cluster, node: u16, key: &str) -> Arc<KeyEntry> {
    cluster.engine(node).keys().get(key).unwrap()
}

fn sign(cluster: &mut Cluster, key: &str, text: &str) {
    let question = Question::new(&entry(cluster, 1, key), text);
    let pending: Vec<_> = [1, 2].iter().map(|node| cluster.submit(*node, &question.request)).collect();
    cluster.until(text, |_| pending.iter().all(|pending| pending.outcome().is_some()));
    pending.iter().for_each(|pending| question.check(&pending.outcome().unwrap().unwrap()));
}

/// However many keys are used: what was not used for longest goes, and the next program of that key sets up anew.
#[test]
fn set_ups_of_all_keys_together_are_few() {
    let limits = OrchestratorConfig { nonces_per_peer: 0, set_up_pairs: ROOM, ..config() };
    let mut cluster = Cluster::with_limits(2, 2, 41, &limits);
    for key in KEYS {
        let (key, suite, delivery) = (name(key), Suite::EcdsaP256.into(), Delivery::DishonestMajority);
        cluster.hold(&[1, 2], KeyChange::Create { key, suite, delivery, k: 2, holders: vec![1, 2] });
    }
    let ready = |cluster: &mut Cluster, node| KEYS.map(|key| entry(cluster, node, key).stock.set_ups().ready());
    for (turn, place) in [0, 1, 2, 3, 4, 0].into_iter().enumerate() {
        sign(&mut cluster, KEYS[place], &format!("text {turn}"));
        for node in [1, 2] {
            let ready = ready(&mut cluster, node);
            assert_eq!(ready[place], 1, "node {node} has the last one that was used: {ready:?}");
            assert!(ready.iter().sum::<usize>() <= ROOM, "node {node}: {ready:?}");
        }
    }
    assert_eq!(ready(&mut cluster, 1), [1, 0, 0, 0, 1]);
}
