//! The demonstration, as people run it: nodes, agents, rsync and rpki-client. Without these two the test fails, and says what is missing; `cargo xtask
//! test` leaves it out where they cannot be had.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

use std::process::Command;

use serde_json::Value;

/// `cargo xtask test` knows it by this name.
#[test]
fn no_registry_alone_forges_or_withdraws_in_the_demonstration() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("rpki");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_theta-rpki-demo"));
    let output = demo.args(["demo", "--json", "--dir"]).arg(&dir).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = |row: &Value| {
        (row["act"].as_str().unwrap().to_owned(), row["signed"].as_bool().unwrap(), row["told"].to_string())
    };
    let told: Vec<_> = rows.as_array().unwrap().iter().map(row).collect();
    let (first, second) = ("\"AS64496 192.0.2.0/24\"", "\"AS64500 192.0.2.0/25\"");
    let expected = [
        ("granted", true, format!("[{first}]")),
        ("would withdraw", false, format!("[{first}]")),
        ("would forge", false, format!("[{first}]")),
        ("one is dead", true, format!("[{first},{second}]")),
        ("withdrawn", true, format!("[{second}]")),
    ];
    let expected = expected.map(|(act, signed, told)| (act.to_owned(), signed, told));
    assert_eq!(told, expected, "{said}");
    for words in [
        "is missing, and acme has not withdrawn it",
        "the ROA of AS666 for 192.0.2.0/24 is authorised by no member's statement",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    // Nothing runs any more that is about this directory.
    let found = Command::new("pgrep").args(["-f", dir.to_str().unwrap()]).output().unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap(), "");
}
