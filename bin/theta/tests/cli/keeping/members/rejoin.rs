//! A machine that lost everything comes back by one command.

use std::fs;

use super::{dir, fingerprint, signs, starts, until_ok};
use crate::harness::Group;
use crate::keeping::lifecycle::ann_may_approve_recoveries;

/// What is left of node 2: its card, which is public. Its machine is gone.
fn losing_the_second(options: &[&str], key: &str, holders: &str) -> Group {
    let mut group = Group::made_with(&[&["--no-keys"], options].concat());
    group.start_all();
    signs(&group, key, holders);
    group.kill(2);
    fs::copy(group.node_dir(2).join("node.card"), group.path().join("two.card")).unwrap();
    fs::copy(group.node_dir(2).join("policy.toml"), group.path().join("policy.toml")).unwrap();
    fs::remove_dir_all(group.node_dir(2)).unwrap();
    group
}

#[test]
fn one_command_brings_a_lost_machine_back() {
    let mut group = losing_the_second(&[], "before", "1,2,3");
    let (print, key) = (fingerprint(&group), "theta-group/operators/node-2.operator");
    let rejoin = |print: &str, more: &[&str]| {
        let fixed = ["node", "rejoin", "--dir", &dir(2), "--replaces", "two.card", "--operator", key, "--json"];
        group.theta(&[&fixed[..], &["--fingerprint", print], more].concat())
    };
    let other = print.replace(&print[..4], if print.starts_with('0') { "1111" } else { "0000" });
    rejoin(&other, &["--first-use", "--yes"]).fails(1, &["another fingerprint", "nothing was made"]);
    assert!(!group.node_dir(2).exists());
    // Ended in the middle, it goes on with the machine that it has made.
    rejoin(&print, &["--first-use"]).fails(2, &["add --yes"]);
    let made = fs::read(group.node_dir(2).join("node.card")).unwrap();
    rejoin(&print, &["--yes"]).fails(2, &["--first-use"]);
    let back = rejoin(&print, &["--first-use", "--yes"]).ok().json();
    assert_eq!((&back["node"], &back["to_recover"]), (&2.into(), &serde_json::json!(["before"])));
    assert_eq!(fs::read(group.node_dir(2).join("node.card")).unwrap(), made);
    rejoin(&print, &["--yes"]).fails(2, &["exists already"]);
    fs::copy(group.path().join("policy.toml"), group.node_dir(2).join("policy.toml")).unwrap();
    starts(&mut group, 2);
    signs(&group, "after", "1,2");
}

#[test]
fn where_all_decide_it_says_what_is_to_be_done_before_anything_is_made() {
    let group = losing_the_second(&["--nodes", "3", "--threshold", "2"], "before", "1,2");
    let (print, key) = (fingerprint(&group), "theta-group/operators/node-2.operator");
    let rejoin =
        ["node", "rejoin", "--dir", &dir(2), "--replaces", "two.card", "--operator", key, "--fingerprint", &print];
    group
        .theta(&[&rejoin[..], &["--first-use", "--yes"]].concat())
        .fails(1, &["all 3 members", "theta group warrant new 2="]);
    assert!(!group.node_dir(2).exists());
}

/// Of the machines that the founding names none is left. A client that was made of the ledger finds those that came after, with one file.
#[test]
fn a_client_of_the_ledger_reaches_a_group_of_which_every_machine_was_replaced() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    signs(&group, "before", "1,2,3");
    let print = fingerprint(&group);
    for node in 1..=4 {
        group.kill(node);
        let (name, key) = (format!("gone-{node}"), format!("theta-group/operators/node-{node}.operator"));
        fs::rename(group.node_dir(node), group.path().join(&name)).unwrap();
        let dir = dir(node);
        let rejoin = ["node", "rejoin", "--dir", &dir, "--replaces", &name, "--operator", &key, "--first-use", "--yes"];
        group.theta(&[&rejoin[..], &["--fingerprint", &print]].concat()).ok();
        fs::copy(group.path().join(&name).join("policy.toml"), group.node_dir(node).join("policy.toml")).unwrap();
        starts(&mut group, node);
    }
    signs(&group, "after", "1,2,3");
    group.theta(&["ledger", "export", "-o", "g.ledger"]).ok();
    let new = ["client", "new", "--name", "eve", "--group", "g.ledger", "--fingerprint", &print, "--json"];
    let made = group.theta(&new).ok().json();
    let rule = "[[rule]]\nname = \"eve-signs\"\neffect = \"allow\"\nclients = [\"eve\"]\nkeys = [\"*\"]\noperations = [\"sign\", \"keys.list\"]\n";
    for node in 1..=4 {
        group.append(node, "policy.toml", &format!("\n{}\n{rule}", made["policy"].as_str().unwrap()));
    }
    until_ok(&group, &["sign", "m", "--key", "after", "--client", "eve.client", "-o", "eve.sig"]);
    group.theta(&["verify", "m", "eve.sig", "--key", "after"]).ok();
}

/// One approval in one file for all shares, and one command that brings them back.
#[test]
fn one_command_brings_all_shares_back() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    for key in ["a=frost-ed25519", "b=sg02-ristretto255"] {
        group.theta(&["keys", "create", key, "--holders", "1,2,3", "--threshold", "2"]).ok();
    }
    group.theta(&["keys", "create", "elsewhere=frost-ed25519", "--holders", "1,3,4", "--threshold", "2"]).ok();
    ann_may_approve_recoveries(&group);
    group.kill(2);
    let lost = group.path().join("lost");
    fs::rename(group.node_dir(2), &lost).unwrap();
    let (print, key) = (fingerprint(&group), "theta-group/operators/node-2.operator");
    let rejoin = ["node", "rejoin", "--dir", &dir(2), "--replaces", "lost", "--operator", key, "--first-use", "--yes"];
    let back = group.theta(&[&rejoin[..], &["--fingerprint", &print]].concat()).ok().text();
    assert!(back.contains("theta keys recover --all --node 2     brings back its shares of a, b"), "{back}");
    let recover = |more: &[&str]| {
        group.theta(&[&["keys", "recover", "--all", "--node", "2", "--json", "--patience", "30s"], more].concat())
    };
    recover(&[]).fails(3, &["does not answer"]);
    fs::copy(lost.join("policy.toml"), group.node_dir(2).join("policy.toml")).unwrap();
    let mut group = group;
    starts(&mut group, 2);
    let recover = |more: &[&str]| {
        group.theta(&[&["keys", "recover", "--all", "--node", "2", "--json", "--patience", "30s"], more].concat())
    };
    // The doctor names the version that has no share, and not the one that the name means.
    let sick = group.theta(&["doctor"]).text();
    assert!(sick.contains("theta keys recover a@1 --node 2, or --all"), "{sick}");
    let said = ["2 of 2 shares of node 2 are still missing: a@1, b@1", "--operation keys.recover --all --node 2"];
    recover(&[]).fails(1, &said);
    // An approval of one of them brings that one, and the other's failure is in the exit code.
    let approve = ["approve", "--as", "ann.key", "--operation", "keys.recover", "--node", "2", "--yes"];
    group.theta(&[&approve[..], &["--key", "b@1", "-o", "one.approval"]].concat()).ok();
    let half = recover(&["--approval", "one.approval"]).fails(1, &["1 of 2 shares of node 2", "a@1"]).json();
    let told = |place: usize| (half[place]["key"].as_str().unwrap(), half[place]["recovered"].as_bool().unwrap());
    assert_eq!((told(0), told(1)), (("a@1", false), ("b@1", true)), "{half}");
    let approved = group.theta(&[&approve[..], &["--all", "-o", "all.approval", "--json"]].concat()).ok();
    assert!(approved.stderr.contains("share of a@1") && approved.stderr.contains("share of b@1"), "{approved:?}");
    assert!(!approved.stderr.contains("elsewhere"), "{approved:?}");
    let rest = recover(&["--approval", "all.approval"]).ok().json();
    assert_eq!((rest.as_array().unwrap().len(), &rest[0]["key"]), (1, &"a@1".into()));
    assert_eq!(recover(&[]).ok().json(), serde_json::json!([]));
    // The share counts: of the holders the first two are left.
    group.kill(3);
    group.file("m", "a message");
    group.theta(&["sign", "m", "--key", "a"]).ok();
    group.theta(&["keys", "recover", "a", "--all", "--node", "2"]).fails(2, &["--all"]);
    group.theta(&["keys", "recover", "--node", "2"]).fails(2, &["<KEY>"]);
}
