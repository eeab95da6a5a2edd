//! Nodes that are killed, come back, or are told to stop.

mod descriptors;
#[cfg(feature = "gossip")]
mod gossip;
mod hosts;

use std::{
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::harness::Group;

/// Encrypts, decrypts, signs, verifies and draws a coin, with inputs of its own for each `tag`.
fn everything_works(group: &Group, tag: &str) {
    let name = group.file(&format!("{tag}.txt"), format!("contents of {tag}"));
    group.theta(&["encrypt", &name]).ok();
    let opened = group.theta(&["decrypt", &format!("{name}.theta"), "-o", "-"]).ok();
    assert_eq!(opened.stdout, group.read(&name));
    group.theta(&["sign", &name]).ok();
    group.theta(&["verify", &name, &format!("{name}.sig")]).ok();
    assert_eq!(group.theta(&["coin", tag]).ok().text().trim().len(), 64);
}

#[test]
fn the_group_survives_kill_and_restart_and_says_so_when_too_few_are_left() {
    let mut group = Group::started();
    everything_works(&group, "all");
    group.kill(2);
    everything_works(&group, "without-2");
    let status = group.theta(&["status", "--json"]).ok().json();
    assert_eq!((&status["up"], &status["nodes"][1]["up"]), (&3.into(), &false.into()));
    group.kill(4);
    everything_works(&group, "without-2-and-4");

    // Three of four are down. One alone can do nothing, and the command says so within its timeout.
    group.kill(1);
    let name = group.file("lonely.txt", "nobody helps");
    group.theta(&["encrypt", &name]).ok();
    let begin = Instant::now();
    for arguments in [
        ["decrypt", "lonely.txt.theta", "-o", "lonely.out", "--timeout", "1s"],
        ["sign", "lonely.txt", "-o", "lonely.sig", "--timeout", "1s"],
    ] {
        group.theta(&arguments).fails(3, &["node 2", "cannot be reached"]);
    }
    group.theta(&["coin", "lonely", "--timeout", "1s"]).fails(3, &["node 4"]);
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(!group.path().join("lonely.out").exists() && !group.path().join("lonely.sig").exists());
    group.theta(&["status"]).fails(3, &["only 1 of 4 nodes are up", "theta node run"]);

    for node in [1, 2, 4] {
        group.start(node);
    }
    for node in [1, 2, 4] {
        group.await_up(node);
    }
    everything_works(&group, "all-again");
}

#[test]
fn a_node_may_be_killed_and_restarted_under_load() {
    let mut group = Group::started();
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let path = group.path().to_owned();
    thread::scope(|scope| {
        for worker in 0..2 {
            let (stop, done, path) = (&stop, &done, &path);
            scope.spawn(move || {
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let name = format!("worker {worker} round {round}");
                    crate::harness::theta_in(path, &["coin", &name]).ok();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // A panic here must stop the workers, too.
        let stopping = StopOnDrop(&stop);
        for _ in 0..2 {
            let before = done.load(Ordering::Relaxed);
            group.kill(3);
            wait_until(|| done.load(Ordering::Relaxed) >= before + 5);
            group.start(3);
            group.await_up(3);
            wait_until(|| done.load(Ordering::Relaxed) >= before + 10);
        }
        drop(stopping);
    });
    everything_works(&group, "afterwards");
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "it takes too long");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_node_says_when_it_is_ready_and_stops_when_told() {
    for signal in ["TERM", "INT"] {
        let mut group = Group::made();
        group.start(1);
        group.await_up(1);
        wait_until(|| group.log(1).contains("node 1 is ready"));
        let pid = group.child(1).id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
        assert_eq!(group.child(1).wait().unwrap().code(), Some(0), "{}", group.log(1));
    }
}

#[test]
fn a_node_stops_when_its_keeper_dies() {
    let mut group = Group::made();
    group.start(1);
    group.await_up(1);
    drop(group.child(1).stdin.take());
    assert_eq!(group.child(1).wait().unwrap().code(), Some(0), "{}", group.log(1));
}
