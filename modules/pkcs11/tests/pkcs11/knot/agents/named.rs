//! Who is said to have taken part in what another operator's agent refuses.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{group::until, harness::Group, knot::PATIENCE};

/// How long is waited for that before it is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The nodes that `theta status` says it of, each with those that tell it.
pub(crate) fn named(group: &Group) -> BTreeMap<u64, BTreeSet<u64>> {
    let status = group.theta(&["status", "--json"]).ok().json();
    let number = |node: &Value| node.as_u64().unwrap();
    let culprits = status["culprits"].as_array().unwrap().iter().filter(|culprit| culprit["disputed"] == true);
    let told_by = |culprit: &Value| culprit["told_by"].as_array().unwrap().iter().map(number).collect();
    culprits.map(|culprit| (number(&culprit["node"]), told_by(culprit))).collect()
}

/// Those that `theta doctor` says it of.
pub(crate) fn diagnosed(group: &Group) -> BTreeSet<u64> {
    let findings = group.theta(&["doctor", "--json"]).json();
    let findings = findings["findings"].as_array().unwrap().iter().filter(|finding| finding["kind"] == "agents-differ");
    findings.flat_map(|finding| finding["nodes"].as_array().unwrap()).map(|node| node.as_u64().unwrap()).collect()
}

/// Waits until a node is named by one of these others at least, and makes sure that nobody else is, and that nobody else names it. `more` has another
/// foreign record refused: with Ed25519 the others see what a node does in those signatures alone whose coordinator it is, or asks.
pub(crate) fn await_named(group: &Group, node: u64, others: &[u64], mut more: impl FnMut()) {
    let mut since = Instant::now();
    until("who took part is named", PATIENCE, || {
        let is_named = !named(group).is_empty();
        // What has been refused may take a moment to be told, and agents look for few digests that are none.
        if !is_named && since.elapsed() > PAUSE {
            more();
            since = Instant::now();
        }
        is_named
    });
    let said = named(group);
    assert!(said.keys().eq([&node]) && said[&node].iter().all(|by| others.contains(by)), "{said:?}");
    assert_eq!(diagnosed(group), BTreeSet::from([node]));
}
