//! A crate imports only from floors below it.

use super::tree::{Tree, read};

/// The permitted imports. Every crate has to be listed. To permit one more import, change ARCHITECTURE.md first.
const ARROWS: &[(&str, &[&str])] = &[
    ("theta-names", &[]),
    ("theta-groups", &[]),
    ("theta-statements", &["theta-groups", "theta-names"]),
    ("theta-sharing", &["theta-groups", "theta-names"]),
    ("theta-ot", &["theta-groups", "theta-names"]),
    ("theta-schemes", &["theta-sharing", "theta-groups", "theta-names"]),
    ("theta-payload", &["theta-schemes", "theta-groups"]),
    ("theta-keyfiles", &["theta-schemes", "theta-sharing", "theta-groups"]),
    ("theta-rounds", &["theta-names"]),
    ("theta-mpc", &["theta-sharing", "theta-ot", "theta-groups", "theta-names", "theta-rounds"]),
    (
        "theta-protocols",
        &["theta-schemes", "theta-mpc", "theta-sharing", "theta-groups", "theta-names", "theta-rounds"],
    ),
    ("theta-agreement", &["theta-sharing", "theta-groups", "theta-names", "theta-rounds"]),
    (
        "theta-ledger",
        &["theta-agreement", "theta-statements", "theta-sharing", "theta-groups", "theta-names", "theta-rounds"],
    ),
    ("theta-ceremonies", &["theta-agreement", "theta-sharing", "theta-groups", "theta-names", "theta-rounds"]),
    ("theta-wire", &[]),
    ("theta-telemetry", &["theta-names"]),
    ("theta-store", &["theta-groups", "theta-names"]),
    ("theta-policy", &["theta-names", "theta-statements"]),
    ("theta-network", &["theta-names", "theta-wire"]),
    ("theta-gossip", &["theta-names", "theta-network"]),
    (
        "theta-custody",
        &[
            "theta-statements",
            "theta-names",
            "theta-store",
            "theta-policy",
            "theta-protocols",
            "theta-ceremonies",
            "theta-ledger",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-rounds",
        ],
    ),
    (
        "theta-authority",
        &[
            "theta-statements",
            "theta-names",
            "theta-custody",
            "theta-store",
            "theta-policy",
            "theta-schemes",
            "theta-groups",
        ],
    ),
    (
        "theta-orchestration",
        &[
            "theta-authority",
            "theta-statements",
            "theta-names",
            "theta-custody",
            "theta-protocols",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-rounds",
            "theta-network",
            "theta-wire",
        ],
    ),
    (
        "theta-service",
        &[
            "theta-statements",
            "theta-names",
            "theta-orchestration",
            "theta-authority",
            "theta-custody",
            "theta-gossip",
            "theta-network",
            "theta-store",
            "theta-policy",
            "theta-keyfiles",
            "theta-payload",
            "theta-ceremonies",
            "theta-schemes",
            "theta-sharing",
            "theta-rounds",
            "theta-wire",
        ],
    ),
    (
        "theta-client",
        &[
            // It follows what the group decides, and checks it.
            "theta-agreement",
            "theta-ledger",
            "theta-names",
            "theta-statements",
            "theta-keyfiles",
            "theta-payload",
            "theta-schemes",
            "theta-network",
            "theta-wire",
        ],
    ),
    (
        "theta",
        &[
            "theta-ledger",
            "theta-statements",
            "theta-names",
            "theta-client",
            "theta-service",
            "theta-telemetry",
            "theta-custody",
            "theta-network",
            "theta-store",
            "theta-policy",
            "theta-keyfiles",
            "theta-keypool",
            "theta-look-ahead",
            "theta-payload",
            "theta-ceremonies",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-wire",
        ],
    ),
    // What is said on a name server's machine of what will be signed: it knows nothing of ours.
    ("theta-look-ahead", &[]),
    // A client behind the C interface of tokens, and what it keeps on the machine of a host.
    ("theta-keypool", &["theta-names", "theta-schemes", "theta-sharing"]),
    (
        "theta-pkcs11",
        &["theta-client", "theta-keyfiles", "theta-keypool", "theta-look-ahead", "theta-names", "theta-schemes"],
    ),
    // A program beside an operator's node, which asks it.
    ("theta-agent", &["theta-wire"]),
    ("theta-dnssec", &["theta-agent", "theta-look-ahead", "theta-names", "theta-wire"]),
    ("theta-rpki", &["theta-agent", "theta-groups", "theta-names", "theta-statements", "theta-wire"]),
    // Makes what the agents consent to; a client of the nodes.
    ("theta-rpki-issuer", &["theta-agent", "theta-client", "theta-names", "theta-rpki"]),
    // A publisher of files, which knows nothing of ours.
    ("theta-rpki-publication", &["theta-names"]),
    // Programs of others: it knows nothing of ours.
    ("theta-knot", &[]),
    // Everything except the crates that talk to the outside world.
    (
        "theta-sim",
        &[
            "theta-statements",
            "theta-names",
            "theta-rounds",
            "theta-agreement",
            "theta-ledger",
            "theta-orchestration",
            "theta-authority",
            "theta-custody",
            "theta-network",
            "theta-store",
            "theta-policy",
            "theta-keyfiles",
            "theta-payload",
            "theta-ceremonies",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-wire",
            "theta-wan",
        ],
    ),
    // Stands outside: an attack has the means of a client, a member or a stranger, and nothing of a node. It uses
    // statements for what clients and approvers sign, which attacks send again; ceremonies and store for a member's
    // identity, from its own store, and the statements that it signs; custody for what a thief runs on stolen stores;
    // schemes, sharing and groups for what everybody can compute, such as a false ciphertext or sums of what was revealed.
    (
        "theta-attack",
        &[
            "theta-names",
            "theta-statements",
            "theta-client",
            "theta-custody",
            "theta-network",
            "theta-payload",
            "theta-schemes",
            "theta-sharing",
            "theta-groups",
            "theta-ceremonies",
            "theta-store",
            "theta-wire",
        ],
    ),
    // Above the product and not part of it: the product cannot import these, since they import it.
    ("theta-cluster", &["theta"]),
    ("theta-monitoring", &["theta", "theta-cluster"]),
    (
        "theta-demo",
        &[
            "theta",
            "theta-names",
            "theta-cluster",
            "theta-client",
            "theta-service",
            "theta-network",
            "theta-payload",
            "theta-schemes",
            "theta-wire",
        ],
    ),
    // An application beside the nodes: what a validator does, with the means of a client of its own node.
    (
        "theta-chain",
        &[
            "theta",
            "theta-names",
            "theta-cluster",
            "theta-client",
            "theta-keyfiles",
            "theta-network",
            "theta-payload",
            "theta-schemes",
            "theta-wire",
        ],
    ),
    // Operators with a node each, their agents and a name server: by the commands of people, and the agent's library.
    ("theta-dnssec-demo", &["theta", "theta-agent", "theta-cluster", "theta-dnssec", "theta-knot"]),
    // Registries with a node each, their agents, an issuer, a publisher and readers: by the libraries of these.
    (
        "theta-rpki-demo",
        &[
            "theta",
            "theta-agent",
            "theta-client",
            "theta-cluster",
            "theta-groups",
            "theta-knot",
            "theta-names",
            "theta-rpki",
            "theta-rpki-issuer",
            "theta-rpki-publication",
            "theta-statements",
        ],
    ),
    (
        "theta-bench",
        &[
            "theta",
            "theta-names",
            "theta-cluster",
            "theta-ceremonies",
            "theta-client",
            "theta-network",
            "theta-payload",
            "theta-schemes",
            "theta-rounds",
            "theta-mpc",
            "theta-ot",
            "theta-sharing",
            "theta-groups",
            "theta-wan",
        ],
    ),
    // Networks, for any program: it knows nothing of ours.
    ("theta-wan", &[]),
    ("theta-interop", &[]),
    // Others' library alone.
    ("verify-ring", &[]),
    // Calls the decoders of every floor.
    (
        "theta-fuzz",
        &[
            "theta-statements",
            "theta-names",
            "theta-agreement",
            "theta-ledger",
            "theta-client",
            "theta-service",
            "theta-orchestration",
            "theta-protocols",
            "theta-ceremonies",
            "theta-network",
            "theta-policy",
            "theta-store",
            "theta-wire",
            "theta-keyfiles",
            "theta-payload",
            "theta-pkcs11",
            "theta-schemes",
            "theta-sharing",
            "theta-mpc",
            "theta-ot",
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
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let used: Vec<&str> = dependencies.into_iter().flat_map(toml::Table::keys).map(String::as_str).collect();
        findings.extend(compare(ARROWS, name, &used).into_iter().map(|finding| format!("{shown}: {finding}")));
        let folder = path.parent().unwrap_or(path);
        let sources = tree.ending(".rs").filter(|file| file.starts_with(folder)).map(read);
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let ours = used.iter().filter(|used| ARROWS.iter().any(|(crate_name, _)| crate_name == *used));
        findings.extend(unnamed(ours.copied(), &sources).map(|finding| format!("{shown}: {name} {finding}")));
    }
    Ok(())
}

/// The dependencies that no source file names.
fn unnamed<'a>(ours: impl Iterator<Item = &'a str>, sources: &[String]) -> impl Iterator<Item = String> {
    let is_named = |used: &&str| sources.iter().any(|source| source.contains(&used.replace('-', "_")));
    ours.filter(move |used| !is_named(used)).map(|used| format!("depends on {used} and names it nowhere: take it out"))
}

/// What is wrong with a crate's dependencies. Each of ours must be permitted, and each permitted one used, so that the list
/// never permits more than there is.
fn compare(arrows: &[(&str, &[&str])], name: &str, used: &[&str]) -> Vec<String> {
    let Some((_, permitted)) = arrows.iter().find(|(crate_name, _)| *crate_name == name) else {
        return vec![format!("crate {name} has no floor; give it one in xtask/src/tidy/arrows.rs")];
    };
    let ours = used.iter().filter(|used| arrows.iter().any(|(crate_name, _)| crate_name == *used));
    let forbidden = ours
        .filter(|used| !permitted.contains(*used))
        .map(|used| format!("{name} must not import {used}, which is not a floor below it"));
    let unused = permitted.iter().filter(|permitted| !used.contains(*permitted)).map(|permitted| {
        format!("{name} may import {permitted} and does not: take the arrow out of xtask/src/tidy/arrows.rs")
    });
    forbidden.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use super::{ARROWS, compare, unnamed};

    const HOUSE: &[(&str, &[&str])] = &[("ground", &[]), ("first", &["ground"]), ("roof", &["first", "ground"])];

    #[test]
    fn what_is_permitted_and_used_is_in_order() {
        assert!(compare(HOUSE, "ground", &["serde"]).is_empty());
        assert!(compare(HOUSE, "roof", &["ground", "serde", "first"]).is_empty());
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        assert_eq!(compare(HOUSE, "ground", &["roof"]), ["ground must not import roof, which is not a floor below it"]);
    }

    #[test]
    fn an_arrow_that_nobody_uses_is_found() {
        let unused = "roof may import ground and does not: take the arrow out of xtask/src/tidy/arrows.rs";
        assert_eq!(compare(HOUSE, "roof", &["first"]), [unused]);
    }

    #[test]
    fn a_dependency_that_no_source_names_is_found() {
        let sources = ["use first_floor::Stairs;".to_owned()];
        let found: Vec<_> = unnamed(["first-floor", "ground"].into_iter(), &sources).collect();
        assert_eq!(found, ["depends on ground and names it nowhere: take it out"]);
    }

    #[test]
    fn a_crate_without_a_floor_is_found() {
        let floorless = "crate shed has no floor; give it one in xtask/src/tidy/arrows.rs";
        assert_eq!(compare(HOUSE, "shed", &[]), [floorless]);
    }

    #[test]
    fn arrows_lead_to_crates_of_the_list() {
        for (name, permitted) in ARROWS {
            for below in *permitted {
                assert!(ARROWS.iter().any(|(crate_name, _)| crate_name == below), "{name} -> {below}");
            }
        }
    }
}
