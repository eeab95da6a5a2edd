//! The product reads the wall clock in one place, where it cannot fail, and says there what a time before 1970 counts as.

use super::tree::{Tree, read};

/// Whether a file may read the system's clock: the one that does it for all, what is no part of the product, and tests.
fn may_read_the_clock(file: &str) -> bool {
    let is_product = ["crates/", "bin/", "apps/", "modules/"].iter().any(|folder| file.starts_with(folder));
    let is_source = file.contains("/src/") && !file.contains("/tests/");
    !is_product || !is_source || file.starts_with("crates/names/src/time/")
}

/// Whether a text reads it, outside of its tests, which come last.
fn reads_the_clock(text: &str) -> bool {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    ["SystemTime::now", "UNIX_EPOCH"].iter().any(|word| code.contains(word))
}

pub(super) fn check(tree: &Tree, findings: &mut Vec<String>) -> Result<(), String> {
    for path in tree.ending(".rs") {
        let shown = tree.shown(path);
        if !may_read_the_clock(&shown) && reads_the_clock(&read(path)?) {
            findings.push(format!(
                "{shown}: reads the wall clock: take theta_names::WallTime, and let what decides by the time be given it"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_read_in_one_place_and_in_tests() {
        let files = ["crates/names/src/time/mod.rs", "bench/src/machine.rs", "crates/client/tests/client/policy.rs"];
        assert!(files.into_iter().all(may_read_the_clock));
        let files = ["crates/names/src/epoch.rs", "apps/dnssec/src/agent.rs", "modules/pkcs11/src/log/mod.rs"];
        assert!(!files.into_iter().any(may_read_the_clock));
    }

    #[test]
    fn a_reading_is_found_and_not_in_a_files_tests() {
        for text in ["let now = SystemTime::now();", "use std::time::UNIX_EPOCH;"] {
            assert!(reads_the_clock(text), "{text}");
            assert!(!reads_the_clock(&format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{ {text} }}")));
        }
        assert!(!reads_the_clock("let now = WallTime::now();"));
    }
}
