//! What comes along with the SDK.

use std::{collections::BTreeSet, env, process::Command};

/// What only nodes are made of.
const OF_NODES: [&str; 13] = [
    "theta-store",
    "theta-custody",
    "theta-policy",
    "theta-protocols",
    "theta-ceremonies",
    "theta-rounds",
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
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--package", "theta-client", "--edges", "normal", "--prefix", "none", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    let crates: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    for needed in ["theta-client", "theta-statements", "theta-names", "theta-schemes", "tonic"] {
        assert!(crates.contains(needed), "{needed} is not in the tree, which is not the client's");
    }
    let found: Vec<_> = OF_NODES.into_iter().filter(|name| crates.contains(name)).collect();
    assert!(found.is_empty(), "the client pulls in {found:?}");
}
