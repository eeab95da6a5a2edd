//! `theta bench`.

use crate::harness::{Group, theta_in};

#[test]
fn measures_a_running_group() {
    let group = Group::shared();
    for operation in ["decapsulate", "decrypt", "sign", "coin"] {
        let arguments = [
            "bench",
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
        let report = group.theta(&arguments).ok().json();
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
    let arguments =
        ["bench", "load", "--operation", "coin", "--rate", "20", "--duration", "1s", "--csv", "load.csv", "--json"];
    let report = group.theta(&arguments).ok().json();
    assert_eq!(report["requests"], 20);
    let csv = String::from_utf8(group.read("load.csv")).unwrap();
    assert_eq!(csv.lines().count(), 21, "{csv}");
    assert!(csv.starts_with("request,start_ms,latency_ms,result"), "{csv}");
}

#[test]
fn makes_its_own_group_and_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "bench",
        "load",
        "--local",
        "--nodes",
        "3",
        "--threshold",
        "2",
        "--operation",
        "sign",
        "--duration",
        "500ms",
        "--json",
    ];
    let report = theta_in(dir.path(), &arguments).ok().json();
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
    let arguments = ["bench", "micro", "--experiment", "tiny.toml", "--suite", "*-ristretto255", "--json"];
    theta_in(dir.path(), &arguments).fails(2, &["unknown suite \"*-ristretto255\""]);
    let arguments = [
        "bench",
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
    let report = theta_in(dir.path(), &arguments).ok().json();
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
    let listed = theta_in(dir.path(), &["bench", "micro", "--list", "--json"]).ok().json();
    assert!(listed["experiments"].as_array().unwrap().iter().any(|name| name == "one-round"), "{listed}");
    theta_in(dir.path(), &["bench", "micro", "--experiment", "x"]).fails(2, &["no experiment \"x\"", "one-round"]);
    theta_in(dir.path(), &["bench", "micro", "--suite", "sg03"]).fails(2, &["unknown suite \"sg03\"", "sg02-"]);
    std::fs::write(dir.path().join("bad.toml"), "description = \"\"\nsuites = [\"sg09\"]\ngroups = [[2, 3]]").unwrap();
    let arguments = ["bench", "micro", "--experiment", "bad.toml"];
    theta_in(dir.path(), &arguments).fails(2, &["bad.toml", "unknown suite \"sg09\""]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
