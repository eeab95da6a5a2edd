//! The gate knows no network and no protocol of one: whatever front end there is, it asks the same.

use std::{collections::BTreeSet, env, process::Command};

/// What only front ends and networks are made of.
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
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--package", "theta-authority", "--edges", "normal", "--prefix", "none", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    let crates: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    for needed in ["theta-authority", "theta-policy", "theta-store"] {
        assert!(crates.contains(needed), "{needed} is not in the tree, which is not the gate's");
    }
    let found: Vec<_> = OF_NETWORKS.into_iter().filter(|name| crates.contains(name)).collect();
    assert!(found.is_empty(), "the gate pulls in {found:?}");
}
