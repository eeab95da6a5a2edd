//! What comes along with a crate of ours. Shared by the tests of those that promise what does not.

use std::{collections::BTreeSet, env, process::Command};

/// The names of all crates that a program with this one has in it, its own among them.
pub(crate) fn crates_with(package: &str) -> BTreeSet<String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}
