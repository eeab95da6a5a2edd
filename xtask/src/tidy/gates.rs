//! What few may name: gates, and shares of keys.
//!
//! A `Gate` grants by whatever policy it is given, so the product must not make one: it asks the node's `Authority` alone. The table of keys is
//! in many hands, and what leaves by a share is decided before by the authority: so two places of the product alone take shares out of it.

use super::tree::{Tree, read};

/// Whether a file may name a gate: those of the crate that makes gates, of simulations, and of tests.
fn may_name_a_gate(file: &str) -> bool {
    file.starts_with("crates/authority/") || file.starts_with("sim/") || file.contains("/tests/")
}

/// Whether a file may take a share out of the table of keys: what serves granted requests, custody itself, tests, simulations and attacks.
fn may_expose_a_share(file: &str) -> bool {
    const SERVING: [&str; 2] =
        ["crates/orchestration/src/instances/shard/machines.rs", "crates/service/src/grpc/scheme.rs"];
    SERVING.contains(&file)
        || file == "crates/custody/src/keys/entry.rs"
        || file.starts_with("attack/")
        || file.starts_with("sim/")
        || file.contains("/tests/")
}

/// Whether a text names `theta_authority::Gate`, by its path or in an import.
fn names_a_gate(text: &str) -> bool {
    let is_word = |after: &str| !after.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    text.split("theta_authority").skip(1).any(|after| {
        // Under an alias, or with the whole crate renamed, it could have any name.
        let Some(path) = after.trim_start().strip_prefix("::") else { return after.trim_start().starts_with("as ") };
        let path = path.trim_start();
        match path.strip_prefix('{') {
            Some(list) => list.split('}').next().is_some_and(|list| {
                list.split(',').any(|item| matches!(item.split_whitespace().next(), Some("Gate" | "*" | "self")))
            }),
            None => path.starts_with('*') || path.strip_prefix("Gate").is_some_and(is_word),
        }
    })
}

pub(super) fn check(tree: &Tree, findings: &mut Vec<String>) -> Result<(), String> {
    for path in tree.ending(".rs") {
        let shown = tree.shown(path);
        // The files of xtask name what they look for.
        if shown.starts_with("xtask/") {
            continue;
        }
        let text = read(path)?;
        if !may_expose_a_share(&shown) && text.contains("expose_share") {
            findings.push(format!(
                "{shown}: takes a share out of the table of keys: only what serves granted requests may (xtask/src/tidy/gates.rs)"
            ));
        }
        if !may_name_a_gate(&shown) && names_a_gate(&text) {
            findings.push(format!(
                "{shown}: names theta_authority::Gate, which grants by whatever policy it is given: ask the node's Authority"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_found_however_it_is_named() {
        for text in [
            "use theta_authority::Gate;",
            "use theta_authority::{Asks, Gate, Granted};",
            "use theta_authority::{\n    Gate as Other,\n};",
            "use theta_authority::*;",
            "use theta_authority as other;",
            "let gate = theta_authority::Gate::new(group);",
        ] {
            assert!(names_a_gate(text), "{text}");
        }
        for text in ["use theta_authority::{Authority, Granted};", "use super::gate::Gate;", "theta_authority::Gateway"]
        {
            assert!(!names_a_gate(text), "{text}");
        }
    }

    #[test]
    fn shares_are_for_what_serves_granted_requests() {
        assert!(may_expose_a_share("crates/orchestration/src/instances/shard/machines.rs"));
        assert!(may_expose_a_share("crates/custody/tests/custody/life.rs"));
        for file in
            ["crates/orchestration/src/node/engine.rs", "crates/service/src/grpc/keys.rs", "bin/theta/src/main.rs"]
        {
            assert!(!may_expose_a_share(file), "{file}");
        }
    }

    #[test]
    fn tests_and_simulations_have_policies_of_their_own() {
        for file in ["crates/authority/src/gate.rs", "sim/src/node.rs", "crates/orchestration/tests/group/gated.rs"] {
            assert!(may_name_a_gate(file), "{file}");
        }
        assert!(!may_name_a_gate("crates/service/src/grpc/state.rs") && !may_name_a_gate("bin/theta/src/main.rs"));
    }
}
