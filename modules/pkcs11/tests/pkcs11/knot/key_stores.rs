//! Knot's own tests of key stores, which are in its newer versions: what it can do with the keys of a group, and how fast.

use std::fs;

use super::{bindings, config};
use crate::{
    generation::ready,
    group::{host_program, log, succeeds},
    harness::Group,
};

/// What a group makes for Knot.
const MADE: [&str; 2] = ["ECDSAP256SHA256", "ED25519"];

/// A running group with one key of each of the two kinds in its pool, which its nodes have made.
fn filled() -> Group {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    ready(&group, "");
    group.theta(&["pkcs11", "pool", "--config", "pkcs11.toml", "--level", "1"]).ok();
    group
}

/// Runs a test of the key store; its table, of which the first line names the columns.
fn tested(group: &Group, words: &[&str]) -> Vec<Vec<String>> {
    let folder = group.path().join("key-store");
    fs::create_dir_all(&folder).unwrap();
    let database = format!("database:\n  storage: \"{}\"\n", folder.display());
    fs::write(folder.join("keymgr.conf"), database + &config(group, "ed25519")).unwrap();
    let mut keymgr = host_program(group, "keymgr");
    keymgr.arg("-c").arg(folder.join("keymgr.conf")).arg("threshold").args(words);
    let said = succeeds(keymgr);
    let table = said.lines().skip_while(|line| !line.starts_with("Algorithm "));
    // Newer versions say in a column without a name how many bits the keys have.
    let is_length = |word: &str| word.strip_suffix('b').is_some_and(|bits| bits.parse::<u32>().is_ok());
    let columns = |line: &str| line.split_whitespace().filter(|word| !is_length(word)).map(str::to_owned).collect();
    let table = table.map(columns);
    let table: Vec<_> = table.take_while(|columns: &Vec<String>| !columns.is_empty()).collect();
    for name in MADE {
        assert!(table.iter().any(|columns| columns[0] == name), "{name}: {said}");
    }
    table
}

/// Keys are made, sign, and are let go. None is imported, and of an algorithm that groups do not make there is none.
#[test]
fn keymgr_makes_uses_and_removes_keys() {
    let group = filled();
    let table = tested(&group, &["keystore-test"]);
    assert_eq!(table[0], ["Algorithm", "Generate", "Import", "Remove", "Use"]);
    for columns in &table[1..] {
        let is_made = MADE.contains(&columns[0].as_str());
        let expected = if is_made { ["yes", "no", "yes", "yes"] } else { ["no"; 4] };
        assert_eq!(columns[1..], expected, "{columns:?}\n{}", log(&group));
    }
    let bindings = bindings(&group);
    assert_eq!(
        (bindings.matches("[[").count(), bindings.matches("state = \"released\"").count()),
        (2, 2),
        "{bindings}"
    );
}

/// Two threads sign at once, for some seconds with each algorithm.
#[test]
fn keymgr_measures_signatures() {
    let group = filled();
    let table = tested(&group, &["keystore-bench", "2"]);
    assert_eq!(table[0], ["Algorithm", "Sigs/sec"]);
    for columns in &table[1..] {
        if MADE.contains(&columns[0].as_str()) {
            assert!(columns[1].parse::<u64>().unwrap() > 0, "{columns:?}\n{}", log(&group));
        } else {
            assert_eq!(columns[1], "n/a", "{columns:?}");
        }
    }
}
