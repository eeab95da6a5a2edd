//! Seven nodes on a ring: each has connections with two others, and reaches the rest by what these pass on.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use crate::harness::Group;

const NODES: u16 = 7;

/// A group of seven, any three of which act, with a key of each scheme. Each node connects to the next, and the last to the first.
fn ring() -> Group {
    let keys = "vault=sg02-ristretto255,pairing=bz03-bls12381,frost=frost-ed25519,bls=bls04-bls12381-min-pk,\
                ecdsa=ecdsa-secp256k1,rsa=sh00-pkcs1-sha256,lots=cks05-ristretto255";
    let group = Group::made_with(&["--nodes", "7", "--threshold", "3", "--keys", keys]);
    for node in group.numbers() {
        let file = group.node_dir(node).join("node.toml");
        let text = fs::read_to_string(&file).unwrap();
        let gossips = text.replace("transport = \"mesh\"", "transport = \"gossip\"");
        assert_ne!(text, gossips);
        fs::write(file, format!("{gossips}\n[gossip]\nneighbours = [{}]\n", node % NODES + 1)).unwrap();
    }
    group
}

/// Waits until each of these nodes reaches so many others.
fn until_reached(group: &Group, nodes: &[u16], others: u64) {
    let begin = Instant::now();
    loop {
        let status = group.theta(&["status", "--json"]).json();
        let reached = |node: &u16| status["nodes"][usize::from(*node) - 1]["peers_connected"].as_u64();
        if nodes.iter().all(|node| reached(node) == Some(others)) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(90), "{status:#}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Uses each of these keys.
fn works(group: &Group, tag: &str, ciphers: &[&str], signers: &[&str], coin: &str) {
    let name = group.file(&format!("{tag}.txt"), format!("contents of {tag}"));
    for key in ciphers {
        group.theta(&["encrypt", &name, "--key", key, "-o", "sealed"]).ok();
        let opened = group.theta(&["decrypt", "sealed", "-o", "-"]).ok();
        assert_eq!(opened.stdout, group.read(&name), "{key}");
        fs::remove_file(group.path().join("sealed")).unwrap();
    }
    for key in signers {
        let signature = format!("{tag}.{key}");
        group.theta(&["sign", &name, "--key", key, "-o", &signature]).ok();
        group.theta(&["verify", &name, &signature, "--key", key]).ok();
    }
    let drawn = group.theta(&["coin", tag, "--key", coin]).ok().text();
    assert!(drawn.trim().len() >= 64, "{drawn}");
}

/// Established connections between nodes, by the port of the one that was called.
fn connections(group: &Group, node: u16) -> usize {
    let port = format!(":{:04X}", group.ports(node).0);
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let established = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1).is_some_and(|local| local.ends_with(&port)) && words.get(3) == Some(&"01")
    };
    table.lines().filter(established).count()
}

#[test]
fn all_schemes_and_a_ceremony_work_on_a_ring_that_loses_a_node() {
    let mut group = ring();
    group.start_all();
    until_reached(&group, &[1, 2, 3, 4, 5, 6, 7], 6);
    for node in group.numbers() {
        assert_eq!(connections(&group, node), 1, "node {node} is called by its neighbour alone");
    }
    works(&group, "all", &["vault", "pairing"], &["frost", "bls", "ecdsa", "rsa"], "lots");
    group.theta(&["keys", "create", "box=sg02-ristretto255", "seal=frost-ed25519", "coin=ecdsa-p256"]).ok();
    works(&group, "made", &["box"], &["seal", "coin"], "lots");

    // The ring becomes a line.
    group.kill(4);
    until_reached(&group, &[1, 2, 3, 5, 6, 7], 5);
    works(&group, "line", &["vault", "box"], &["frost", "bls", "ecdsa", "seal"], "lots");
    let status = group.theta(&["status"]).text();
    assert!(status.contains("node 4"), "{status}");

    group.start(4);
    group.await_up(4);
    until_reached(&group, &[1, 2, 3, 4, 5, 6, 7], 6);
    works(&group, "ring", &["pairing"], &["rsa", "seal"], "lots");
    for node in group.numbers() {
        let log = group.log(node);
        assert!(log.lines().any(|line| line.contains("connected to") && line.contains(", a neighbour")), "{log}");
    }
}

#[test]
fn a_node_that_is_to_gossip_is_made_so() {
    let dir = tempfile::tempdir().unwrap();
    let words =
        ["node", "init", "--dir", "a", "--name", "a", "--peer", "localhost:7210", "--clients", "localhost:7211"];
    crate::harness::theta_in(dir.path(), &[&words[..], &["--transport", "gossip"]].concat()).ok();
    let text = fs::read_to_string(dir.path().join("a/node.toml")).unwrap();
    assert!(text.contains("transport = \"gossip\""), "{text}");
}
