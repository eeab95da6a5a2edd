//! Runs `theta-bench` as a person does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests are test code, too"
)]

#[path = "../../bin/theta/tests/cli/run.rs"]
mod run;

/// The harness of the commands' tests, for `run`.
mod harness {
    pub(crate) const EXE: &str = env!("CARGO_BIN_EXE_theta-bench");
    pub(crate) const PROGRAM: &str = "theta-bench";
}

use std::{sync::OnceLock, time::Duration};

use run::{Run, run_in};
use tempfile::TempDir;
use theta::{
    connect::Session,
    group::plan::{self, Plan},
};
use theta_cluster::{Cluster, Lifetime};

/// Four nodes, any two of which act together. They end with this process.
struct Group {
    dir: TempDir,
    _nodes: Cluster,
}

impl Group {
    /// The group that all tests share.
    fn shared() -> &'static Self {
        static SHARED: OnceLock<Group> = OnceLock::new();
        SHARED.get_or_init(|| {
            let dir = TempDir::new().unwrap();
            let plan = Plan::new(4, 2, plan::default_keys()).unwrap();
            let group = dir.path().join("theta-group");
            let mut nodes = Cluster::create(harness::EXE.into(), &group, &plan, Lifetime::Tied).unwrap();
            nodes.start_all().unwrap();
            let session = Session::open(&nodes.client_dir(), Duration::from_secs(30)).unwrap();
            session.block_on(nodes.listening(Duration::from_secs(30))).unwrap();
            Self { dir, _nodes: nodes }
        })
    }

    /// Runs the program against the group.
    fn bench(&self, arguments: &[&str]) -> Run {
        run_in(self.dir.path(), arguments)
    }
}

#[test]
fn measures_a_running_group() {
    let group = Group::shared();
    for operation in ["decapsulate", "decrypt", "sign", "coin"] {
        let arguments = [
            "load",
            "--operation",
            operation,
            "--duration",
            "500ms",
            "--concurrency",
            "2",
            "--requests",
            "200",
            "--json",
        ];
        let report = group.bench(&arguments).ok().json();
        assert_eq!(report["errors"], 0, "{report}");
        assert!(
            report["requests"].as_u64().unwrap() > 0 && report["latency_ms"]["p99"].as_f64().unwrap() > 0.0,
            "{report}"
        );
    }
}

#[test]
fn keeps_a_rate_and_writes_csv() {
    let group = Group::shared();
    let arguments = ["load", "--operation", "coin", "--rate", "20", "--duration", "1s", "--csv", "load.csv", "--json"];
    let report = group.bench(&arguments).ok().json();
    assert_eq!(report["requests"], 20);
    let csv = std::fs::read_to_string(group.dir.path().join("load.csv")).unwrap();
    assert_eq!(csv.lines().count(), 21, "{csv}");
    assert!(csv.starts_with("request,start_ms,latency_ms,result"), "{csv}");
}

#[cfg(target_os = "linux")]
#[test]
fn measures_a_group_at_rest() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["rest", "--nodes", "3", "--threshold", "2", "--idle", "1s", "--requests", "20", "--json"];
    let report = run_in(dir.path(), &arguments).ok().json();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert!(number(&report["settled_cpu_seconds"]) >= number(&report["first_answer_cpu_seconds"]), "{report}");
    assert!(number(&report["first_answer_seconds"]) >= number(&report["listening_seconds"]), "{report}");
    for rest in [&report["at_rest"], &report["at_rest_again"]] {
        assert!(number(&rest["rss_bytes"]) > number(&rest["pss_bytes"]), "{report}");
        assert!(number(&rest["private_bytes"]) > 0.0 && number(&rest["threads"]) >= 5.0, "{report}");
        // Ticks of 50 ms for each of its threads would be more.
        assert!((1.0..100.0).contains(&number(&rest["sleeps_per_second"])), "{report}");
    }
}

#[test]
fn makes_its_own_group_and_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let arguments =
        ["load", "--local", "--nodes", "3", "--threshold", "2", "--operation", "sign", "--duration", "500ms", "--json"];
    let rules = ["--slots", "--record", "soon"];
    let report = run_in(dir.path(), &[&arguments[..], &rules[..]].concat()).ok().json();
    assert_eq!(report["errors"], 0, "{report}");
    let nodes = report["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 3);
    for node in nodes {
        assert!(node["peak_memory_bytes"].as_u64().unwrap() > 1 << 20, "{report}");
        assert!(node["cpu_us_per_request"].as_f64().is_some(), "{report}");
        let process = format!("/proc/{}", node["pid"]);
        assert!(!std::path::Path::new(&process).exists(), "the nodes have ended");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn measures_threshold_ecdsa_over_sockets_and_in_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let networks = ["--profile", "loopback,lan"];
    let arguments = ["ecdsa", "--backend", "rep3,semi-ot", "--nodes", "2,3", "--count", "3", "--out", "out", "--json"];
    let report = run_in(dir.path(), &[&arguments[..], &networks[..]].concat()).ok().json();
    let results = report["results"].as_array().unwrap();
    let of: Vec<String> = results
        .iter()
        .map(|result| format!("{} {} {}", result["network"], result["backend"], result["nodes"]).replace('"', ""))
        .collect();
    assert_eq!(
        of,
        ["loopback Rep3 3", "loopback Semi-OT 2", "loopback Semi-OT 3", "lan Rep3 3", "lan Semi-OT 2", "lan Semi-OT 3"]
    );
    assert!(results.iter().all(|result| result["tuples_per_second"].as_f64().unwrap() > 0.0), "{report}");
    assert_eq!(results[0]["traffic"], results[3]["traffic"], "{report}");
    let csv = std::fs::read_to_string(dir.path().join("out/results.csv")).unwrap();
    assert!(csv.starts_with("curve,backend,active,nodes,corrupt,network,modelled,set_up_ms,"), "{csv}");
    assert_eq!(csv.lines().count(), 7, "{csv}");

    let refused = ["ecdsa", "--backend", "rep3", "--nodes", "2"];
    run_in(dir.path(), &refused).fails(2, &["none of the black boxes serves so many parties", "Rep3 takes 3"]);
    run_in(dir.path(), &["ecdsa", "--profile", "moon"]).fails(2, &["no profile \"moon\"", "continents", "loopback"]);
    let help = run_in(dir.path(), &["ecdsa", "--help"]).ok().text();
    for words in ["MODEL", "malicious-shamir", "secp256k1", "Examples:"] {
        assert!(help.contains(words), "no {words:?} in {help}");
    }
}

/// An experiment that takes a moment.
const TINY: &str = "\
description = \"a moment\"
suites = [\"sg02-ristretto255\", \"frost-ristretto255\", \"cks05-*\"]
groups = [[2, 3], [3, 4]]
payloads = [\"1B\", \"1KiB\"]
messages = [\"16B\"]
time = \"1ms\"
operations = [\"key generation\", \"encrypt\", \"create share\", \"verify k shares\", \"combine\", \"round 2\", \"aggregate\"]
";

#[test]
fn measures_an_experiment_and_draws_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tiny.toml"), TINY).unwrap();
    let arguments = ["micro", "--experiment", "tiny.toml", "--suite", "*-ristretto255", "--json"];
    run_in(dir.path(), &arguments).fails(2, &[r#""message":"unknown suite \"*-ristretto255\""#]);
    let arguments = [
        "micro",
        "--experiment",
        "tiny.toml",
        "--suite",
        "sg02-*",
        "--suite",
        "frost-*",
        "--suite",
        "cks05-ristretto255",
        "--out",
        "out",
        "--json",
    ];
    let report = run_in(dir.path(), &arguments).ok().json();
    let read = |name: &str| std::fs::read_to_string(dir.path().join("out").join(name)).unwrap();

    let csv = read("results.csv");
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), report["measurements"].as_array().unwrap().len());
    assert!(rows.iter().all(|row| row.len() == header.len()), "{csv}");
    for (suite, operation, count) in [
        ("sg02-ristretto255", "encrypt", 4),
        ("sg02-ristretto255", "combine", 2),
        ("cks05-ristretto255", "verify k shares", 2),
        ("frost-ristretto255", "round 2", 2),
        ("frost-ristretto255", "key generation", 2),
        ("sg02-ristretto255", "decode share", 0),
    ] {
        let chosen: Vec<_> =
            rows.iter().filter(|row| row[column("suite")] == suite && row[column("operation")] == operation).collect();
        assert_eq!(chosen.len(), count, "{suite} {operation}");
        for row in chosen {
            let number = |name: &str| row[column(name)].parse::<f64>().unwrap();
            assert!(number("min_us") > 0.0 && number("min_us") <= number("p95_us"), "{row:?}");
            assert!(number("raw_us") > 0.0 && number("overhead") > 0.3, "{row:?}");
        }
    }
    assert!(rows.iter().any(|row| row[0] == "raw" && row[column("operation")] == "mul base"), "{csv}");

    assert!(read("machine.txt").contains("rustc: rustc 1."));
    let page = read("report.html");
    assert!(page.matches("<figure><svg").count() >= 6 && page.contains("<td>frost-ristretto255</td>"));
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(read("plots/sg02-combine.svg").starts_with("<svg xmlns="));
}

#[test]
fn experiments_are_listed_and_mistakes_named() {
    let dir = tempfile::tempdir().unwrap();
    let listed = run_in(dir.path(), &["micro", "--list", "--json"]).ok().json();
    assert!(listed["experiments"].as_array().unwrap().iter().any(|name| name == "one-round"), "{listed}");
    run_in(dir.path(), &["micro", "--experiment", "x"]).fails(2, &["no experiment \"x\"", "one-round"]);
    run_in(dir.path(), &["micro", "--suite", "sg03"]).fails(2, &["unknown suite \"sg03\"", "sg02-"]);
    std::fs::write(dir.path().join("bad.toml"), "description = \"\"\nsuites = [\"sg09\"]\ngroups = [[2, 3]]").unwrap();
    let arguments = ["micro", "--experiment", "bad.toml"];
    run_in(dir.path(), &arguments).fails(2, &["bad.toml", "unknown suite \"sg09\""]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_mistyped_operation_is_answered_with_the_right_one() {
    let dir = tempfile::tempdir().unwrap();
    let run = run_in(dir.path(), &["load", "--operation", "sgin"]).fails(2, &["'sign'"]);
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    let help = run_in(dir.path(), &["--help"]).ok().text();
    for words in ["load", "soak", "micro", "Exit codes:", "bench/README.md"] {
        assert!(help.contains(words), "no {words:?} in {help}");
    }
}
