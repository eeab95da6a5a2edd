//! `theta group init`.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::harness::{Group, theta_in};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn writes_everything_with_the_right_modes() {
    let group = Group::made();
    let root = group.path().join("theta-group");
    let public = fs::read(root.join("group.toml")).unwrap();
    for node in 1..=4 {
        let dir = group.node_dir(node);
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(fs::read(dir.join("group.toml")).unwrap(), public);
        for secret in ["node.key", "store.key", "theta.redb"] {
            assert_eq!(mode(&dir.join(secret)), 0o600, "{secret}");
        }
        assert!(dir.join("node.toml").is_file() && dir.join("node.crt").is_file());
        assert!(!dir.join("keys").exists(), "shares are in the store alone");
        group.theta(&["policy", "check", dir.join("policy.toml").to_str().unwrap()]).ok();
    }
    for key in ["files", "files-bls", "sign", "sign-ed25519", "beacon", "coin", "coin-bls"] {
        assert_eq!(mode(&root.join(format!("client/keys/{key}.pub"))), 0o644);
    }
    for secret in ["client.key", "request.key"] {
        assert_eq!(mode(&root.join("client").join(secret)), 0o600, "{secret}");
    }
    let keys: std::collections::BTreeSet<_> =
        (1..=4).map(|node| fs::read(group.node_dir(node).join("store.key")).unwrap()).collect();
    assert_eq!(keys.len(), 4, "each store has a key of its own");
    assert!(root.join("client/client.crt").is_file() && root.join("client/group.toml").is_file());
    let shares = fs::read_dir(root.join("client/keys")).unwrap();
    assert!(shares.flatten().all(|entry| entry.path().extension().unwrap() == "pub"), "clients hold no shares");
    assert_eq!(fs::read_dir(group.path()).unwrap().count(), 1, "no temporary files stay");
}

#[test]
fn tells_that_the_dealer_saw_the_keys_and_what_to_do_next() {
    let dir = tempfile::tempdir().unwrap();
    let text = theta_in(dir.path(), &["group", "init", "--dir", "g", "--nodes", "3", "--threshold", "3"]).ok().text();
    assert!(
        text.contains("any 3 of which") && text.contains("has seen them all") && text.contains("theta node run"),
        "{text}"
    );
}

#[test]
fn says_what_the_size_of_a_group_means() {
    let dir = tempfile::tempdir().unwrap();
    let made = |k: &str, n: &str, into: &str| {
        theta_in(dir.path(), &["group", "init", "--no-keys", "--dir", into, "--nodes", n, "--threshold", k]).ok().text()
    };
    assert!(made("1", "2", "one").contains("any 1 of 2, each node has the keys whole"));
    assert!(made("2", "3", "small").contains("any 2 of 3, one machine that is away stops all change"));
    assert!(!made("2", "4", "enough").contains("note:"));
}

#[test]
fn json_names_what_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["group", "init", "--json", "--dir", "g", "--keys", "vault=sg02-bls12381,bls04-bls12381-min-sig"];
    let made = theta_in(dir.path(), &arguments).ok().json();
    assert_eq!(made["nodes"], 4);
    assert_eq!(made["threshold"], 2);
    assert_eq!(made["keys"][0]["name"], "vault");
    assert_eq!(made["keys"][1]["name"], "bls04-bls12381-min-sig");
    assert_eq!(made["client"], "g/client");
}

#[test]
fn an_existing_directory_is_left_alone() {
    let group = Group::made();
    let before = fs::read(group.path().join("theta-group/group.toml")).unwrap();
    group.theta(&["group", "init"]).fails(2, &["theta-group exists already", "--dir"]);
    assert_eq!(fs::read(group.path().join("theta-group/group.toml")).unwrap(), before);
}

#[test]
fn impossible_wishes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let init = |arguments: &[&str]| theta_in(dir.path(), &[&["group", "init"], arguments].concat());
    init(&["--threshold", "5"]).fails(2, &["--threshold 5 --nodes 4"]);
    init(&["--nodes", "0"]).fails(2, &["--nodes 0"]);
    init(&["--base-port", "65530"]).fails(2, &["--base-port 65530", "smaller"]);
    init(&["--host", "127.0.0.1,127.0.0.2"]).fails(2, &["--host", "2 addresses for 4 nodes"]);
    init(&["--keys", "a=sg02-ristretto255,a=sg02-bls12381"]).fails(2, &["two keys \"a\""]);
    init(&["--dir", "no/such/place"]).fails(1, &["no/such/place", "no such file or directory"]);
    let unknown = init(&["--keys", "sg02-ristreto255"]);
    unknown.fails(2, &["did you mean sg02-ristretto255?", "theta suites"]);
    init(&["--keys", "release"]).fails(2, &["\"release\" has no suite", "release=SUITE"]);
    init(&["--no-keys", "--keys", "sg02-ristretto255"]).fails(2, &["--no-keys"]);
    init(&["--bits", "3072"]).fails(2, &["--bits is for RSA keys"]);
    init(&["--keys", "rsa=sh00-pkcs1-sha256", "--bits", "1024"]).fails(2, &["2048, 3072 or 4096"]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}
