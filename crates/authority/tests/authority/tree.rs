//! The gate depends on no network and no network protocol, so that every front end asks it in the same way.

use crate::crates_with::crates_with;

/// Crates that only front ends and networks use.
const OF_NETWORKS: [&str; 9] = [
    "tonic",
    "prost",
    "hyper",
    "http",
    "rustls",
    "theta-wire",
    "theta-network",
    "theta-orchestration",
    "theta-service",
];

#[test]
fn nothing_of_a_network_comes_with_the_gate() {
    let crates = crates_with("theta-authority");
    for needed in ["theta-authority", "theta-policy", "theta-store"] {
        assert!(crates.contains(needed), "{needed} is not in the tree, which is not the gate's");
    }
    let found: Vec<_> = OF_NETWORKS.into_iter().filter(|name| crates.contains(*name)).collect();
    assert!(found.is_empty(), "the gate pulls in {found:?}");
}
