//! Runs `theta-wan` with real networks and sockets. Where the system does not allow them the tests fail, unless
//! `THETA_WAN_REFUSED` is set: then whoever runs them has said so (`cargo xtask test` does).

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "the helpers of tests are test code, too"
)]

use std::{
    env,
    io::{BufRead, BufReader, Read},
    process::{Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

const EXE: &str = env!("CARGO_BIN_EXE_theta-wan");
const REFUSED: i32 = 3;

/// Whether this system has what the tests need.
fn able() -> bool {
    let asked = Command::new(EXE).args(["check", "--able"]).output().unwrap();
    let said = String::from_utf8_lossy(&asked.stderr);
    match asked.status.code() {
        Some(0) => true,
        Some(REFUSED) if env::var_os("THETA_WAN_REFUSED").is_some() => {
            eprintln!("NOT TESTED: {said}");
            false
        }
        _ => panic!("real networks cannot be tested here; THETA_WAN_REFUSED=1 leaves them out: {said}"),
    }
}

/// `theta-wan run` with a profile, so many nodes, and further words.
fn run(nodes: u16, words: &[&str]) -> Command {
    let mut command = Command::new(EXE);
    command.args(["run", "--profile", "lan", "--nodes", &nodes.to_string()]).args(words);
    command
}

fn output(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn real_sockets_see_what_was_asked_for() {
    if !able() {
        return;
    }
    let mut check = Command::new(EXE);
    check.args(["check", "--short", "--json"]);
    let (code, out, err) = output(check);
    // 1: this machine was too slow for a bound. What no load changes is checked below.
    assert!(matches!(code, Some(0 | 1)), "{code:?} {err}");
    let figures: serde_json::Value = serde_json::from_str(&out).unwrap();
    let measured = |what: &str| {
        let figure = figures.as_array().unwrap().iter().find(|figure| figure["what"] == what).unwrap();
        figure["measured"].as_f64().unwrap()
    };
    assert_eq!(measured("packets lost but not by the seed, or the other way round"), 0.0);
    assert!((1.6..2.4).contains(&measured("UDP loss")));
    assert!(measured("UDP round trip, least") >= 16.0, "nothing arrives early: {out}");
    assert!(measured("UDP round trip, median") >= 19.0, "{out}");
    let rate = measured("the same with its beginning, which is slower");
    assert!(rate <= 50.0 * 1_448.0 / 1_500.0, "{rate} Mbit/s is over what the rate leaves for a stream");
}

#[test]
fn each_command_has_a_network_of_its_own_and_knows_its_place() {
    if !able() {
        return;
    }
    let script = "echo $THETA_WAN_NODE $THETA_WAN_ADDRESS $(grep -o '198.18.0.[1-9]$' /proc/net/fib_trie | sort -u | tr '\\n' ' ') \
                  $(cat /proc/1/comm)";
    let (code, out, err) = output(run(3, &["--", "sh", "-c", script]));
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    // What it is told, its network's own address, and the first process that it sees.
    let wanted = |node| format!("{node} 198.18.0.{node} 198.18.0.{node} theta-wan");
    assert_eq!(lines, [wanted(1), wanted(2), wanted(3)], "{err}");
    assert_eq!(code, Some(0));
    let inner = format!(
        "{EXE} at 2 -- sh -c 'echo $THETA_WAN_NODE in; grep -o \"198.18.0.2$\" /proc/net/fib_trie | sort -u'; {EXE} at 3 -- true"
    );
    let (code, out, err) = output(run(2, &["--once", "--", "sh", "-c", &inner]));
    assert_eq!((code, out.as_str()), (Some(2), "2 in\n198.18.0.2\n"));
    assert!(err.contains("there is no node 3 in this network"), "{err}");
}

#[test]
fn exit_codes_are_passed_on() {
    if !able() {
        return;
    }
    let code = |words: &[&str]| output(run(2, words)).0;
    assert_eq!(code(&["--", "true"]), Some(0));
    assert_eq!(code(&["--", "sh", "-c", "test $THETA_WAN_NODE = 1 && exec sleep 1000; exit 9"]), Some(9), "one fails");
    assert_eq!(code(&["--client", "exit 7", "--", "sleep", "1000"]), Some(7));
    assert_eq!(code(&["--client", "kill -9 $$", "--", "sleep", "1000"]), Some(128 + 9));
    assert_eq!(code(&["--", "/no/such/program"]), Some(127));
    assert_eq!(output(run(2, &["--profile", "x", "--", "true"])).0, Some(2));
    let apart = run(1, &["--user-namespace", "--client", "test $(id -u) = 0", "--", "sleep", "1000"]);
    assert_eq!(output(apart).0, Some(0), "in a user namespace");
}

/// Starts a run whose processes all hold its standard output, and which try to stay; ends it by a signal to the process that was
/// started. Returns what was written, which ends only when the last of them has ended.
fn ended_by(signal: Signal) -> (std::process::ExitStatus, String) {
    let stays = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & exec sleep 1000";
    let client = "trap 'echo in order; exit 0' TERM; echo ready; sleep 1000 & wait";
    let mut child = run(2, &["--client", client, "--", "sh", "-c", stays]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    out.read_line(&mut said).unwrap();
    kill_process(Pid::from_child(&child), signal).unwrap();
    out.read_to_string(&mut said).unwrap();
    (child.wait().unwrap(), said)
}

#[test]
fn nothing_is_left_over_however_it_ends() {
    if !able() {
        return;
    }
    let (status, said) = ended_by(Signal::TERM);
    assert_eq!((status.code(), said.as_str()), (Some(143), "ready\nin order\n"));
    let (status, said) = ended_by(Signal::KILL);
    assert_eq!((status.code(), said.as_str()), (None, "ready\n"));
}
