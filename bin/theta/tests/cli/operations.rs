//! The operations of a healthy group.

mod readme;
mod several;
mod traces;

use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::harness::{Group, theta_in, theta_with_stdin};

const TEXT: &[u8] = b"What is known to one is not known to none.\n";

#[test]
fn a_file_is_encrypted_and_decrypted() {
    let group = Group::shared();
    let name = group.file("letter.txt", TEXT);
    group.theta(&["encrypt", &name, "--label", "for the archive"]).ok();
    let sealed = group.read("letter.txt.theta");
    assert!(!sealed.windows(10).any(|window| window == &TEXT[..10]));
    group.theta(&["decrypt", "letter.txt.theta", "-o", "letter.out"]).ok();
    assert_eq!(group.read("letter.out"), TEXT);
    let again = group.theta(&["decrypt", "letter.txt.theta"]);
    again.fails(2, &["letter.txt exists already", "-o"]);
}

#[test]
fn every_cipher_suite_and_aead_round_trips_through_pipes() {
    let group = Group::shared();
    for key in ["files", "files-bls"] {
        for aead in ["chacha20-poly1305", "aes-256-gcm"] {
            let sealed = theta_with_stdin(group.path(), &["encrypt", "-", "--key", key, "--aead", aead], TEXT).ok();
            let opened = theta_with_stdin(group.path(), &["decrypt", "-"], &sealed.stdout).ok();
            assert_eq!(opened.stdout, TEXT, "{key} {aead}");
        }
    }
}

#[test]
fn an_empty_file_round_trips() {
    let group = Group::shared();
    let sealed = theta_with_stdin(group.path(), &["encrypt", "-"], b"").ok();
    assert_eq!(theta_with_stdin(group.path(), &["decrypt", "-"], &sealed.stdout).ok().stdout, b"");
}

#[test]
fn an_interrupted_encryption_ends_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(Group::shared().path().join("theta-group/client/keys/files.pub"), dir.path().join("files.pub")).unwrap();
    let mut child = crate::harness::command()
        .args(["encrypt", "-", "-o", "out", "--public-key", "files.pub"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let files = || fs::read_dir(dir.path()).unwrap().count();
    let deadline = Instant::now() + Duration::from_secs(60);
    while files() == 1 {
        assert!(Instant::now() < deadline, "it does not begin");
        thread::sleep(Duration::from_millis(10));
    }
    // Waiting would close standard input, which this test must keep open.
    let stdin = child.stdin.take();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(files(), 1, "only the public key");
    drop(stdin);
}

#[test]
fn thirty_megabytes_round_trip() {
    let group = Group::shared();
    let contents: Vec<u8> =
        (0..30_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect();
    group.file("large", &contents);
    let report = group.theta(&["encrypt", "large", "--json"]).ok().json();
    assert_eq!(report["bytes"], 30_000_000);
    let report = group.theta(&["decrypt", "large.theta", "-o", "large.out", "--json"]).ok().json();
    assert_eq!(report["bytes"], 30_000_000);
    assert!(group.read("large.out") == contents);
}

#[test]
fn the_payload_key_comes_from_the_header_alone() {
    let group = Group::shared();
    group.file("d.txt", TEXT);
    let report = group.theta(&["encrypt", "d.txt", "--json"]).ok().json();
    let header_bytes = usize::try_from(report["header_bytes"].as_u64().unwrap()).unwrap();
    let sealed = group.read("d.txt.theta");
    group.file("d.header", &sealed[..header_bytes]);

    let whole = group.theta(&["decapsulate", "d.txt.theta", "--json"]).ok().json();
    let header = group.theta(&["decapsulate", "d.header", "--header-only", "--json"]).ok().json();
    assert_eq!(whole["payload_key"], header["payload_key"]);
    assert_eq!(whole["payload_key"].as_str().unwrap().len(), 64);
    assert_eq!(whole["contributors"].as_array().unwrap().len(), 2);
    group.theta(&["decapsulate", "d.txt.theta", "--header-only"]).fails(2, &["after its header"]);

    group.theta(&["decapsulate", "d.txt.theta", "-o", "d.key"]).ok();
    assert_eq!(hex::encode(group.read("d.key")), whole["payload_key"].as_str().unwrap());
    // With the payload key no node is needed.
    let elsewhere = tempfile::tempdir().unwrap();
    for name in ["d.txt.theta", "d.key"] {
        fs::copy(group.path().join(name), elsewhere.path().join(name)).unwrap();
    }
    let opened = theta_in(elsewhere.path(), &["decrypt", "d.txt.theta", "--payload-key", "d.key", "-o", "-"]).ok();
    assert_eq!(opened.stdout, TEXT);
}

#[test]
fn encryption_needs_only_the_public_key() {
    let group = Group::shared();
    let public = group.theta(&["keys", "show", "files", "--file"]).ok().stdout;
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("files.pub"), public).unwrap();
    let sealed = theta_with_stdin(elsewhere.path(), &["encrypt", "-", "--public-key", "files.pub"], TEXT).ok();
    assert_eq!(theta_with_stdin(group.path(), &["decrypt", "-"], &sealed.stdout).ok().stdout, TEXT);
}

#[test]
fn signatures_of_both_forms_verify_and_others_do_not() {
    let group = Group::shared();
    group.file("contract.txt", TEXT);
    for (key, length) in [("sign", 96), ("beacon", 48)] {
        let signature = format!("contract.{key}.sig");
        group.theta(&["sign", "contract.txt", "--key", key, "-o", &signature]).ok();
        assert_eq!(group.read(&signature).len(), length);
        group.theta(&["verify", "contract.txt", &signature, "--key", key]).ok();
        let report = group.theta(&["verify", "contract.txt", &signature, "--key", key, "--json"]).ok().json();
        assert_eq!(report["valid"], true);

        group.file("contract.hex", hex::encode(group.read(&signature)) + "\n");
        group.theta(&["verify", "contract.txt", "contract.hex", "--key", key]).ok();
        group.file("forged.txt", b"Another text.");
        group.theta(&["verify", "forged.txt", &signature, "--key", key]).fails(1, &["forged.txt"]);
        let report = group.theta(&["verify", "forged.txt", &signature, "--key", key, "--json"]);
        assert_eq!((report.code, &report.json()["valid"]), (1, &serde_json::Value::Bool(false)));
    }
    group.theta(&["verify", "contract.txt", "contract.beacon.sig", "--key", "sign"]).fails(1, &["contract.beacon.sig"]);
    let piped = theta_with_stdin(group.path(), &["sign", "-"], TEXT).ok().stdout;
    assert_eq!(piped, group.read("contract.sign.sig"), "BLS signatures are unique");
}

#[test]
fn a_re_randomised_signature_verifies_under_its_own_key_alone() {
    let group = Group::shared();
    group.file("private.txt", TEXT);
    let key = ["--key", "sign-ed25519"];
    let sign = |more: &[&str]| group.theta(&[&["sign", "private.txt", "-o", "private.sig"], &key[..], more].concat());
    let verify = |more: &[&str]| group.theta(&[&["verify", "private.txt", "private.sig"], &key[..], more].concat());

    let randomizer = "5a".repeat(32);
    let mut keys = Vec::new();
    for options in [&["--randomize", "--json"][..], &["--randomizer", &randomizer, "--json"]] {
        let report = sign(options).ok().json();
        let randomized = report["randomized_key"].as_str().unwrap().to_owned();
        verify(&["--randomized-key", &randomized]).ok();
        verify(&[]).fails(1, &["private.sig is not a signature", "by the key sign-ed25519"]);
        group.file("other.txt", b"Another text.");
        let forged = [&["verify", "other.txt", "private.sig", "--randomized-key", &randomized], &key[..]].concat();
        group.theta(&forged).fails(1, &["other.txt", &randomized]);
        // Other software sees an ordinary Ed25519 signature.
        let bytes: [u8; 32] = hex::decode(&randomized).unwrap().try_into().unwrap();
        let signature: [u8; 64] = group.read("private.sig").try_into().unwrap();
        let verifier = ed25519_dalek::VerifyingKey::from_bytes(&bytes).unwrap();
        verifier.verify_strict(TEXT, &signature.into()).unwrap();
        keys.push(randomized);
    }
    assert_ne!(keys[0], keys[1]);
    verify(&["--randomized-key", &keys[0]]).fails(1, &["private.sig is not a signature"]);
    let people = sign(&["--randomize"]).ok();
    assert!(people.stderr.contains("randomized key  "), "{}", people.stderr);

    sign(&["--randomizer", "abc"]).fails(2, &["--randomizer takes hexadecimal digits"]);
    sign(&["--randomizer", "ab"]).fails(2, &["32 to 64 random bytes", "has 1"]);
    verify(&["--randomized-key", "xy"]).fails(2, &["--randomized-key takes hexadecimal digits"]);
    for command in [
        &["sign", "private.txt", "--key", "beacon", "--randomize"][..],
        &["verify", "private.txt", "private.sig", "--key", "beacon", "--randomized-key", "00"],
    ] {
        group.theta(command).fails(2, &["bls04-bls12381-min-sig", "no re-randomised signatures"]);
    }
}

#[test]
fn a_coin_is_the_same_for_all_and_proves_itself() {
    let group = Group::shared();
    for key in ["coin", "coin-bls"] {
        let coin = group.theta(&["coin", "round 1", "--key", key, "--json"]).ok().json();
        let (value, proof) = (coin["value"].as_str().unwrap(), coin["proof"].as_str().unwrap());
        assert_eq!(value.len(), 64);
        let again = group.theta(&["coin", "round 1", "--key", key]).ok().text();
        assert_eq!(again.trim(), value);
        let other = group.theta(&["coin", "round 2", "--key", key]).ok().text();
        assert_ne!(other.trim(), value);
        group.file("proof", proof);
        group.theta(&["verify-coin", "round 1", value, "--proof", "proof", "--key", key]).ok();
        group.theta(&["verify-coin", "round 2", value, "--proof", "proof", "--key", key]).fails(1, &["round 2"]);
        group.theta(&["verify-coin", "round 1", other.trim(), "--proof", "proof", "--key", key]).fails(1, &["round 1"]);
    }
}

#[test]
fn keys_are_listed_and_shown() {
    let group = Group::shared();
    let list = group.theta(&["keys", "list", "--json"]).ok().json();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["beacon", "coin", "coin-bls", "files", "files-bls", "sign", "sign-ed25519"]);
    let text = group.theta(&["keys", "list"]).ok().text();
    assert!(text.contains("sg02-ristretto255") && text.contains("2 of 4") && !text.contains('\u{1b}'), "{text}");
    let key = group.theta(&["keys", "show", "sign", "--json"]).ok().json();
    assert_eq!(key["suite"], "bls04-bls12381-min-pk");
    assert_eq!(key["public_key"].as_str().unwrap().len(), 96);
    group.theta(&["keys", "show", "sing"]).fails(2, &["no key named \"sing\"", "sign"]);
}

#[test]
fn status_shows_all_nodes() {
    let group = Group::shared();
    let status = group.theta(&["status", "--json"]).ok().json();
    let nodes = status["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 4);
    assert!(nodes.iter().all(|node| node["up"] == true), "{status}");
    let text = group.theta(&["status"]).ok().text();
    assert!(text.contains("4 of 4 nodes are up"), "{text}");
}

#[test]
fn the_client_directory_comes_from_the_environment_too() {
    let group = Group::shared();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = crate::harness::command();
    let client = group.path().join("theta-group/client");
    let output = command.args(["status", "--json"]).env("THETA_CLIENT", client).current_dir(elsewhere.path()).output();
    assert_eq!(output.unwrap().status.code(), Some(0));
}

#[test]
fn rounds_of_drand_are_checked_with_drands_own_key() {
    let dir = tempfile::tempdir().unwrap();
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/drand/quicknet.json");
    let chain: serde_json::Value = serde_json::from_slice(&fs::read(vectors).unwrap()).unwrap();
    let beacons = chain["beacons"].as_array().unwrap();
    let beacon = beacons.iter().find(|beacon| beacon["round"] == 10_000_000).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let (key, randomness) = (text(&chain["public_key"]), text(&beacon["randomness"]));
    fs::write(dir.path().join("signature.hex"), text(&beacon["signature"])).unwrap();
    let verify = |round: &str, key: &str| {
        let arguments = ["verify-coin", "--round", round, &randomness, "--proof", "signature.hex", "--beacon-key", key];
        theta_in(dir.path(), &arguments)
    };
    verify("10000000", &key).ok();
    verify("10000001", &key).fails(1, &["round 10000001"]);
    verify("10000000", "c0ffee").fails(2, &["48 bytes", "96"]);
    verify("10000000", &"00".repeat(96)).fails(2, &["no key of a beacon"]);
}
