//! The programs of tests, and which of them run beside the others.
//!
//! Most of them wait: for processes, for sockets, for what must not happen within a second. Both cores of a small machine are idle for half of
//! their time. A few do nothing but compute, and no clock is watched in them. Those run beside everything that comes after the build, at a low
//! priority, so that they take what nobody else wants and nobody is late for their sake.

use std::{collections::BTreeSet, path::Path, process::Command};

use serde_json::Value;

/// The test targets that only compute, whatever else the machine does.
pub(crate) const COMPUTING: [&str; 8] =
    ["ceremonies", "custody", "ledger", "mpc", "ot", "protocols", "runs", "schemes"];

/// How much the computing ones give way, as `nice` has it: the others get nine parts of ten where both want all.
const NICE: &str = "10";

/// The names of all other test targets of the workspace.
///
/// # Errors
/// Cargo does not tell them, or does not know one of [`COMPUTING`].
pub(crate) fn waiting(root: &Path) -> Result<BTreeSet<String>, String> {
    let mut cargo = Command::new("cargo");
    let output = cargo.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(root).output();
    let output = output.map_err(|error| format!("`cargo metadata` did not start: {error}"))?;
    of(&output.stdout)
}

fn of(metadata: &[u8]) -> Result<BTreeSet<String>, String> {
    let told: Value = serde_json::from_slice(metadata).map_err(|error| format!("`cargo metadata` says: {error}"))?;
    let list = |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let targets = list(&told, "packages").into_iter().flat_map(|package| list(&package, "targets"));
    let tests = targets.filter(|target| list(target, "kind").contains(&"test".into()));
    let name = |test: Value| test.get("name").and_then(Value::as_str).map(str::to_owned);
    let mut names: BTreeSet<String> = tests.filter_map(name).collect();
    match COMPUTING.iter().find(|name| !names.remove(**name)) {
        Some(name) => Err(format!("xtask/src/suites.rs names tests that are not there: {name}")),
        None => Ok(names),
    }
}

/// `cargo`, giving way to others where the system knows how.
pub(crate) fn gentle_cargo() -> Command {
    let is_there = Command::new("nice").args(["-n", NICE, "true"]).status().is_ok_and(|status| status.success());
    if !is_there {
        return Command::new("cargo");
    }
    let mut command = Command::new("nice");
    command.args(["-n", NICE, "cargo"]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_target_is_in_one_of_the_two() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let waiting = waiting(root).unwrap();
        assert!(waiting.contains("cli") && waiting.contains("pkcs11"), "{waiting:?}");
        assert!(COMPUTING.iter().all(|name| !waiting.contains(*name)));
    }

    #[test]
    fn computing_tests_that_are_gone_are_told() {
        let one =
            r#"{"packages": [{"targets": [{"kind": ["test"], "name": "mpc"}, {"kind": ["lib"], "name": "custody"}]}]}"#;
        assert!(of(one.as_bytes()).unwrap_err().ends_with("not there: ceremonies"));
        assert!(of(b"no").is_err());
    }
}
