//! What is measured with a real Knot: small zones, one that takes too long, and what is there when it is told to end.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use serde_json::Value;
use theta_knot::{places::Places, server::Knot};

use crate::{for_people, program};

/// The rows of a run that ends by itself.
fn rows(words: &str) -> Vec<Value> {
    let mut measure = program("measure");
    let output = measure.args(words.split(' ')).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Each point is a row, and what it says can be so: the zone is signed and verified, by a group and by Knot itself.
#[test]
fn a_small_zone_is_measured() {
    let rows = rows("--names 20 --algorithms ed25519 --groups 2of3 --beside files --changes 2");
    let signers: Vec<_> = rows.iter().map(|row| row["signer"].as_str().unwrap()).collect();
    assert_eq!(signers, ["files", "2 of 3"]);
    let knot = Knot::version(&Places::of_this_machine()).unwrap();
    for row in &rows {
        assert_eq!(row["knot"], knot.as_str(), "{row}");
        // An address and a denial for each name and the name server's, and what the zone itself has: keys, SOA, NS, denial.
        let signatures = row["signatures"].as_u64().unwrap();
        assert!((46..=50).contains(&signatures), "{row}");
        assert!(row["objection"].is_null() && row["change_ms"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["node_us"].is_null(), row["signer"] == "files", "{row}");
    }
}

/// The same zone by nodes that ask agents first, each of which has a copy of its own: all of it is consented to, the changes too, and agents have worked.
#[test]
fn a_small_zone_is_measured_with_agents() {
    let words = "--names 20 --algorithms ed25519,ecdsap256sha256 --groups 2of3 --beside files --changes 2";
    let rows = rows(&format!("{words} --agents off,on --look-ahead off"));
    let told: Vec<_> = rows.iter().map(|row| (row["algorithm"].as_str().unwrap(), row["agents"].as_bool())).collect();
    let (ed25519, p256) = ("ed25519", "ecdsap256sha256");
    let of_group = [(ed25519, Some(false)), (ed25519, Some(true)), (p256, Some(false)), (p256, Some(true))];
    assert_eq!(told, [&[(ed25519, Some(false)), (p256, Some(false))], &of_group[..]].concat());
    for row in &rows {
        let signatures = row["signatures"].as_u64().unwrap();
        assert!((46..=50).contains(&signatures), "{row}");
        assert!(row["objection"].is_null() && row["change_ms"].as_f64().unwrap() > 0.0, "{row}");
        // Each looks at the contents of some twenty signatures and more.
        let worked = row["agent_us"].as_f64().is_some_and(|us| us > 1.0);
        assert_eq!(worked, row["agents"] == true, "{row}");
    }
}

/// A group signs no 40,000 signatures in two seconds. That is a row, and the next point is measured.
#[test]
fn a_zone_that_takes_too_long_is_a_row_and_the_next_is_measured() {
    let rows = rows("--names 20000,5 --algorithms ed25519 --groups 2of3 --beside files --changes 1 --patience 5");
    let told: Vec<_> =
        rows.iter().map(|row| (row["signer"].as_str().unwrap(), row["names"].as_u64().unwrap())).collect();
    assert_eq!(told, [("files", 20_000), ("files", 5), ("2 of 3", 20_000), ("2 of 3", 5)]);
    let late = &rows[2];
    assert!(late["objection"] == "not in time" && late["failed"] == false && late["change_ms"].is_null(), "{late}");
    assert!((5_000..30_000).contains(&late["signed_ms"].as_u64().unwrap()), "{late}");
    // Whether it is in time is for the machine, and that it was tried is not.
    assert!(rows[3]["signatures"].as_u64().unwrap() > 10 || rows[3]["objection"] == "not in time", "{}", rows[3]);
}

/// A row is there as soon as its point is, and is in the table when a signal ends the rest.
#[test]
fn what_was_measured_is_kept_when_it_is_told_to_end() {
    let temporary = tempfile::tempdir().unwrap();
    let mut measure = for_people("measure");
    measure.args("--names 20,200000 --algorithms ed25519 --groups 2of3 --beside files --changes 1".split(' '));
    measure.env("TMPDIR", temporary.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut measure = measure.process_group(0).spawn().unwrap();
    let mut lines = BufReader::new(measure.stdout.take().unwrap()).lines().map(Result::unwrap);
    let is_row = |line: &String| line.contains("files, ed25519, 20 names, look-ahead off, agents off: signed");
    assert!(lines.by_ref().any(|line| is_row(&line)), "{}", {
        let mut said = String::new();
        measure.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    });
    assert!(measure.try_wait().unwrap().is_none(), "the rest is being measured");
    // To all of its processes, the name server too, as Ctrl-C does. (What runs in the background ignores that signal.)
    let all = format!("-{}", measure.id());
    assert!(Command::new("kill").args(["-TERM", "--", &all]).status().unwrap().success());
    let rest: Vec<String> = lines.collect();
    assert!(
        rest.iter().any(|line| *line == format!("Knot DNS {}", Knot::version(&Places::of_this_machine()).unwrap())),
        "{rest:?}"
    );
    assert!(
        rest.iter().any(|line| line.starts_with("files") && line.contains(" 20 ") && line.contains(" ms ")),
        "{rest:?}"
    );
    assert!(!rest.iter().any(|line| line.contains("200000 names, look-ahead off, agents off: ")), "{rest:?}");
    assert_eq!(measure.wait().unwrap().code(), Some(143), "128 and the signal's number");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "nothing stays");
}
