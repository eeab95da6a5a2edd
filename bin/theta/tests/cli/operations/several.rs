//! Several files or names in one command.

use std::fs;

use serde_json::Value;

use crate::harness::Group;

#[test]
fn files_are_signed_each_by_itself() {
    let group = Group::shared();
    let names: Vec<String> = (0..5).map(|number| group.file(&format!("many-{number}.txt"), [number; 40])).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    group.theta(&[&["sign"], &names[..]].concat()).ok();
    for name in &names {
        group.theta(&["verify", name, &format!("{name}.sig")]).ok();
    }
    // Those that were signed before, and one that is not there, fail alone.
    let more = group.file("many-more.txt", b"more");
    let run = group.theta(&["sign", names[0], &more, "many-absent.txt"]);
    run.fails(2, &["many-0.txt: ", "many-absent.txt: ", "2 of 3 failed"]);
    group.theta(&["verify", &more, "many-more.txt.sig"]).ok();
    for wrong in [["-o", "all.sig"], ["--slot", "7"]] {
        group.theta(&[&["sign", names[0], names[1]], &wrong[..]].concat()).fails(2, &["for one file"]);
    }
    group.theta(&["sign", names[0], "-"]).fails(2, &["standard input is signed by itself"]);
}

#[test]
fn files_are_decrypted_each_by_itself() {
    let group = Group::shared();
    let mut sealed = Vec::new();
    for (number, key) in (0_u8..).zip(["files", "files-bls", "files"]) {
        let name = group.file(&format!("closed-{number}.txt"), [number; 1000]);
        group.theta(&["encrypt", &name, "--key", key]).ok();
        fs::remove_file(group.path().join(&name)).unwrap();
        sealed.push(format!("{name}.theta"));
    }
    let noise = group.file("closed-noise.theta", b"noise");
    let names: Vec<&str> = sealed.iter().map(String::as_str).collect();
    let run = group.theta(&[&["decrypt", &noise], &names[..]].concat());
    run.fails(2, &["closed-noise.theta: ", "1 of 4 failed"]);
    for number in 0..3 {
        assert_eq!(group.read(&format!("closed-{number}.txt")), vec![number; 1000]);
    }
    group.theta(&["decrypt", names[0], names[1], "-o", "out"]).fails(2, &["for one file"]);
}

/// Ciphertexts for keys of another group, with which a sender would hold up all others.
#[test]
fn keys_that_nobody_knows_are_looked_for_together() {
    let (group, others) = (Group::started(), Group::made());
    let sealed: Vec<String> = (0..12)
        .map(|number| {
            let key = if number % 2 == 0 { "files" } else { "files-bls" };
            let name = others.file(&format!("strange-{number}.txt"), [number; 10]);
            others.theta(&["encrypt", &name, "--key", key]).ok();
            group.file(&format!("{name}.theta"), others.read(&format!("{name}.theta")))
        })
        .collect();
    let names: Vec<&str> = sealed.iter().map(String::as_str).collect();
    let asked = || -> u64 {
        let told = group.told(1, "/metrics");
        let lines = told.lines().filter(|line| line.starts_with("theta_api_requests_total{method=\"ListKeys\""));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    };
    let before = asked();
    group.theta(&[&["decrypt"], &names[..]].concat()).fails(2, &["that no node lists", "12 of 12 failed"]);
    let lists = asked() - before;
    assert!((1..=2).contains(&lists), "{lists} lists for 12 files");
}

#[test]
fn coins_have_a_line_each() {
    let group = Group::shared();
    let run = group.theta(&["coin", "seat 1", "seat 2", "seat 1"]).ok();
    let text = String::from_utf8(run.stdout).unwrap();
    let lines: Vec<(&str, &str)> = text.lines().map(|line| line.split_once("  ").unwrap()).collect();
    assert_eq!(lines.iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["seat 1", "seat 2", "seat 1"]);
    assert_eq!(lines[0].0, lines[2].0);
    let alone = group.theta(&["coin", "seat 2"]).ok();
    assert_eq!(String::from_utf8(alone.stdout).unwrap().trim(), lines[1].0);
    let run = group.theta(&["coin", "seat 1", "seat 2", "--json"]).ok();
    for line in String::from_utf8(run.stdout).unwrap().lines() {
        let coin: Value = serde_json::from_str(line).unwrap();
        let (name, value, proof) =
            (coin["name"].as_str().unwrap(), coin["value"].as_str().unwrap(), coin["proof"].as_str().unwrap());
        group.theta(&["verify-coin", name, value, "--proof", proof]).ok();
    }
    group.theta(&["coin", "seat 1", "seat 2", "--proof", "all.proof"]).fails(2, &["for one coin"]);
}
