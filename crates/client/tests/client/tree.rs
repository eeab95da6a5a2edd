//! The dependencies of a crate of ours, for tests of crates that promise to lack some.

use std::{collections::BTreeSet, env, process::Command};

/// The names of all crates in the dependency tree of this one, including itself.
pub(crate) fn crates_with(package: &str) -> BTreeSet<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // What others of the workspace need of a crate does not count, whatever the environment says.
        .env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION")
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}
