//! What the module does when nodes are away, refuse, or are many hosts' at once; and signatures that they make ahead.

mod look_ahead;

use std::{process::Command, time::Duration};

use serde_json::json;

use crate::{
    group::{configure, log, shared, until, with_keys},
    harness::Group,
    host::{DEVICE_ERROR, FUNCTION_REJECTED, Host},
};

/// How long a call may take.
const TIMEOUT_MS: u32 = 6_000;
/// How much later it may end: half a second, as the guide says, and what a busy machine adds.
const LATE_SECONDS: f64 = 4.0;

fn sign(key: &str, data: &str) -> serde_json::Value {
    json!({"do": "sign", "key": key, "mechanism": "eddsa", "data": data})
}

#[test]
fn too_few_nodes_are_a_device_error_and_the_next_call_works() {
    let mut group = with_keys();
    configure(&group, &format!("timeout_ms = {TIMEOUT_MS}\n"));
    let mut host = Host::ready(&group);
    host.ok(sign("ed", "01"));
    group.kill(2);
    group.kill(3);
    host.ok(sign("ed", "02"));
    group.kill(4);
    let failed = host.fails(DEVICE_ERROR, sign("ed", "03"));
    assert!(failed["seconds"].as_f64().unwrap() < f64::from(TIMEOUT_MS) / 1_000.0 + LATE_SECONDS, "{failed}");
    assert!(log(&group).contains("signing with ed@1 failed"), "{}", log(&group));
    // The keys are known all the same.
    assert_eq!(host.ok(json!({"do": "list"}))["keys"].as_array().unwrap().len(), 14);
    group.start(3);
    group.await_up(3);
    until("a signature is made again", Duration::from_secs(30), || host.ask(sign("ed", "04"))["rv"] == 0);
}

#[test]
fn a_refusal_by_policy_is_told_as_one() {
    let group = with_keys();
    let deny = "\n[[rule]]\nname = \"not-this-key\"\neffect = \"deny\"\nclients = [\"client\"]\nkeys = [\"ed\"]\noperations = [\"sign\"]\n";
    let mut host = Host::ready(&group);
    host.ok(sign("ed", "01"));
    for node in group.numbers() {
        group.append(node, "policy.toml", deny);
    }
    // Nodes take a changed policy by themselves.
    until("the nodes refuse", Duration::from_secs(30), || host.ask(sign("ed", "02"))["rv"] == FUNCTION_REJECTED);
    let said = log(&group);
    assert!(said.contains("signing with ed@1 failed") && said.contains("not-this-key"), "{said}");
    host.ok(sign("live", "02"));
}

fn signal(group: &mut Group, node: u16, signal: &str) {
    let pid = group.child(node).id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

/// A hundred threads keep a hundred requests in flight: while no signature can be made, one node has them all.
#[test]
fn threads_wait_for_the_group_and_not_for_each_other() {
    let mut group = with_keys();
    configure(&group, "timeout_ms = 60000\n");
    let mut host = Host::ready(&group);
    host.ok(sign("ed", "01"));
    (2..=4).for_each(|node| signal(&mut group, node, "-STOP"));
    host.tell(&json!({"do": "threads", "key": "ed", "mechanism": "eddsa", "count": 100}));
    let in_flight = |group: &Group| {
        let metrics = group.told(1, "/metrics");
        let line = metrics.lines().find(|line| line.starts_with("theta_api_in_flight_requests"));
        line.and_then(|line| line.split_whitespace().last()?.parse::<f64>().ok()).unwrap_or_default()
    };
    until("node 1 has a hundred requests", Duration::from_secs(30), || in_flight(&group) >= 100.0);
    (2..=4).for_each(|node| signal(&mut group, node, "-CONT"));
    let answer = host.answer();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 100);
    for result in results {
        assert_eq!(result[0], 0, "{result}");
        host.ok(json!({"do": "verify", "key": "ed", "mechanism": "eddsa", "data": result[1], "signature": result[2]}));
    }
}

#[test]
fn a_child_that_initialises_again_signs() {
    let mut host = Host::ready(shared());
    // With the thread of a client in the parent, and without.
    for _ in 0..2 {
        let fork = json!({"do": "fork", "key": "ed", "mechanism": "eddsa", "data": "05"});
        let child = host.ask(fork);
        assert_eq!((&child["before"], &child["began"], &child["rv"]), (&0x190.into(), &0.into(), &0.into()), "{child}");
        let parent = host.ok(sign("ed", "05"));
        assert_eq!(parent["signature"].as_str().unwrap().len(), 128);
    }
}

/// Several programs at once, with one client file.
#[test]
fn several_programs_use_one_client_file() {
    let mut hosts: Vec<Host> = (0..4).map(|_| Host::ready(shared())).collect();
    for host in &mut hosts {
        host.tell(&json!({"do": "threads", "key": "live", "mechanism": "eddsa", "count": 8}));
    }
    for host in &mut hosts {
        let answer = host.answer();
        assert!(answer["results"].as_array().unwrap().iter().all(|result| result[0] == 0), "{answer}");
    }
}
