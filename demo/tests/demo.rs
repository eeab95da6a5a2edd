//! `theta-demo`, as people run it: real processes, real sockets, a real SIGKILL and a liar.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

#[path = "../../bin/theta/tests/cli/run.rs"]
mod run;

/// What is run, for `run`.
mod harness {
    pub(crate) const EXE: &str = env!("CARGO_BIN_EXE_theta-demo");
    pub(crate) const PROGRAM: &str = "theta-demo";
}

use std::{collections::BTreeSet, process::Command, process::Stdio, time::Duration};

use run::{command, run_in};

#[test]
fn shows_everything_and_cleans_up() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("letter.txt"), "a letter").unwrap();
    let run = run_in(dir.path(), &["demo", "--file", "letter.txt", "--rounds", "2", "--dir", "group"]).ok();
    let text = run.text();
    for word in [
        "any 2 of them",
        "mutually authenticated TLS 1.3",
        "by distributed key generation",
        "the public key is the same",
        "refused, by the rule \"nobody-destroys-files\"",
        "the logs of nodes 1, 2, 3 and 4 are whole",
        "decrypted letter.txt",
        "blst accepts the signature",
        "aws-lc accepts the signature",
        "its proof holds",
        "Node 4 is killed (SIGKILL)",
        "Node 4 starts again",
        "node 1 is named by the others",
        "node 1 is replaced by an honest one again",
        "one lies",
        "cargo build --release",
        "theta group init",
    ] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    assert!(!text.contains('\u{1b}'), "no colours into a pipe");
    let nodes = Command::new("pgrep").args(["-f", dir.path().to_str().unwrap()]).output();
    assert!(nodes.map_or(true, |found| found.stdout.is_empty()), "no node is left");
}

#[test]
fn json_is_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let rows = run_in(dir.path(), &["demo", "--rounds", "1", "--nodes", "3", "--json"]).ok().json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 14, "three operations in four acts, once a signature in two rounds, once during a refresh");
    assert!(rows.iter().all(|row| row["good"] == row["of"] && row["p50_ms"].as_f64().unwrap() > 0.0), "{rows:?}");
    let culprits: BTreeSet<_> =
        rows.iter().flat_map(|row| row["culprits"].as_array().unwrap()).map(|n| n.as_u64()).collect();
    assert_eq!(culprits, BTreeSet::from([Some(1)]));
}

#[test]
fn a_network_that_is_kept_works_until_it_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["demo", "--rounds", "1", "--nodes", "3", "--threshold", "2", "--keep", "--dir", "kept"];
    let text = run_in(dir.path(), &arguments).ok().text();
    let kill = text.lines().find(|line| line.trim_start().starts_with("kill ")).unwrap();
    let pids: Vec<&str> = kill.split_whitespace().skip(1).take_while(|word| *word != "&&").collect();
    let killer = KillOnDrop(pids.iter().map(ToString::to_string).collect());
    assert_eq!(pids.len(), 3, "{text}");
    for pid in &pids {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(command.contains("\0node\0run\0"), "the liar is gone: {command:?}");
    }
    run_in(dir.path(), &["coin", "after the demo", "--client", "kept/client"]).ok();
    drop(killer);
}

struct KillOnDrop(Vec<String>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(&self.0).status();
    }
}

#[test]
fn nodes_end_with_a_demo_that_is_killed() {
    nodes_end_with_the_demo("-KILL", None);
}

#[test]
fn nodes_end_with_a_demo_that_is_interrupted() {
    nodes_end_with_the_demo("-INT", Some(130));
}

/// SIGTERM and SIGHUP left the group with its keys where temporary files are.
#[test]
fn a_demo_that_is_ended_leaves_no_keys() {
    for (signal, code) in [("-HUP", 129), ("-INT", 130), ("-TERM", 143)] {
        let dir = tempfile::tempdir().unwrap();
        let mut demo = command();
        demo.arg("demo").env("TMPDIR", dir.path());
        ended(&mut demo, dir.path(), (signal, Some(code)));
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{signal}: {left:?}");
    }
}

fn nodes_end_with_the_demo(signal: &str, code: Option<i32>) {
    let dir = tempfile::tempdir().unwrap();
    let mut demo = command();
    demo.args(["demo", "--dir", "group"]);
    ended(&mut demo, dir.path(), (signal, code));
}

/// Starts a demo, sends it a signal when its nodes run, and waits until it and they have ended.
#[track_caller]
fn ended(demo: &mut Command, dir: &std::path::Path, (signal, code): (&str, Option<i32>)) {
    let mut demo =
        demo.args(["--rounds", "500"]).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let nodes = || {
        let found = Command::new("pgrep").args(["-P", &demo.id().to_string()]).output().unwrap();
        String::from_utf8(found.stdout).unwrap().lines().map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    let mut pids = nodes();
    while pids.len() < 4 {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
        pids = nodes();
    }
    assert!(Command::new("kill").args([signal, &demo.id().to_string()]).status().unwrap().success());
    assert_eq!(demo.wait().unwrap().code(), code);
    let alive = |pid: &String| std::path::Path::new(&format!("/proc/{pid}/exe")).exists();
    while pids.iter().any(alive) {
        assert!(std::time::Instant::now() < deadline, "nodes live on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn impossible_wishes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    run_in(dir.path(), &["demo", "--threshold", "9"]).fails(2, &["--threshold 9"]);
    run_in(dir.path(), &["demo", "--file", "no.txt"]).fails(2, &["cannot read no.txt"]);
    std::fs::create_dir(dir.path().join("there")).unwrap();
    run_in(dir.path(), &["demo", "--dir", "there"]).fails(2, &["there exists already"]);
}

#[test]
fn it_does_what_theta_does_and_has_the_liar_that_theta_has_not() {
    let dir = tempfile::tempdir().unwrap();
    let suites = run_in(dir.path(), &["suites"]).ok().text();
    assert!(suites.contains("frost-ed25519"), "{suites}");
    let run = run_in(dir.path(), &["bench", "micro"]).fails(2, &["cargo run --release -p theta-bench -- micro"]);
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");

    let help = run_in(dir.path(), &["--help"]).ok().text();
    assert!(help.contains("catch a liar") && !help.contains("_x_liar"), "{help}");
    let run = run_in(dir.path(), &["dem"]).fails(2, &["'demo'"]);
    assert!(!run.stderr.contains("liar"), "{run:?}");
    run_in(dir.path(), &["_x_liar", "--dir", "nowhere"]).fails(2, &["cannot read nowhere/node.toml"]);
    // What the product's own test looks for in the product, and must not find.
    let program = std::fs::read(harness::EXE).unwrap();
    let text = b"node that sends false shares";
    assert!(program.windows(text.len()).any(|window| window == text));
}
