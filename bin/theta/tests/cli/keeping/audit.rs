//! What is on record at a node that runs: taken away, removed, checked.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use crate::harness::{EXE, Group, Run};

const MAY_PRUNE: &str = "
[[rule]]
name = \"client-prunes\"
effect = \"allow\"
clients = [\"client\"]
keys = [\"*\"]
operations = [\"audit.prune\"]
";

/// The records of an export, by number.
fn numbers(lines: &[u8]) -> Vec<u64> {
    let lines = std::str::from_utf8(lines).unwrap().lines();
    lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["sequence"].as_u64().unwrap()).collect()
}

fn field(run: &Run, name: &str) -> String {
    run.json()[name].as_str().unwrap().to_owned()
}

#[test]
fn a_running_log_is_exported_and_what_was_exported_is_removed() {
    let mut group = Group::made();
    group.append(1, "policy.toml", MAY_PRUNE);
    group.start_all();
    for name in ["one", "two", "three"] {
        group.theta(&["coin", name]).ok();
    }
    let first = group.theta(&["audit", "export", "--node", "1", "--to", "1", "-o", "first.jsonl", "--json"]).ok();
    assert_eq!(numbers(&group.read("first.jsonl")), [0, 1]);
    let checkpoint = field(&first, "checkpoint");
    assert!(checkpoint.starts_with("theta-audit:2:"), "{checkpoint}");
    // What comes next follows it, and not something else.
    group.theta(&["audit", "export", "--node", "1", "--after", &checkpoint, "-o", "next.jsonl"]).ok();
    assert_eq!(numbers(&group.read("next.jsonl"))[0], 2);
    let another = format!("theta-audit:2:{}", "07".repeat(32));
    group
        .theta(&["audit", "export", "--node", "1", "--after", &another, "-o", "no"])
        .fails(1, &["record 2", "replaced"]);
    assert!(!group.path().join("no").exists());
    // Nobody prunes without leave, or by another log's checkpoint.
    let prune =
        |node: &str, through: &str| group.theta(&["audit", "prune", "--node", node, "--through", through, "--json"]);
    prune("2", &checkpoint).fails(1, &["audit.prune", "no rule"]);
    prune("1", &another).fails(1, &["nothing was removed", "another log"]);
    let beyond = format!("theta-audit:999:{}", "07".repeat(32));
    prune("1", &beyond).fails(1, &["nothing was removed", "pruned before, or is shorter"]);
    let pruned = prune("1", &checkpoint).ok();
    assert_eq!((pruned.json()["removed"].as_u64(), field(&pruned, "after")), (Some(2), checkpoint.clone()));
    // The chain goes on, and who asked is on record.
    group.theta(&["audit", "verify", "--node", "1"]).fails(1, &["--after"]);
    group.theta(&["audit", "verify", "--node", "1", "--after", &checkpoint]).ok();
    let shown = group.theta(&["audit", "show", "--node", "1", "--operation", "audit.prune", "--json"]).ok();
    let shown = shown.text();
    assert!(shown.contains("\"audit.prune\"") && shown.contains("\"client\""), "{shown}");
    prune("1", &checkpoint).fails(1, &["pruned before"]);
}

#[test]
fn a_node_puts_the_past_of_its_log_away_by_itself() {
    let mut group = Group::made();
    group.append(1, "node.toml", "\n[audit]\nkeep = 8\n");
    group.start_all();
    let folder = group.node_dir(1).join("audit");
    let files = || {
        let entries = fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
        files.sort();
        files
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    for name in 0.. {
        group.theta(&["coin", &format!("coin {name}")]).ok();
        if files().len() >= 2 {
            break;
        }
        assert!(Instant::now() < deadline, "no files come: {}", group.log(1));
    }
    let all: Vec<u8> = files().iter().flat_map(|file| fs::read(file).unwrap()).collect();
    let found = numbers(&all);
    assert!(found.iter().copied().eq(0..u64::try_from(found.len()).unwrap()), "{found:?}");
    // They are whole together, and the log goes on where they end.
    group.file("all.jsonl", &all);
    let verified = group.theta(&["audit", "verify", "all.jsonl", "--json"]).ok();
    group.theta(&["audit", "verify", "--node", "2"]).ok();
    let kept = group.theta(&["audit", "export", "--node", "1", "-o", "rest.jsonl", "--json"]).ok();
    let rest = numbers(&group.read("rest.jsonl"));
    if rest[0] == found.len() as u64 {
        group.theta(&["audit", "verify", "rest.jsonl", "--after", &field(&verified, "checkpoint")]).ok();
    }
    assert!(kept.json()["first"].as_u64().unwrap() >= found.len() as u64, "what is in files is not in the store");
    let shown = group.theta(&["audit", "show", "rest.jsonl", "--operation", "audit.prune", "--json"]).ok();
    assert!(shown.text().contains("this node itself"), "{}", shown.text());
}

/// Runs commands of a shell in which `/mnt` is a file system of 32 MiB with a copy of node 1 that has no byte left.
fn on_a_full_disk(group: &Group, commands: &str) -> Run {
    let allowed = Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|done| done.status.success());
    assert!(
        allowed,
        "this test mounts a file system in a user namespace of its own (unshare -rm), which this system forbids"
    );
    // A store has holes where nothing was written so far; a copy without them would have room.
    let script = format!(
        "set -e; mount -t tmpfs -o size=32m,mode=700 none /mnt; cp -a --sparse=always theta-group/node-1/. /mnt; \
         cat /dev/zero > /mnt/full 2> /dev/null || true; {commands}"
    );
    let run = Command::new("unshare").args(["-rm", "sh", "-c", &script, EXE]).current_dir(group.path()).output();
    run.unwrap().into()
}

/// A full disk: the log's past is exported to another one and removed by what the node has kept in reserve. A small store that was closed well has no
/// room in its file; a larger one may have some and need no reserve.
#[test]
fn the_log_makes_room_on_a_full_disk() {
    let mut group = Group::started();
    for name in 0..20 {
        group.theta(&["coin", &format!("coin {name}")]).ok();
    }
    drop(group.child(1).stdin.take());
    assert!(group.child(1).wait().unwrap().success());
    assert!(group.node_dir(1).join("theta.redb.reserve").exists(), "{}", group.log(1));
    // Who only looks takes nothing of it, whether there is enough room to look or not.
    let export = "\"$0\" audit show --dir /mnt > shown 2>&1 || true; test -e /mnt/theta.redb.reserve; \
                  \"$0\" audit export --dir /mnt -o past.jsonl --json";
    let exported = on_a_full_disk(&group, export).ok();
    let (records, checkpoint) = (exported.json()["records"].as_u64().unwrap(), field(&exported, "checkpoint"));
    // A coin whose other shares came first may not be on record here.
    assert!(records >= 5 && exported.stderr.contains("kept in reserve"), "{exported:?}");
    let prune = format!(
        "\"$0\" audit prune --dir /mnt --through {checkpoint} --json; \"$0\" audit verify --dir /mnt --after {checkpoint}"
    );
    let pruned = on_a_full_disk(&group, &prune).ok();
    assert!(pruned.text().contains(&format!("\"removed\":{}", records - 1)), "{pruned:?}");
}
