//! Signatures that are made before a host asks for them, by whatever host: of ECDSA and RSA, and in its children.

use serde_json::json;
use theta_look_ahead::{Answer, Digest, Listing, Question, serve};

use crate::{
    group::{configure, log, with_keys},
    harness::Group,
    host::{DEVICE_ERROR, Host},
};

use super::signal;

/// How many signatures belong together.
const EVENT: u64 = 80;
/// What stands before a digest of SHA-256 for RSA (RFC 8017, section 9.2).
const DIGEST_INFO: &str = "3031300d060960864801650304020105000420";

/// Knows digests by their numbers.
struct Numbers;

fn digest(number: u64) -> Digest {
    let mut digest = [0xdd; 32];
    digest[..8].copy_from_slice(&number.to_be_bytes());
    digest
}

impl Listing for Numbers {
    fn list(&self, question: &Question) -> Answer {
        let number = u64::from_be_bytes(question.digest[..8].try_into().unwrap());
        let end = (number / EVENT + 1) * EVENT;
        let listed = number.saturating_sub(question.before.into()).max(end - EVENT)..end;
        Ok(listed.map(digest).filter(|digest| *digest != question.digest).take(question.most.into()).collect())
    }
}

fn group() -> Group {
    let group = with_keys();
    configure(&group, "look_ahead = \"ahead.sock\"\n");
    group
}

fn signs(host: &mut Host, key: &str, mechanism: &str, prefix: &str, number: u64) {
    let data = format!("{prefix}{}", hex::encode(digest(number)));
    let signed = host.ok(json!({"do": "sign", "key": key, "mechanism": mechanism, "data": data}));
    host.ok(
        json!({"do": "verify", "key": key, "mechanism": mechanism, "data": data, "signature": signed["signature"]}),
    );
}

#[test]
fn hosts_get_what_was_made_ahead() {
    let group = group();
    let socket = group.path().join("ahead.sock");
    let mut host = Host::ready(&group);
    // Without anybody who knows, everything is signed as it is asked for.
    (0..20).for_each(|number| signs(&mut host, "k1", "ecdsa", "", number));
    let said = log(&group);
    assert_eq!(said.matches("signatures with k1@1 are not made ahead: nobody answers at ").count(), 1, "{said}");

    let _service = serve(&socket, Numbers).unwrap();
    for (key, mechanism, prefix) in [("p256", "ecdsa", ""), ("rsa", "rsa", DIGEST_INFO)] {
        (0..EVENT).for_each(|number| signs(&mut host, key, mechanism, prefix, number));
        let said = log(&group);
        let line = said.lines().find(|line| line.contains(&format!("of {EVENT} signatures with {key}@1 ")));
        let line = line.unwrap_or_else(|| panic!("{key}: {said}"));
        let ahead: u64 = line.split(' ').rev().skip_while(|word| *word != "were").nth(1).unwrap().parse().unwrap();
        assert!(ahead >= EVENT * 3 / 4, "{line}");
    }
    // What nodes hash themselves has no digest here.
    (0..20).for_each(|number| signs(&mut host, "ed", "eddsa", "", number));
    assert!(!log(&group).contains("with ed@1"), "{}", log(&group));
}

/// Knows so much that it is never made all.
struct Endless;

impl Listing for Endless {
    fn list(&self, question: &Question) -> Answer {
        let number = u64::from_be_bytes(question.digest[..8].try_into().unwrap());
        let listed = number.saturating_sub(question.before.into())..number.saturating_add(100_000);
        Ok(listed.map(digest).filter(|digest| *digest != question.digest).take(question.most.into()).collect())
    }
}

/// A host waits for a signature that is under way, and then asks for it itself: both together no longer than it was said.
#[test]
fn what_is_under_way_takes_no_more_time_than_was_said() {
    let mut group = with_keys();
    configure(&group, "look_ahead = \"ahead.sock\"\ntimeout_ms = 10000\n");
    let _service = serve(&group.path().join("ahead.sock"), Endless).unwrap();
    let mut host = Host::ready(&group);
    let ask =
        |number: u64| json!({"do": "sign", "key": "p256", "mechanism": "ecdsa", "data": hex::encode(digest(number))});
    for number in 0..40 {
        host.ok(ask(number));
    }
    (2..=4).for_each(|node| signal(&mut group, node, "-STOP"));
    let failed = (40..20_000).map(|number| host.ask(ask(number))).find(|told| told["rv"] != 0).unwrap();
    (2..=4).for_each(|node| signal(&mut group, node, "-CONT"));
    assert_eq!(failed["rv"], DEVICE_ERROR, "{failed}");
    assert!(failed["seconds"].as_f64().unwrap() < 14.0, "{failed}");
}

/// A child has nothing of what its parent had made or under way, and does as its parent.
#[test]
fn a_child_looks_ahead_by_itself() {
    let group = group();
    let _service = serve(&group.path().join("ahead.sock"), Numbers).unwrap();
    let mut host = Host::ready(&group);
    (0..10).for_each(|number| signs(&mut host, "p256", "ecdsa", "", number));
    for number in [10, 11, 70] {
        let fork = json!({"do": "fork", "key": "p256", "mechanism": "ecdsa", "data": hex::encode(digest(number))});
        let child = host.ask(fork);
        assert_eq!((&child["began"], &child["rv"]), (&0.into(), &0.into()), "{child}");
        signs(&mut host, "p256", "ecdsa", "", number);
    }
    (12..70).for_each(|number| signs(&mut host, "p256", "ecdsa", "", number));
    host.ok(json!({"do": "finalise"}));
}
