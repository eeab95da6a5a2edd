//! Mistakes of people: each gives one line that says what, where, and what would be right, and the exit code.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, path::Path};

use crate::harness::{Group, theta_in};

/// `theta node run` refuses a wrong directory.
fn node_refuses(group: &Group, node: u16, code: i32, words: &[&str]) {
    let dir = group.node_dir(node);
    theta_in(group.path(), &["node", "run", "--dir", dir.to_str().unwrap()]).fails(code, words);
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "no {from:?} in {text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn mistyped_arguments_are_answered_with_the_right_ones() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, suggestion) in [
        (&["encypt", "x"][..], "'encrypt'"),
        (&["group", "init", "--treshold", "2"], "'--threshold'"),
        (&["encrypt", "x", "--labl", "y"], "'--label'"),
        (&["keys", "lst"], "'list'"),
        (&["node", "run", "--confg", "x"], "'--config'"),
    ] {
        let run = theta_in(dir.path(), arguments).fails(2, &[suggestion]);
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
    for arguments in
        [&["node", "run"][..], &["decrypt"], &["sign", "x", "--timeout", "soon"], &["encrypt", "x", "--aead", "rot13"]]
    {
        let run = theta_in(dir.path(), arguments).fails(2, &[]);
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    }
}

#[test]
fn help_teaches() {
    let dir = tempfile::tempdir().unwrap();
    let help = theta_in(dir.path(), &["--help"]).ok().text();
    assert!(help.contains("Examples:") && help.contains("Exit codes:") && !help.contains('\u{1b}'), "{help}");
    for command in ["encrypt", "decrypt", "decapsulate", "sign", "verify", "coin", "verify-coin", "status"] {
        let help = theta_in(dir.path(), &[command, "--help"]).ok().text();
        assert!(help.contains("Examples:"), "{help}");
    }
    let version = theta_in(dir.path(), &["--version"]).ok().text();
    assert!(version.starts_with("theta "), "{version}");
}

#[test]
fn what_is_missing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x"), "x").unwrap();
    let theta = |arguments: &[&str]| theta_in(dir.path(), arguments);
    theta(&["sign", "x"]).fails(2, &["theta-group/client", "--client"]);
    theta(&["status", "--client", "nowhere"]).fails(2, &["nowhere is not a client directory", "theta group init"]);
    theta(&["encrypt", "x", "--public-key", "no.pub"]).fails(2, &["cannot read no.pub", "no such file"]);
    theta(&["node", "run", "--dir", "nowhere"]).fails(2, &["cannot read nowhere/node.toml"]);
    theta(&["decrypt", "no.theta"]).fails(2, &["cannot read no.theta"]);
    theta(&["keys", "list"]).fails(2, &["theta-group/client", "THETA_CLIENT"]);
    theta(&["decrypt", "."]).fails(2, &["is a directory"]);
}

#[test]
fn keys_are_for_one_purpose_and_unknown_ones_list_the_known() {
    let group = Group::shared();
    let name = group.file("purpose.txt", "x");
    group.theta(&["encrypt", &name, "--key", "sign"]).fails(2, &["sign", "is for sign, not for decrypt"]);
    group.theta(&["sign", &name, "--key", "files"]).fails(2, &["is for decrypt, not for sign"]);
    group.theta(&["coin", "x", "--key", "beacon"]).fails(2, &["is for sign, not for coin"]);
    for arguments in [["encrypt", &name, "--key", "fils"], ["sign", &name, "--key", "fils"]] {
        group.theta(&arguments).fails(2, &["no key named \"fils\"", "beacon, coin, coin-bls, files, files-bls, sign"]);
    }
    let key = group.theta(&["keys", "show", "sign", "--file"]).ok().stdout;
    group.file("sign.pub", key);
    group.theta(&["encrypt", &name, "--public-key", "sign.pub"]).fails(2, &["is for sign, not for decrypt"]);
}

#[test]
fn changed_ciphertexts_are_refused_wherever_they_were_changed() {
    let group = Group::shared();
    let name = group.file("tamper.txt", "a text that somebody tampers with");
    let report = group.theta(&["encrypt", &name, "--label", "the label", "--json"]).ok().json();
    let header = usize::try_from(report["header_bytes"].as_u64().unwrap()).unwrap();
    let good = group.read("tamper.txt.theta");
    let label = good.windows(9).position(|window| window == b"the label").unwrap();
    // The place of the change, the exit code, and a word of the message.
    let cases = [
        ("the magic", 0, 2, "not a ciphertext header"),
        ("the version", 5, 2, "format"),
        ("the key id", 20, 2, "not in the client directory"),
        ("the label", label, 1, "not valid"),
        ("the end of the header", header - 1, 1, "not valid"),
        ("the payload", header, 1, "not authentic"),
        ("the end of the payload", good.len() - 1, 1, "not authentic"),
    ];
    for (what, position, code, word) in cases {
        let mut bad = good.clone();
        bad[position] ^= 1;
        group.file("bad.theta", bad);
        let run = group.theta(&["decrypt", "bad.theta", "-o", "bad.out"]);
        assert_eq!(run.code, code, "{what}: {run:?}");
        run.fails(code, &[word]);
        assert!(!group.path().join("bad.out").exists(), "{what}");
    }
    for length in [0, 3, 10, header - 1, header, good.len() - 1] {
        group.file("short.theta", &good[..length]);
        let run = group.theta(&["decrypt", "short.theta", "-o", "bad.out"]);
        run.fails(if length < header { 2 } else { 1 }, &["short.theta"]);
    }
    let mut long = good;
    long.push(0);
    group.file("long.theta", long);
    group.theta(&["decrypt", "long.theta", "-o", "bad.out"]).fails(1, &["after the end"]);
    let leftovers = fs::read_dir(group.path()).unwrap().flatten();
    let leftovers = leftovers.filter(|entry| entry.file_name().to_string_lossy().starts_with(".theta-"));
    assert_eq!(leftovers.count(), 0);
}

#[test]
fn devices_are_written_and_not_replaced() {
    let group = Group::shared();
    let name = group.file("device.txt", "x");
    group.theta(&["encrypt", &name]).ok();
    let fifo = group.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let commands: [&[&str]; 4] = [
        &["encrypt", &name, "-o", "pipe"],
        &["decrypt", "device.txt.theta", "-o", "pipe"],
        &["sign", &name, "-o", "pipe"],
        &["decapsulate", "device.txt.theta", "-o", "pipe"],
    ];
    for command in commands {
        let path = fifo.clone();
        let reader = std::thread::spawn(move || fs::read(path).unwrap());
        group.theta(command).ok();
        assert!(!reader.join().unwrap().is_empty(), "{command:?}");
        assert!(!fs::metadata(&fifo).unwrap().is_file(), "{command:?}");
    }
    group.theta(&["encrypt", &name, "-o", "nowhere/x"]).fails(1, &["cannot write nowhere/x: no such file"]);
    group.theta(&["encrypt", &name, "-o", "."]).fails(2, &[". is a directory"]);
    group.theta(&["decrypt", "device.txt.theta", "-o", "x", "--key", "files-bls"]).fails(2, &["leave out --key"]);
}

#[test]
fn nonsense_is_never_a_signature_or_a_coin() {
    let group = Group::shared();
    let name = group.file("nonsense.txt", "x");
    for junk in [&b""[..], b"junk", &[0; 96], &[0xff; 96]] {
        group.file("junk.sig", junk);
        group.theta(&["verify", &name, "junk.sig"]).fails(1, &["junk.sig is not a signature"]);
        group.theta(&["verify-coin", "x", &"00".repeat(32), "--proof", "junk.sig"]).fails(1, &["not the coin"]);
    }
    group.theta(&["verify-coin", "x", "xyz", "--proof", "junk.sig"]).fails(2, &["hexadecimal"]);
    group.theta(&["decrypt", "nonsense.txt", "--payload-key", "junk.sig"]).fails(2, &["nonsense.txt", "header"]);
}

#[test]
fn damaged_public_keys_are_refused() {
    let group = Group::made();
    let client = group.path().join("theta-group/client/keys");
    let name = group.file("x.txt", "x");
    fs::write(client.join("files.pub"), "not a key").unwrap();
    group.theta(&["encrypt", &name]).fails(2, &["files.pub"]);
    fs::rename(client.join("coin.pub"), client.join("files.pub")).unwrap();
    group.theta(&["encrypt", &name, "--key", "files"]).fails(2, &["files.pub holds the key coin", "rename"]);
    fs::rename(client.join("files.pub"), client.join("coin.pub")).unwrap();
    // Another public key with the old verification keys, as somebody would who wants to read what others encrypt.
    let text = fs::read_to_string(client.join("files-bls.pub")).unwrap();
    let line = text.lines().find(|line| line.starts_with("public_key")).unwrap();
    let other = fs::read_to_string(client.join("coin-bls.pub")).unwrap();
    let other = other.lines().find(|line| line.starts_with("public_key")).unwrap();
    fs::write(client.join("files-bls.pub"), text.replace(line, other)).unwrap();
    group.theta(&["encrypt", &name, "--key", "files-bls"]).fails(2, &["files-bls.pub"]);
}

#[test]
fn a_node_refuses_configuration_that_is_not_right() {
    let group = Group::made();
    let config = |node| group.node_dir(node).join("node.toml");

    replace(&config(1), "id = 1", "idd = 1");
    node_refuses(&group, 1, 2, &["node.toml:", "idd", "did you mean `id`"]);
    replace(&config(1), "idd = 1", "id = 9");
    node_refuses(&group, 1, 2, &["nodes 1 to 4, not 9"]);
    replace(&config(1), "id = 9", "id = 2");
    node_refuses(&group, 1, 2, &["node.crt", "node 1", "id = 1"]);

    fs::copy(group.node_dir(3).join("node.key"), group.node_dir(2).join("node.key")).unwrap();
    node_refuses(&group, 2, 2, &["node.key", "is not the private key of"]);

    replace(&group.node_dir(3).join("group.toml"), "threshold = 2", "threshold = 5");
    node_refuses(&group, 3, 2, &["group.toml"]);

    let dir = group.node_dir(4);
    let dir = dir.to_str().unwrap();
    for level in ["a=b=c", "wran"] {
        theta_in(group.path(), &["node", "run", "--dir", dir, "--log-level", level]).fails(2, &["log level", level]);
    }
    fs::remove_file(group.node_dir(4).join("theta.redb")).unwrap();
    node_refuses(&group, 4, 2, &["theta.redb", "no store here"]);
}

#[test]
fn a_node_refuses_a_certificate_of_another_group() {
    let (group, other) = (Group::made(), Group::made());
    for file in ["node.crt", "node.key"] {
        fs::copy(other.node_dir(1).join(file), group.node_dir(1).join(file)).unwrap();
    }
    node_refuses(&group, 1, 2, &["node.crt", "not in the group"]);
    // The group's nodes refuse a client of another group.
    for file in ["client.crt", "client.key"] {
        let from = other.path().join("theta-group/client").join(file);
        fs::copy(from, group.path().join("theta-group/client").join(file)).unwrap();
    }
    group.theta(&["status"]).fails(3, &["only 0 of 4 nodes are up"]);
}

#[test]
fn a_node_refuses_secrets_that_others_can_read() {
    let group = Group::made();
    for (node, file) in [(1, "node.key"), (2, "store.key"), (3, "theta.redb")] {
        let path = group.node_dir(node).join(file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        node_refuses(&group, node, 2, &[file, "chmod 600"]);
    }
}

#[test]
fn a_node_refuses_a_store_that_is_not_its_own() {
    let group = Group::made();
    for file in ["theta.redb", "store.key"] {
        fs::copy(group.node_dir(4).join(file), group.node_dir(3).join(file)).unwrap();
    }
    node_refuses(&group, 3, 2, &["node"]);
    fs::copy(group.node_dir(2).join("theta.redb"), group.node_dir(1).join("theta.redb")).unwrap();
    node_refuses(&group, 1, 2, &["theta.redb", "does not open"]);
    fs::write(group.node_dir(2).join("theta.redb"), "not a store").unwrap();
    node_refuses(&group, 2, 2, &["theta.redb"]);
}

#[test]
fn a_node_refuses_ports_in_use() {
    let group = Group::made();
    let config = fs::read_to_string(group.node_dir(1).join("node.toml")).unwrap();
    for setting in ["peer", "api", "metrics"] {
        let line = config.lines().find(|line| line.starts_with(&format!("{setting} = "))).unwrap();
        let address = line.split('"').nth(1).unwrap();
        let _held = TcpListener::bind(address).unwrap();
        node_refuses(&group, 1, 1, &[address, "in use"]);
    }
}
