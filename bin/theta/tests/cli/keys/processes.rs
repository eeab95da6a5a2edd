//! ECDSA among processes, over real connections: on demand, from stock, and with a node that is killed in the middle.

use std::{thread, time::Duration};

use crate::harness::Group;
use crate::keys::verifiers::all_take;

/// How many presignatures nodes keep here.
const LEVEL: u64 = 12;

fn node(number: u16) -> String {
    number.to_string()
}

/// What each of these nodes has in stock.
fn ready(group: &Group, nodes: impl Iterator<Item = u16>) -> Vec<u64> {
    let status = group.theta(&["status", "--json"]).ok().json();
    nodes.map(|number| status["stocks"][0]["ready"][node(number)].as_u64().unwrap_or(0)).collect()
}

fn await_full(group: &Group, what: &str) {
    let mut seen = Vec::new();
    for _ in 0..600 {
        seen = ready(group, group.numbers());
        if seen.iter().all(|ready| *ready >= LEVEL) {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}: {seen:?}\n{}", group.log(1));
}

fn set_level(group: &Group, level: u64) {
    for number in group.numbers() {
        let path = group.node_dir(number).join("node.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let kept: Vec<&str> = text.split("\n[limits]\n").take(1).collect();
        std::fs::write(path, format!("{}\n[limits]\nnonces_per_peer = {level}\n", kept[0].trim_end())).unwrap();
    }
}

fn goes_through_its_life(n: u16, k: u16, suite: &str) {
    let (nodes, threshold) = (node(n), node(k));
    let mut group = Group::made_with(&["--nodes", &nodes, "--threshold", &threshold, "--no-keys"]);
    set_level(&group, 0);
    group.start_all();
    group.theta(&["keys", "create", &format!("gold={suite}"), "--threshold", &threshold]).ok();
    for turn in 0..2 {
        all_take(&group, "gold", suite, &format!("{k} of {n}: on demand, {turn}"));
    }
    assert!(ready(&group, group.numbers()).iter().all(|ready| *ready == 0), "nothing is kept");
    group.numbers().for_each(|number| group.kill(number));
    set_level(&group, LEVEL);
    group.start_all();
    await_full(&group, "after the start");
    let before: u64 = ready(&group, group.numbers()).iter().sum();
    all_take(&group, "gold", suite, &format!("{k} of {n}: from stock"));
    assert_ne!(ready(&group, group.numbers()).iter().sum::<u64>(), before, "the stock was used");
    group.kill(2);
    for turn in 0..3 {
        all_take(&group, "gold", suite, &format!("{k} of {n}: without node 2, {turn}"));
    }
    group.start(2);
    group.await_up(2);
    await_full(&group, "with node 2 again");
    for turn in 0..3 {
        all_take(&group, "gold", suite, &format!("{k} of {n}: with node 2 again, {turn}"));
    }
}

#[test]
fn two_of_three_sign() {
    goes_through_its_life(3, 2, "ecdsa-secp256k1");
}

#[test]
fn three_of_five_sign() {
    goes_through_its_life(5, 3, "ecdsa-p256");
}

#[test]
fn four_of_seven_sign() {
    goes_through_its_life(7, 4, "ecdsa-p256");
}
