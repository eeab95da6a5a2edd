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

/// One ROA is made, and renewed once: by its key, with a new certificate.
#[test]
fn what_is_measured_was_made() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("rpki");
    let mut measure = Command::new(env!("CARGO_BIN_EXE_theta-rpki-demo"));
    let words = ["measure", "--roas", "2", "--keys", "1", "--json", "--dir"];
    let output = measure.args(words).arg(&dir).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    // Two certificates of authorities; of each round the ROA's two, and of each new manifest three. That of the anchor has not changed the second time.
    assert_eq!((measured["roas"].as_u64(), measured["signatures"].as_u64()), (Some(2), Some(2 + 2 * 2 + 3 * 3)));
    let (rate, took) = (measured["roas_a_second"].as_f64().unwrap(), measured["took_ms"].as_f64().unwrap());
    assert!((rate * took / 2_000.0 - 1.0).abs() < 0.01, "{measured}");
    let hours = measured["nightly_hours"].as_f64().unwrap();
    assert!((hours * 3_600.0 * rate / 50_000.0 - 1.0).abs() < 0.01, "{measured}");

    let mut measure = Command::new(env!("CARGO_BIN_EXE_theta-rpki-demo"));
    let output = measure.args(["measure", "--roas", "1000", "--keys", "2"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("say --keys 17 or more"), "{said}");
}

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
