//! The story, and that nothing of it stays.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::demo;

/// How long processes have to start, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The processes that are about this directory; Knot, which does not name it, by its file.
fn processes(dir: &Path) -> Vec<String> {
    let found = Command::new("pgrep").args(["-f", dir.to_str().unwrap()]).output().unwrap();
    let mut pids: Vec<String> = String::from_utf8(found.stdout).unwrap().lines().map(str::to_owned).collect();
    let knot = fs::read_to_string(dir.join("name-server/run/knot.pid")).unwrap_or_default();
    let runs = |pid: &str| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"\0knot.conf\0"));
    pids.extend(Some(knot.trim().to_owned()).filter(|pid| !pid.is_empty() && runs(pid)));
    pids
}

#[test]
fn a_zone_of_three_operators_cannot_be_falsified_by_one() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("zone");
    let output = demo().arg("--dir").arg(&dir).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("act"), text("change"), row["copies"].to_string(), row["signed"].as_bool().unwrap(), text("served"))
    };
    let told: Vec<_> = rows.as_array().unwrap().iter().map(row).collect();
    let expected = [
        ("taken over", "www.example. A 192.0.2.66", "[1]", false, "192.0.2.1"),
        ("agreed", "www.example. A 192.0.2.7", "[1,2,3]", true, "192.0.2.7"),
        ("one is dead", "vpn.example. A 192.0.2.8", "[1,2,3]", true, "192.0.2.8"),
    ];
    let expected = expected.map(|(act, change, copies, signed, served)| {
        (act.to_owned(), change.to_owned(), copies.to_owned(), signed, served.to_owned())
    });
    assert_eq!(told, expected, "{said}");
    assert_eq!(rows[0]["refused"].to_string(), "[2,3]");
    let named: Vec<String> = rows.as_array().unwrap().iter().map(|row| row["named"].to_string()).collect();
    assert_eq!(named, ["[1]", "[]", "[]"], "{said}");
    for words in [
        "zone is verified and complete",
        "Knot gets no signature, and goes on serving www.example. A 192.0.2.1",
        "agent zone refuses it: www.example. A has other data in the zone",
        "name-server",
        "node 1 is named by node",
        "according to node",
        ", node 1 took part in a request that an agent of this node refuses",
        "Node 3 is killed (SIGKILL)",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    assert_eq!(processes(&dir), Vec::<String>::new(), "nothing runs any more");
}

#[test]
fn nothing_outlives_a_demonstration_that_is_killed() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("zone");
    let mut demo = demo();
    demo.arg("--dir").arg(&dir).stdout(Stdio::null()).stderr(Stdio::null());
    let mut demo = demo.spawn().unwrap();
    let await_that = |what: &str, is_so: &dyn Fn() -> bool| {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < deadline, "it does not come about that {what}: {:?}", processes(&dir));
            sleep(Duration::from_millis(20));
        }
    };
    // Three nodes, three agents, the demonstration itself, and Knot.
    let pid = dir.join("name-server/run/knot.pid");
    await_that("all run", &|| pid.exists() && processes(&dir).len() >= 8);
    demo.kill().unwrap();
    demo.wait().unwrap();
    await_that("all have ended", &|| processes(&dir).is_empty());
}
