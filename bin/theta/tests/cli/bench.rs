//! `theta bench load`.

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
