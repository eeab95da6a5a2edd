//! A machine that lost everything comes back by one command.

use std::fs;

use super::{dir, fingerprint, signs, starts};
use crate::harness::Group;

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
