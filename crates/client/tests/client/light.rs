//! What the SDK depends on.

use crate::tree::crates_with;

/// Crates that only nodes need.
const OF_NODES: [&str; 12] = [
    "theta-store",
    "theta-custody",
    "theta-policy",
    "theta-protocols",
    "theta-ceremonies",
    "theta-orchestration",
    "theta-service",
    "argon2",
    "redb",
    "prometheus-client",
    "tonic-health",
    "tonic-reflection",
];

#[test]
fn nothing_of_a_node_comes_with_the_client() {
    let crates = crates_with("theta-client");
    for needed in ["theta-client", "theta-statements", "theta-names", "theta-schemes", "tonic"] {
        assert!(crates.contains(needed), "{needed} is not in the tree, which is not the client's");
    }
    let found: Vec<_> = OF_NODES.into_iter().filter(|name| crates.contains(*name)).collect();
    assert!(found.is_empty(), "the client pulls in {found:?}");
}
