//! A crate imports only from the floors below it.

use super::{Tree, read};

/// Who may import whom. A crate that is not listed may not exist; what is not allowed here takes a change of
/// ARCHITECTURE.md first.
const ARROWS: &[(&str, &[&str])] = &[
    ("theta-groups", &[]),
    ("theta-sharing", &["theta-groups"]),
    ("theta-schemes", &["theta-sharing", "theta-groups"]),
    ("theta-rounds", &[]),
    ("theta-protocols", &["theta-schemes", "theta-sharing", "theta-groups", "theta-rounds"]),
    ("theta-wire", &[]),
    ("theta-store", &["theta-groups"]),
    ("theta-policy", &["theta-groups"]),
    ("theta-network", &["theta-wire"]),
    (
        "theta-custody",
        &[
            "theta-store",
            "theta-policy",
            "theta-protocols",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-rounds",
            "theta-wire",
        ],
    ),
    (
        "theta-orchestration",
        &[
            "theta-custody",
            "theta-protocols",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-rounds",
            "theta-store",
            "theta-network",
            "theta-wire",
        ],
    ),
    (
        "theta-service",
        &[
            "theta-orchestration",
            "theta-custody",
            "theta-network",
            "theta-store",
            "theta-policy",
            "theta-protocols",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-rounds",
            "theta-wire",
        ],
    ),
    (
        "theta-client",
        &[
            "theta-custody",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-network",
            "theta-store",
            "theta-policy",
            "theta-wire",
        ],
    ),
    (
        "theta",
        &[
            "theta-client",
            "theta-service",
            "theta-orchestration",
            "theta-custody",
            "theta-network",
            "theta-store",
            "theta-policy",
            "theta-protocols",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-rounds",
            "theta-wire",
        ],
    ),
    // Everything but what talks to the world outside.
    (
        "theta-sim",
        &[
            "theta-orchestration",
            "theta-custody",
            "theta-network",
            "theta-store",
            "theta-policy",
            "theta-protocols",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-rounds",
            "theta-wire",
        ],
    ),
    // Stands outside: what a client, a member or a stranger has, and nothing of a node.
    ("theta-attack", &["theta-client", "theta-network", "theta-policy", "theta-wire"]),
    // Above the product, and no part of it: it cannot import what imports it.
    ("theta-cluster", &["theta"]),
    (
        "theta-demo",
        &["theta", "theta-cluster", "theta-client", "theta-service", "theta-network", "theta-schemes", "theta-wire"],
    ),
    (
        "theta-bench",
        &["theta", "theta-cluster", "theta-client", "theta-network", "theta-schemes", "theta-sharing", "theta-groups"],
    ),
    ("theta-interop", &[]),
    // Reads the decoders of every floor.
    (
        "theta-fuzz",
        &[
            "theta-service",
            "theta-orchestration",
            "theta-protocols",
            "theta-network",
            "theta-policy",
            "theta-store",
            "theta-wire",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-rounds",
        ],
    ),
    ("xtask", &[]),
];

pub(super) fn check(tree: &Tree, findings: &mut Vec<String>) -> Result<(), String> {
    for path in tree.ending("Cargo.toml") {
        let shown = tree.shown(path);
        let manifest: toml::Table = read(path)?.parse().map_err(|error| format!("{shown}: {error}"))?;
        let Some(name) = manifest.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str)
        else {
            continue;
        };
        let Some((_, allowed)) = ARROWS.iter().find(|(crate_name, _)| *crate_name == name) else {
            findings.push(format!("{shown}: crate {name} has no floor; give it one in xtask/src/tidy/arrows.rs"));
            continue;
        };
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        for dependency in dependencies.into_iter().flat_map(toml::Table::keys) {
            let ours = ARROWS.iter().any(|(crate_name, _)| crate_name == dependency);
            if ours && !allowed.contains(&dependency.as_str()) {
                findings.push(format!("{shown}: {name} must not import {dependency}, which is not a floor below it"));
            }
        }
    }
    Ok(())
}
