//! `theta suites`, `theta keys deal`, `import` and `export`, and what is done with such keys.

mod ecdsa;
mod majority;
mod permission;
mod processes;
mod quorum;
pub(crate) mod verifiers;

use std::{path::Path, process::Command};

use crate::harness::{Group, theta_in, theta_with_stdin};

/// Runs another program in this directory.
#[track_caller]
fn run(dir: &Path, command: &str) -> Vec<u8> {
    let words: Vec<&str> = command.split(' ').map(|word| if word == "''" { "" } else { word }).collect();
    let output = Command::new(words[0]).args(&words[1..]).current_dir(dir).output().expect("the command is installed");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn suites_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let suites = theta_in(dir.path(), &["suites", "--json"]).ok().json();
    let suites = suites.as_array().unwrap();
    let named = |name: &str| suites.iter().find(|suite| suite["suite"] == name).unwrap();
    assert_eq!(named("frost-ed25519")["purpose"], "sign");
    assert_eq!(named("sh00-pss-sha256")["group"], "RSA");
    let text = theta_in(dir.path(), &["suites"]).ok().text();
    assert_eq!(text.lines().count(), suites.len() + 1);
}

#[test]
fn keys_are_dealt_into_an_existing_group() {
    let mut group = Group::made();
    let report = group.theta(&["keys", "deal", "more=sg02-p256", "drand=cks05-bls04-min-sig", "--json"]);
    let report = report.ok().json();
    assert_eq!((&report[0]["name"], &report[0]["threshold"]), (&"more".into(), &2.into()));
    group.theta(&["keys", "deal", "new=sg02-p256", "more=sg02-p256"]).fails(2, &["a key more exists already"]);
    group.theta(&["keys", "deal", "new=sg02-p256"]).ok();
    group.theta(&["keys", "deal", "a=sg02-p256", "a=sg02-bn254"]).fails(2, &["two keys \"a\""]);
    group.theta(&["keys", "deal", "x=sg02-p265"]).fails(2, &["did you mean sg02-p256?"]);
    group.theta(&["keys", "deal", "x=sg02-p256", "--group", "."]).fails(2, &["not a group's directory"]);

    group.start_all();
    group.theta(&["keys", "deal", "late=sg02-p256"]).fails(2, &["in use", "stop the node"]);
    let sealed = theta_with_stdin(group.path(), &["encrypt", "-", "--key", "more"], b"text").ok().stdout;
    assert_eq!(theta_with_stdin(group.path(), &["decrypt", "-"], &sealed).ok().stdout, b"text");
    rounds_are_drands(&group);
}

fn rounds_are_drands(group: &Group) {
    let beacon = group.theta(&["coin", "--round", "1", "--json", "--proof", "round.sig"]).ok().json();
    assert_eq!(beacon["round"], 1);
    let (randomness, signature) = (beacon["randomness"].as_str().unwrap(), beacon["signature"].as_str().unwrap());
    assert_eq!((randomness.len(), signature.len()), (64, 96));
    assert_eq!(hex::encode(group.read("round.sig")), signature);
    group.file("round.bin", hex::decode(signature).unwrap());
    let digest = String::from_utf8(run(group.path(), "openssl dgst -sha256 -r round.bin")).unwrap();
    assert!(digest.starts_with(randomness), "the randomness is SHA-256 of the signature: {digest}");
    let verify = |round: &str| {
        group.theta(&["verify-coin", "--round", round, randomness, "--proof", "round.sig", "--key", "drand"])
    };
    verify("1").ok();
    verify("2").fails(1, &["round 2"]);
    let chained = group.theta(&["coin", "--round", "2", "--previous", signature, "--json"]).ok().json();
    assert_eq!(chained["previous_signature"], signature);
    group.theta(&["coin", "--round", "1", "--key", "coin"]).fails(2, &["cks05-bls04-min-sig", "coin"]);
    group.theta(&["coin", "--round", "1", "--previous", "xyz"]).fails(2, &["--previous"]);
    group.theta(&["coin", "name", "--round", "1"]).fails(2, &["--round"]);
}

#[test]
fn keys_of_openssl_and_ssh_are_imported_and_sign_as_before() {
    let mut group = Group::made();
    run(group.path(), "openssl genpkey -algorithm ed25519 -out key.pem");
    run(group.path(), "openssl pkey -in key.pem -pubout -out public.pem");
    run(group.path(), "ssh-keygen -q -t ed25519 -N '' -C me -f id");
    let import = |name: &str, file: &str, more: &[&str]| {
        group.theta(&[&["keys", "import", "--name", name, "--suite", "frost-ed25519", file], more].concat())
    };
    let imported = import("release", "key.pem", &[]).ok();
    assert!(imported.stderr.contains("warning") && imported.stderr.contains("destroy"), "{imported:?}");
    import("host", "id", &["--format", "openssh"]).ok();
    import("release", "key.pem", &[]).fails(2, &["exists already"]);
    import("x", "key.pem", &["--format", "openssh"]).fails(2, &["pkcs8, not openssh"]);
    import("x", "public.pem", &[]).fails(2, &["public key"]);
    import("x", "id.pub", &[]).fails(2, &["public key"]);
    let wrong = group.theta(&["keys", "import", "--name", "x", "--suite", "frost-ed448", "key.pem"]);
    wrong.fails(2, &["Ed25519 keys do not fit frost-ed448", "frost-ed25519"]);
    run(group.path(), "ssh-keygen -q -t ed25519 -N passphrase -f locked");
    import("x", "locked", &[]).fails(2, &["ssh-keygen -p -N \"\""]);

    let pem = group.theta(&["keys", "export", "release"]).ok().stdout;
    assert_eq!(pem, group.read("public.pem"), "byte for byte what openssl writes");
    let ssh = group.theta(&["keys", "export", "host", "--format", "ssh"]).ok().text();
    let original = String::from_utf8(group.read("id.pub")).unwrap();
    assert_eq!(ssh.split(' ').nth(1), original.split(' ').nth(1));
    group.theta(&["keys", "export", "files", "--format", "pem"]).fails(2, &["have no PEM form"]);

    group.start_all();
    group.file("message", "the message");
    group.theta(&["sign", "message", "--key", "release"]).ok();
    run(group.path(), "openssl pkeyutl -verify -rawin -pubin -inkey public.pem -in message -sigfile message.sig");
    group.theta(&["verify", "message", "message.sig", "--key", "release"]).ok();
    group.theta(&["verify", "message", "message.sig", "--key", "host"]).fails(1, &["message.sig"]);
}

#[test]
fn an_rsa_key_signs_for_openssl() {
    let mut group = Group::made();
    let key = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/keyfiles/src/import/safe_primes.pem");
    for (name, suite) in [("rsa", "sh00-pkcs1-sha256"), ("pss", "sh00-pss-sha256")] {
        group.theta(&["keys", "import", "--name", name, "--suite", suite, key]).ok();
    }
    assert!(group.theta(&["keys", "show", "rsa"]).ok().text().contains("RSA 2048 bits"));
    run(group.path(), &format!("openssl pkey -in {key} -pubout -out public.pem"));
    assert_eq!(group.theta(&["keys", "export", "rsa"]).ok().stdout, group.read("public.pem"));
    group.start_all();
    group.file("message", "the message");
    for (name, options) in [("rsa", ""), ("pss", " -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:32")] {
        group.theta(&["sign", "message", "--key", name, "-o", "message.sig"]).ok();
        run(group.path(), &format!("openssl dgst -sha256 -verify public.pem -signature message.sig{options} message"));
        group.theta(&["verify", "message", "message.sig", "--key", name]).ok();
    }
}
