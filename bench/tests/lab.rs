//! Scenarios from the file to the report, on real groups.

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

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use run::{command, run_in};

const TINY: &str = "\
description = \"a moment\"
measure = \"capacity\"
groups = [[2, 4]]
suites = [\"sg02-ristretto255\", \"frost-ed25519\"]
time = \"500ms\"
patience = \"10s\"
[ladder]
first = 8
most = 16
limit = \"10s\"
";

/// The lines of a table, by the names of the columns.
fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(Result::unwrap).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

/// What nothing outside is needed for.
fn assert_self_contained(page: &str) {
    for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_capacity_is_measured_from_the_scenario_to_the_report() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tiny.toml"), TINY).unwrap();
    let began = Instant::now();
    let report = run_in(dir.path(), &["capacity", "--scenario", "tiny.toml", "--out", "out", "--json"]).ok().json();
    assert!(began.elapsed() < Duration::from_secs(300), "{:?}", began.elapsed());
    let out = dir.path().join("out");
    let rows = table(&out.join("results.csv"));
    assert_eq!(report["points"].as_array().unwrap().len(), rows.len());
    let asked: Vec<_> = rows.iter().map(|row| (row["suite"].as_str(), number(row, "rate"))).collect();
    assert!(asked.contains(&("sg02-ristretto255", 8.0)) && asked.contains(&("frost-ed25519", 8.0)), "{asked:?}");
    for row in &rows {
        assert_eq!(
            (row["kind"].as_str(), row["scenario"].as_str(), row["n"].as_str(), row["k"].as_str()),
            ("capacity", "tiny", "4", "2")
        );
        assert_eq!(
            (row["failed"].as_str(), row["profile"].as_str(), row["delivery"].as_str()),
            ("0", "loopback", "all")
        );
        assert!(number(row, "sent") >= 4.0 && number(row, "throughput") > 0.0, "{row:?}");
        assert!(number(row, "min_ms") > 0.0 && number(row, "min_ms") <= number(row, "p50_ms"), "{row:?}");
        assert!(number(row, "node_cpu_us") > 0.0 && number(row, "sent_bytes") > 30.0, "{row:?}");
        assert!(
            number(row, "memory_bytes") > f64::from(1 << 20) && !row["cpu"].is_empty() && row["date"].ends_with("UTC"),
            "{row:?}"
        );
    }
    let nodes = table(&out.join("nodes.csv"));
    assert_eq!(nodes.len(), rows.len() * 4);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("sg02-ristretto255 256 B") && page.matches("<figure><svg").count() >= 3);
    assert_self_contained(&page);
    // The same again, from the tables alone.
    fs::remove_file(out.join("report.html")).unwrap();
    let text = run_in(dir.path(), &["report", "out"]).ok().text();
    assert!(text.contains("one core a node bears") && text.contains("any 2 of 4, loopback"), "{text}");
    assert_eq!(fs::read_to_string(out.join("report.html")).unwrap(), page);
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    fs::write(dir.path().join("tiny.toml"), TINY.replace("500ms", "2s")).unwrap();
    let results = dir.path().join("out/results.csv");
    let mut running = command();
    running.current_dir(dir.path()).env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = running.args(["capacity", "--scenario", "tiny.toml", "--out", "out"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !fs::read_to_string(&results).is_ok_and(|text| text.lines().count() >= 2) {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "no point came");
        std::thread::sleep(Duration::from_millis(5));
    }
    let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("go on with theta-bench capacity --resume out"), "{said}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "no group is left behind");
    assert!(dir.path().join("out/report.html").exists());
    let before = fs::read_to_string(&results).unwrap();
    let kept = table(&results).len();
    assert!((1..4).contains(&kept), "{before}");

    run_in(dir.path(), &["steady", "--resume", "out"]).fails(2, &["is for theta-bench capacity"]);
    run_in(dir.path(), &["capacity", "--resume", "out"]).ok();
    let after = fs::read_to_string(&results).unwrap();
    assert!(after.starts_with(&before), "what there was is as it was");
    let rows = table(&results);
    let mut points: Vec<_> = rows.iter().map(|row| (row["suite"].clone(), row["rate"].clone())).collect();
    points.sort();
    let all = points.len();
    points.dedup();
    assert_eq!(points.len(), all, "nothing is measured twice: {points:?}");
    assert!(all > kept && rows.iter().any(|row| row["suite"] == "frost-ed25519"), "{after}");
    let numbers: Vec<_> = rows.iter().map(|row| row["point"].parse::<usize>().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    // Nothing is left to do.
    let text = run_in(dir.path(), &["capacity", "--resume", "out"]).ok().text();
    assert!(text.contains(", 0 of them new"), "{text}");
}

#[test]
fn a_steady_state_has_latencies_by_node_and_stages() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = "description = \"x\"\nmeasure = \"steady\"\ngroups = [[2, 4]]\nsuites = [\"cks05-ristretto255\"]\npayloads = [\"256B\"]\n\
                    time = \"1s\"\n[steady]\nrate = 10\n";
    fs::write(dir.path().join("still.toml"), scenario).unwrap();
    run_in(dir.path(), &["steady", "--scenario", "still.toml", "--out", "out"]).ok();
    let out = dir.path().join("out");
    let rows = table(&out.join("results.csv"));
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((number(row, "sent"), number(row, "traced"), row["failed"].as_str()), (10.0, 10.0, "0"));
    let (theta, l95, fairness) = (number(row, "l_theta_ms"), number(row, "l95_ms"), number(row, "fairness"));
    assert!(0.0 < theta && theta <= l95, "{row:?}");
    assert!(
        (fairness - theta / l95).abs() < 0.01 && (number(row, "residual_delay") - (l95 / theta - 1.0)).abs() < 0.05,
        "{row:?}"
    );
    let nodes = table(&out.join("nodes.csv"));
    assert!(
        nodes.len() == 4 && nodes.iter().all(|node| number(node, "p50_ms") > 0.0 && number(node, "traced") == 10.0),
        "{nodes:?}"
    );
    let stages: BTreeMap<String, f64> =
        table(&out.join("stages.csv")).iter().map(|stage| (stage["stage"].clone(), number(stage, "mean_us"))).collect();
    assert_eq!(stages.len(), 10, "{stages:?}");
    assert!(stages["make a share"] > 1.0 && stages["wait for shares"] > 1.0 && stages["combine"] > 1.0, "{stages:?}");
    // What the node does between a request's arrival and its result is its latency, whichever way it is counted.
    // One that this machine held up counts in the mean, and in the slowest.
    let sum: f64 = stages.iter().filter(|(name, _)| *name != "answer").map(|(_, time)| time).sum();
    let slowest = l95.max(theta).max(number(row, "p99_ms"));
    assert!(sum / 1e3 < 3.0 * slowest + 5.0 && sum / 1e3 > 0.2 * theta, "{sum} {row:?}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Latency by node: cks05-ristretto255") && page.contains("Stages, any 2 of 4"));
    assert_self_contained(&page);
}

#[test]
fn payloads_and_round_trips_are_measured() {
    let dir = tempfile::tempdir().unwrap();
    let payload = "description = \"x\"\nmeasure = \"payload\"\ngroups = [[2, 3]]\nsuites = [\"sg02-ristretto255\"]\npayloads = [\"1B\", \"1MiB\"]\n\
                   time = \"2s\"\n[payload]\nrequests = 3\n";
    fs::write(dir.path().join("sizes.toml"), payload).unwrap();
    run_in(dir.path(), &["payload", "--scenario", "sizes.toml", "--out", "sizes"]).ok();
    let rows = table(&dir.path().join("sizes/results.csv"));
    assert_eq!(rows.iter().map(|row| row["payload_bytes"].as_str()).collect::<Vec<_>>(), ["1", "1048576"]);
    assert!(
        rows.iter().all(|row| number(row, "sent") == 3.0 && row["operation"] == "decrypt" && row["failed"] == "0"),
        "{rows:?}"
    );

    let wires = "description = \"x\"\nmeasure = \"network\"\ngroups = [[2, 3]]\nsuites = [\"sg02-ristretto255\"]\n\
                 [network]\npings = [\"64B\"]\ncount = 20\nceremonies = true\n";
    fs::write(dir.path().join("wires.toml"), wires).unwrap();
    let text = run_in(dir.path(), &["network", "--scenario", "wires.toml", "--out", "wires"]).ok().text();
    assert!(text.contains("loopback to here") && text.contains("a key of sg02-ristretto255"), "{text}");
    let rows = table(&dir.path().join("wires/results.csv"));
    assert_eq!(rows.iter().map(|row| row["kind"].as_str()).collect::<Vec<_>>(), ["ping", "ping", "start", "ceremony"]);
    assert!(rows.iter().all(|row| row["failed"] == "0"), "{rows:?}");
    assert!(number(&rows[2], "seconds") > 0.0 && number(&rows[3], "sent_bytes") > 1_000.0, "{rows:?}");
    assert_self_contained(&fs::read_to_string(dir.path().join("wires/report.html")).unwrap());
}

/// Real networks: where the system refuses them this fails, unless somebody who has looked says so.
#[test]
fn over_a_distance_a_round_trip_takes_as_long_as_the_profile_says() {
    if std::env::var_os("THETA_WAN_REFUSED").is_some() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let wires = "description = \"x\"\nmeasure = \"network\"\nprofiles = [\"four-regions\"]\n[network]\npings = [\"64B\"]\ncount = 3\n";
    fs::write(dir.path().join("far.toml"), wires).unwrap();
    run_in(dir.path(), &["network", "--scenario", "far.toml", "--out", "out"]).ok();
    let rows = table(&dir.path().join("out/results.csv"));
    assert_eq!(rows.len(), 6);
    for (peer, delay) in [("sydney", 125.0), ("toronto", 46.5), ("san-francisco", 74.0)] {
        for transport in ["tcp", "mesh"] {
            let row = rows.iter().find(|row| row["peer"] == peer && row["transport"] == transport).unwrap();
            // There and back, less twice the jitter.
            assert!(number(row, "min_ms") > 2.0 * (delay - 1.2), "{row:?}");
        }
    }
}

#[test]
fn scenarios_are_listed_and_mistakes_named() {
    let dir = tempfile::tempdir().unwrap();
    let listed = run_in(dir.path(), &["capacity", "--list", "--json"]).ok().json();
    assert!(listed["scenarios"].as_array().unwrap().iter().any(|name| name == "capacity-7"), "{listed}");
    run_in(dir.path(), &["capacity", "--scenario", "x"]).fails(2, &["no scenario \"x\"", "capacity-7"]);
    run_in(dir.path(), &["capacity", "--scenario", "steady-7"]).fails(2, &["is for theta-bench steady"]);
    fs::write(dir.path().join("bad.toml"), TINY.replace("first", "firts")).unwrap();
    run_in(dir.path(), &["capacity", "--scenario", "bad.toml"])
        .fails(2, &["bad.toml", "unknown field `firts`", "first"]);
    run_in(dir.path(), &["capacity", "--resume", "nowhere"]).fails(2, &["nowhere"]);
    run_in(dir.path(), &["report", "."]).fails(2, &["scenario.toml"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is made for a mistake");
}
