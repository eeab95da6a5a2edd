//! `theta pkcs11 pool`: what there is for programs that make keys, and more of it.

use std::{process::Stdio, time::Duration};

use serde_json::{Value, json};

use crate::{
    generation::{P256, ready},
    group::{SAFE_PRIMES, command, log, until},
    harness::{EXE, Group},
    host::Host,
};

fn pool(group: &Group, words: &[&str]) -> Value {
    group.theta(&[&["pkcs11", "pool", "--config", "pkcs11.toml", "--json"], words].concat()).ok().json()
}

/// Free, bound and released keys of a suite.
fn counts(view: &Value, suite: &str) -> [u64; 3] {
    let suites = view["suites"].as_array().unwrap();
    let found: Vec<_> = suites.iter().filter(|found| found["suite"] == suite).collect();
    let count = |name: &str| found.iter().map(|found| found[name].as_u64().unwrap()).sum();
    ["free", "bound", "released"].map(count)
}

fn take(host: &mut Host, id: &str) {
    host.ok(json!({"do": "generate", "mechanism": "0x1040", "curve": P256, "id": id, "label": id}));
}

#[test]
fn a_pool_is_filled_to_its_level() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    ready(&group, "");
    let empty = pool(&group, &[]);
    assert_eq!(
        (&empty["pool"], &empty["token"], &empty["suites"]),
        (&"zone".into(), &"theta-group".into(), &json!([]))
    );
    let filled = pool(&group, &["--level", "2", "--patience", "3m"]);
    assert_eq!(filled["made"].as_array().unwrap().len(), 4, "{filled}");
    assert_eq!((counts(&filled, "ecdsa-p256"), counts(&filled, "frost-ed25519")), ([2, 0, 0], [2, 0, 0]));
    assert_eq!(pool(&group, &["--level", "2"])["made"], json!([]));

    let mut host = Host::ready(&group);
    take(&mut host, "01");
    take(&mut host, "02");
    host.ok(json!({"do": "destroy", "key": "02"}));
    assert_eq!(counts(&pool(&group, &[]), "ecdsa-p256"), [0, 1, 1]);
    let again = pool(&group, &["--level", "1", "--suite", "ecdsa-p256,ecdsa-secp256k1"]);
    assert_eq!(again["made"], json!(["zone-ecdsa-p256-3", "zone-ecdsa-secp256k1-1"]));
    take(&mut host, "03");
    assert!(!log(&group).contains("the group has made"), "all were there before: {}", log(&group));

    // For people.
    let text = group.theta(&["pkcs11", "pool", "--config", "pkcs11.toml"]).ok().text();
    assert!(text.contains("pool zone of the token theta-group") && text.contains("frost-ed25519"), "{text}");
}

/// Two of two leave no honest majority: the pool's keys need none, whoever makes them.
#[test]
fn a_pool_of_two_of_two_has_the_implied_majority() {
    let mut group = Group::made_with(&["--nodes", "2", "--threshold", "2", "--no-keys"]);
    ready(&group, "");
    let words = ["--level", "1", "--suite", "ecdsa-p256"];
    let dealt = pool(&group, &[&words[..], &["--group", "theta-group"]].concat());
    assert_eq!(dealt["made"], json!(["zone-ecdsa-p256-1"]));
    group.start_all();
    let made = pool(&group, &["--level", "2", "--suite", "ecdsa-p256"]);
    assert_eq!(made["made"], json!(["zone-ecdsa-p256-2"]));
    for name in ["zone-ecdsa-p256-1", "zone-ecdsa-p256-2"] {
        let shown = group.theta(&["keys", "show", name, "--live", "--json"]).ok().json();
        assert_eq!(shown[0]["delivery"], "dishonest-majority", "{shown}");
    }
    let told =
        group.theta(&["pkcs11", "pool", "--config", "pkcs11.toml", "--level", "2", "--suite", "ecdsa-p256"]).ok();
    assert!(told.stderr.contains("keys of ecdsa-p256: k and n leave no honest majority"), "{told:?}");
}

#[test]
fn keys_are_dealt_where_the_nodes_do_not_run() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.file("rsa.pem", SAFE_PRIMES);
    let name = "zone-sh00-pkcs1-sha256-1";
    group.theta(&["keys", "import", "--name", name, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
    ready(&group, "");
    // One key of RSA is there; another one is dealt.
    let words = ["--level", "2", "--suite", "sh00-pkcs1-sha256,ecdsa-p256", "--group", "theta-group"];
    let dealt = pool(&group, &words);
    assert_eq!(dealt["made"], json!(["zone-sh00-pkcs1-sha256-2", "zone-ecdsa-p256-1", "zone-ecdsa-p256-2"]));
    assert_eq!((counts(&dealt, "sh00-pkcs1-sha256"), counts(&dealt, "ecdsa-p256")), ([2, 0, 0], [2, 0, 0]));
    assert_eq!(dealt["suites"].as_array().unwrap().iter().find_map(|suite| suite["bits"].as_u64()), Some(2048));
    group.start_all();
    let mut host = Host::ready(&group);
    take(&mut host, "01");
    host.ok(json!({"do": "generate", "mechanism": "0x0", "bits": 2048, "id": "02", "label": "rsa"}));
    host.ok(json!({"do": "sign", "key": "rsa", "mechanism": "rsa-sha256", "data": "01"}));
    let seen = pool(&group, &[]);
    assert_eq!((counts(&seen, "sh00-pkcs1-sha256"), counts(&seen, "ecdsa-p256")), ([1, 1, 0], [1, 1, 0]));
}

#[test]
fn a_pool_is_watched() {
    let mut group = Group::made_with(&["--no-keys"]);
    group.start_all();
    ready(&group, "");
    let mut watch = command(&group, EXE);
    watch.args(["pkcs11", "pool", "--level", "2", "--suite", "ecdsa-p256", "--watch", "--every", "100ms"]);
    let mut watch = watch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut host = Host::ready(&group);
    for round in ["01", "02", "03"] {
        until("two keys are free", Duration::from_secs(60), || counts(&pool(&group, &[]), "ecdsa-p256")[0] == 2);
        take(&mut host, round);
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(!log(&group).contains("the group has made"), "{}", log(&group));
}

#[test]
fn what_is_wrong_with_a_pool_is_said() {
    let group = crate::group::shared();
    let fails = |file: &str, text: &str, words: &[&str], status: i32, said: &str| {
        group.file(file, text);
        group.theta(&[&["pkcs11", "pool", "--config", file], words].concat()).fails(status, &[said]);
    };
    let token = "[[token]]\nclient = \"host.client\"\n";
    fails("none.toml", token, &[], 2, "names no pool");
    let two = format!("{token}pool = \"a\"\n{token}pool = \"b\"\n");
    fails("two.toml", &two, &[], 2, "there are the pools a, b: name one with --pool");
    fails("two.toml", &two, &["--pool", "c"], 2, "there is no such pool");
    let one = group.theta(&["pkcs11", "pool", "--config", "two.toml", "--pool", "b", "--json"]).ok().json();
    assert_eq!((&one["pool"], &one["suites"]), (&"b".into(), &json!([])), "{one}");
    let one = format!("{token}pool = \"a\"\nbindings = \"damaged.toml\"\n");
    fails("one.toml", &one, &["--level", "1", "--suite", "sh00-pkcs1-sha256"], 2, "with --group");
    fails("one.toml", &one, &["--level", "1", "--suite", "bls04-bls12381-min-pk"], 2, "programs make keys of");
    fails("one.toml", &one, &["--suite", "ecdsa-p256"], 2, "--level");
    group.file("damaged.toml", "[[bind");
    fails("one.toml", &one, &["--level", "1"], 1, "damaged.toml is damaged");
}
