//! What opens a node's store, and what does not.

use std::fs;

use crate::harness::{Group, command, theta_in};

#[test]
fn a_store_opens_with_its_passphrase_alone() {
    let dir = tempfile::tempdir().unwrap();
    let init = |more: &[&str]| {
        let fixed = ["group", "init", "--nodes", "2", "--threshold", "1", "--keys", "sign=frost-ed25519"];
        theta_in(dir.path(), &[&fixed[..], more].concat())
    };
    fs::write(dir.path().join("passphrase"), "correct horse battery staple\n").unwrap();
    init(&["--dir", "x", "--seal", "passphrase-file:none"]).fails(2, &["cannot read none"]);
    init(&["--dir", "x", "--seal", "hsm:1"]).fails(2, &["hsm:1", "file:PATH"]);
    private(dir.path(), "passphrase");
    init(&["--seal", "passphrase-file:passphrase"]).ok();
    let node = dir.path().join("theta-group/node-1");
    assert!(!node.join("store.key").exists());
    let show = || theta_in(dir.path(), &["audit", "verify", "--dir", "theta-group/node-1"]);
    show().ok();
    fs::write(dir.path().join("passphrase"), "another horse\n").unwrap();
    show().fails(2, &["theta.redb", "does not open"]);
    theta_in(dir.path(), &["node", "run", "--dir", "theta-group/node-1"]).fails(2, &["theta.redb", "does not open"]);
}

#[test]
fn a_passphrase_may_come_from_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let run = |passphrase: Option<&str>, arguments: &[&str]| {
        let mut command = command();
        command.args(arguments).current_dir(dir.path());
        if let Some(passphrase) = passphrase {
            command.env("THETA_TEST_SEAL", passphrase);
        }
        crate::harness::Run::from(command.output().unwrap())
    };
    let init = ["group", "init", "--nodes", "1", "--threshold", "1", "--keys", "coin=cks05-ristretto255", "--seal"];
    let init = [&init[..], &["env:THETA_TEST_SEAL"]].concat();
    run(None, &init).fails(2, &["THETA_TEST_SEAL", "not set"]);
    for weak in ["short", "aaaaaaaaaaaaaaaa"] {
        run(Some(weak), &init).fails(2, &["too easy to guess", "12 characters"]);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left of what was refused");
    run(Some("a horse of five words"), &init).ok();
    let verify = ["audit", "verify", "--dir", "theta-group/node-1"];
    run(Some("a horse of five words"), &verify).ok();
    let backup = ["keys", "backup", "--dir", "theta-group/node-1", "-o", "backup", "--seal", "env:THETA_TEST_SEAL"];
    run(Some("mule"), &backup).fails(2, &["too easy to guess"]);
    run(Some("mule"), &verify).fails(2, &["does not open"]);
    run(None, &verify).fails(2, &["THETA_TEST_SEAL"]);
}

/// After it the old key opens nothing, and the lines that it prints make the node start again.
#[test]
fn a_store_gets_another_passphrase() {
    let mut group = Group::made_with(&["--keys", "sign=frost-ed25519"]);
    let reseal = |to: &str| group.theta(&["keys", "reseal", "--dir", "theta-group/node-1", "--to", to]);
    fs::write(group.path().join("passphrase"), "short\n").unwrap();
    private(group.path(), "passphrase");
    reseal("passphrase-file:passphrase").fails(2, &["too easy to guess"]);
    let verify = ["audit", "verify", "--dir", "theta-group/node-1"];
    group.theta(&verify).ok();
    fs::write(group.path().join("passphrase"), "correct horse battery staple\n").unwrap();
    let told = reseal("passphrase-file:passphrase").ok();
    let lines = told.stderr.split_once("[store.sealing]\n").unwrap().1.lines().next().unwrap().to_owned();
    group.theta(&verify).fails(2, &["theta.redb", "sealed by a passphrase"]);
    let config = group.node_dir(1).join("node.toml");
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.contains("\nfile = \"store.key\"\n"), "{text}");
    fs::write(&config, text.replace("file = \"store.key\"", &lines)).unwrap();
    fs::remove_file(group.node_dir(1).join("store.key")).unwrap();
    let log = group.theta(&["audit", "show", "--dir", "theta-group/node-1", "--json"]).ok().text();
    assert!(log.contains("store.reseal"), "{log}");
    group.start_all();
    group.file("message", "signed with what the passphrase opens");
    group.theta(&["sign", "message"]).ok();
    // While it runs its store is its own.
    group
        .theta(&["keys", "reseal", "--dir", "theta-group/node-1", "--to", "file:other.key"])
        .fails(2, &["stop the node first"]);
}

fn private(dir: &std::path::Path, file: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir.join(file), fs::Permissions::from_mode(0o600)).unwrap();
}
