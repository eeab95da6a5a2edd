//! Hosts that make their own keys: from a pool, bound before they are told, found again, destroyed.

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    group::{SAFE_PRIMES, SAFE_PRIMES_3072, configure, log, openssl, until},
    harness::Group,
    host::{FUNCTION_REJECTED, Host},
};

/// What a key of RSA in the pool is called.
pub(crate) const RSA: &str = "zone-sh00-pkcs1-sha256-1";

pub(crate) const P256: &str = "06082a8648ce3d030107";
const SECP256K1: &str = "06052b8104000a";
const P384: &str = "06052b81040022";
const ED25519: &str = "06032b6570";

const GENERAL_ERROR: u64 = 5;
const DEVICE_MEMORY: u64 = 0x31;

/// A running group of 2 of 4 with these keys, and a host's configuration for it with a pool.
pub(crate) fn pooled(keys: &str, lines: &str) -> Group {
    let mut group = Group::made_with(&["--keys", keys]);
    group.start_all();
    ready(&group, lines);
    group
}

/// The same with one key of RSA in the pool.
pub(crate) fn pooled_rsa(lines: &str) -> Group {
    let mut group = Group::made_with(&["--no-keys"]);
    import_rsa(&group);
    group.start_all();
    ready(&group, lines);
    group
}

/// Deals the key to nodes that do not run.
pub(crate) fn import_rsa(group: &Group) {
    group.file("rsa.pem", SAFE_PRIMES);
    group.theta(&["keys", "import", "--name", RSA, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
}

pub(crate) fn ready(group: &Group, lines: &str) {
    group.theta(&["client", "convert", "theta-group/client", "-o", "host.client"]).ok();
    configure(group, &format!("pool = \"zone\"\n{lines}"));
}

fn p256(id: &str, label: &str) -> Value {
    json!({"do": "generate", "mechanism": "0x1040", "curve": P256, "id": id, "label": label})
}

fn ed25519(mechanism: &str, id: &str) -> Value {
    json!({"do": "generate", "mechanism": mechanism, "curve": ED25519, "id": id, "label": id})
}

fn rsa(bits: u64, id: &str) -> Value {
    json!({"do": "generate", "mechanism": "0x0", "bits": bits, "id": id, "label": id})
}

/// Class, id and label of what a host sees.
fn listed(host: &mut Host) -> BTreeSet<(u64, String, String)> {
    let answer = host.ok(json!({"do": "list"}));
    let text = |key: &Value, name: &str| key[name].as_str().unwrap().to_owned();
    let keys = answer["keys"].as_array().unwrap();
    keys.iter().map(|key| (key["class"].as_u64().unwrap(), text(key, "id"), text(key, "label"))).collect()
}

/// Both objects of a key.
fn both(id: &str, label: &str) -> BTreeSet<(u64, String, String)> {
    [2, 3].map(|class| (class, id.to_owned(), label.to_owned())).into()
}

fn bindings(group: &Group) -> String {
    fs::read_to_string(group.path().join("bindings.toml")).unwrap_or_default()
}

#[test]
fn hosts_make_keys_and_find_them_again() {
    let mut group = Group::made_with(&[
        "--keys",
        "zone-ecdsa-p256-2=ecdsa-p256,zone-ecdsa-p256-10=ecdsa-p256,zone-frost-ed25519-1=frost-ed25519,other=frost-ed25519",
    ]);
    group.file("rsa.pem", SAFE_PRIMES);
    let name = "zone-sh00-pkcs1-sha256-1";
    group.theta(&["keys", "import", "--name", name, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
    let longer = "zone-sh00-pkcs1-sha256-2";
    group.file("rsa.pem", SAFE_PRIMES_3072);
    group.theta(&["keys", "import", "--name", longer, "--suite", "sh00-pkcs1-sha256", "rsa.pem"]).ok();
    group.start_all();
    ready(&group, "");
    let mut host = Host::ready(&group);
    let other = listed(&mut host);
    assert!(other.len() == 2 && other.iter().all(|(.., label)| label == "other"), "{other:?}: free keys are nobody's");

    // The oldest free key, by its number; both processes find it at once.
    let mut second = Host::ready(&group);
    listed(&mut second);
    let made = host.ok(p256("0a0b", "www"));
    let pem = group.theta(&["keys", "export", "zone-ecdsa-p256-2"]).ok().text();
    fs::write(group.path().join("made.der"), hex::decode(made["info"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(openssl(group.path(), &["pkey", "-pubin", "-inform", "DER", "-in", "made.der"]), pem);
    let expected: BTreeSet<_> = other.union(&both("0a0b", "www")).cloned().collect();
    assert_eq!((listed(&mut host), listed(&mut second)), (expected.clone(), expected));
    for (name, value) in [("local", "01"), ("generated_by", "4010000000000000"), ("extractable", "00"), ("id", "0a0b")]
    {
        assert_eq!(second.ok(json!({"do": "attribute", "key": "www", "name": name}))["value"], value, "{name}");
    }

    host.ok(p256("0a0c", "mail"));
    assert!(bindings(&group).contains("zone-ecdsa-p256-10@1"), "{}", bindings(&group));
    // The number that GnuTLS gives the mechanism; then there is no other, and the group makes one.
    host.ok(ed25519("0x1057", "0b01"));
    host.ok(ed25519("0x1055", "0b02"));
    host.ok(json!({"do": "generate", "mechanism": "0x1040", "curve": SECP256K1, "id": "0d01", "label": "0d01"}));
    for name in ["zone-frost-ed25519-1@1", "zone-frost-ed25519-2@1", "zone-ecdsa-secp256k1-1@1"] {
        assert!(bindings(&group).contains(name), "{name}: {}", bindings(&group));
    }
    host.ok(rsa(2048, "0c01"));
    let said = log(&group);
    assert!(
        said.contains("the pool zone has no free key of frost-ed25519: the group has made zone-frost-ed25519-2"),
        "{said}"
    );
    // The pool's other key of RSA is a longer one, and is given to whoever asks for its length.
    host.fails(DEVICE_MEMORY, rsa(2048, "0c02"));
    let made = host.ok(rsa(3072, "0c03"));
    let pem = group.theta(&["keys", "export", longer]).ok().text();
    fs::write(group.path().join("made.der"), hex::decode(made["info"].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(openssl(group.path(), &["pkey", "-pubin", "-inform", "DER", "-in", "made.der"]), pem);
    let shown = openssl(group.path(), &["pkey", "-pubin", "-inform", "DER", "-in", "made.der", "-noout", "-text"]);
    assert!(shown.contains("(3072 bit)"), "{shown}");
    for bits in [2048, 3072] {
        host.fails(DEVICE_MEMORY, rsa(bits, "0c02"));
    }
    let said = log(&group);
    assert!(said.contains("keys of RSA take a dealer: fill it with theta pkcs11 pool"), "{said}");

    // A program that starts later has them all, and signs.
    drop((host, second));
    let mut host = Host::ready(&group);
    assert_eq!(listed(&mut host).len(), 2 + 2 * 7);
    for (key, mechanism) in [
        ("www", "ecdsa-sha256"),
        ("mail", "ecdsa-sha256"),
        ("0b01", "eddsa"),
        ("0b02", "eddsa"),
        ("0c01", "rsa-sha256"),
        ("0c03", "rsa-sha256"),
    ] {
        let signed = host.ok(json!({"do": "sign", "key": key, "mechanism": mechanism, "data": "01"}));
        let verify =
            json!({"do": "verify", "key": key, "mechanism": mechanism, "data": "01", "signature": signed["signature"]});
        host.ok(verify);
    }
}

#[test]
fn hosts_rename_and_destroy_what_they_have_made() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256,other=frost-ed25519", "");
    let mut host = Host::ready(&group);
    let mut second = Host::ready(&group);
    host.ok(p256("01", "one"));
    host.ok(json!({"do": "set", "key": "one", "values": {"id": "77", "label": hex::encode("renamed")}}));
    host.ok(json!({"do": "set", "key": "one", "class": 2, "values": {"id": "77", "label": hex::encode("renamed"), "token": "01"}}));
    let seen = listed(&mut second);
    assert!(seen.is_superset(&both("77", "renamed")), "{seen:?}");
    host.fails(0x10, json!({"do": "set", "key": "renamed", "values": {"extractable": "01"}}));
    host.fails(0x1b, json!({"do": "set", "key": "other", "values": {"id": "77"}}));

    // The public object alone; the private key signs as before.
    host.ok(json!({"do": "destroy", "key": "renamed", "classes": [2]}));
    let sign = json!({"do": "sign", "key": "renamed", "mechanism": "ecdsa-sha256", "data": "01"});
    host.ok(sign.clone());
    second.ok(sign);
    host.ok(json!({"do": "destroy", "key": "renamed"}));
    for host in [&mut host, &mut second] {
        let left = listed(host);
        assert!(left.iter().all(|(.., label)| label == "other"), "{left:?}");
    }
    // Both objects, found before: the second one is gone with the first.
    host.ok(p256("02", "two"));
    host.ok(json!({"do": "destroy", "key": "two", "classes": [3, 2]}));
    host.fails(0x1b, json!({"do": "destroy", "key": "other"}));

    // Nobody gets them again, and the group has them.
    host.ok(p256("03", "three"));
    let text = bindings(&group);
    assert!(text.matches("state = \"released\"").count() == 2 && text.contains("zone-ecdsa-p256-3@1"), "{text}");
    group.theta(&["sign", "-o", "signature", "pkcs11.toml", "--key", "zone-ecdsa-p256-1"]).ok();
}

#[test]
fn with_leave_hosts_destroy_keys_in_the_group() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256", "destroy = true\n");
    let mut host = Host::ready(&group);
    host.ok(p256("01", "one"));
    // Keys that were dealt come into the group's ledger in a moment, and are not destroyed before.
    let destroy = json!({"do": "destroy", "key": "one"});
    until("the group destroys the key", Duration::from_secs(30), || host.ask(destroy.clone())["rv"] == 0);
    assert!(listed(&mut host).is_empty());
    assert!(bindings(&group).contains("state = \"released\""));
    group.theta(&["sign", "-o", "signature", "pkcs11.toml", "--key", "zone-ecdsa-p256-1"]).fails(1, &["destroyed"]);
    // The name of the destroyed key is not taken again.
    host.ok(p256("02", "two"));
    assert!(bindings(&group).contains("zone-ecdsa-p256-2@1"), "{}", bindings(&group));
}

#[test]
fn programs_that_make_keys_at_once_never_get_the_same() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256,zone-ecdsa-p256-3=ecdsa-p256", "");
    let mut hosts: Vec<Host> = (0..3).map(|_| Host::ready(&group)).collect();
    for (place, host) in (1..).zip(&mut hosts) {
        host.tell(&json!({"do": "generate at once", "count": 3, "mechanism": "0x1040", "curve": P256, "id": format!("{place:02x}")}));
    }
    let mut keys = BTreeSet::new();
    for host in &mut hosts {
        let answer = host.answer();
        for made in answer["results"].as_array().unwrap() {
            assert_eq!(made["rv"], 0, "{answer}");
            keys.insert(made["info"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(keys.len(), 9, "nine keys: three that there were, and six that the group made");
    for host in &mut hosts {
        assert_eq!(listed(host).len(), 18);
    }
}

#[test]
fn a_program_that_ends_between_binding_and_return_loses_a_key_and_nothing_else() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "");
    let mut host = Host::ready(&group);
    listed(&mut host);
    host.tell(&p256("aa", "lost"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while bindings(&group).is_empty() {
        assert!(Instant::now() < deadline, "no key is bound");
    }
    // SIGKILL.
    drop(host);
    // What a program would leave that ended while it wrote.
    group.file("bindings.toml.new", "[[binding]]\nkey = \"zo");
    let mut next = Host::ready(&group);
    assert_eq!(listed(&mut next), both("aa", "lost"));
    next.ok(p256("ab", "next"));
    let text = bindings(&group);
    assert!(text.contains("zone-ecdsa-p256-1@1") && text.contains("zone-ecdsa-p256-2@1"), "{text}");
    next.ok(json!({"do": "sign", "key": "lost", "mechanism": "ecdsa-sha256", "data": "01"}));
    // The same id twice is the host's own affair.
    next.ok(p256("ab", "twin"));
    assert!(log(&group).contains("warning: zone-ecdsa-p256-2@1 has the CKA_ID ab, too"), "{}", log(&group));
}

#[test]
fn with_damaged_bindings_no_key_is_given() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256", "");
    let mut host = Host::ready(&group);
    host.ok(p256("01", "one"));
    let good = bindings(&group);
    let half = &good[..good.len() / 2];
    group.file("bindings.toml", half);
    host.fails(GENERAL_ERROR, p256("02", "two"));
    assert!(log(&group).contains("bindings.toml is damaged: "), "{}", log(&group));
    assert_eq!(bindings(&group), half);
    // What it knew it knows; a program that starts now knows nothing of the pool's keys, and says why.
    host.ok(json!({"do": "sign", "key": "one", "mechanism": "ecdsa-sha256", "data": "01"}));
    assert!(listed(&mut Host::ready(&group)).is_empty());
    group.file("bindings.toml", &good);
    host.ok(p256("02", "two"));
    assert_eq!(listed(&mut Host::ready(&group)).len(), 4);
}

#[test]
fn where_policies_refuse_new_keys_an_empty_pool_is_told_as_one() {
    let mut group = Group::made_with(&["--keys", "zone-ecdsa-p256-1=ecdsa-p256"]);
    let deny = "\n[[rule]]\nname = \"no-new-keys\"\neffect = \"deny\"\nclients = [\"client\"]\nkeys = [\"*\"]\noperations = [\"keys.create\"]\n";
    for node in group.numbers() {
        group.append(node, "policy.toml", deny);
    }
    group.start_all();
    ready(&group, "timeout_ms = 10000\n");
    let mut host = Host::ready(&group);
    host.ok(p256("01", "one"));
    host.fails(DEVICE_MEMORY, p256("02", "two"));
    let said = log(&group);
    assert!(said.contains("no-new-keys") && said.contains("fill it with theta pkcs11 pool"), "{said}");
    // Without a quorum no key is given, whatever is known.
    (2..=4).for_each(|node| group.kill(node));
    host.fails(crate::host::DEVICE_ERROR, p256("02", "two"));
    host.fails(
        crate::host::DEVICE_ERROR,
        json!({"do": "generate", "mechanism": "0x1055", "curve": ED25519, "id": "03"}),
    );
    (2..=4).for_each(|node| group.start(node));
    (2..=4).for_each(|node| group.await_up(node));
    until("the pool is empty again", Duration::from_secs(30), || host.ask(p256("02", "two"))["rv"] == DEVICE_MEMORY);
    assert_eq!(listed(&mut host), both("01", "one"));
}

/// Who has the host's client for a moment, and one node, makes keys that this node alone holds, or can learn, and gives them names of the
/// pool. No host gets one, and those that are fit come after them.
#[test]
fn keys_that_others_plant_are_given_to_no_host() {
    let group = pooled("zone-frost-ed25519-9=frost-ed25519,zone-ecdsa-p256-9=ecdsa-p256", "");
    for words in [
        &["zone-frost-ed25519-7=frost-ed25519", "--threshold", "1"][..],
        &["zone-frost-ed25519-8=frost-ed25519", "--holders", "3,4"],
        &["zone-ecdsa-p256-6=ecdsa-p256", "--security", "passive"],
        // Its name alone says P-256.
        &["zone-ecdsa-p256-7=frost-ed25519"],
    ] {
        group.theta(&[&["keys", "create"], words].concat()).ok();
    }
    let words = ["pkcs11", "pool", "--config", "pkcs11.toml", "--json"];
    let counts = || {
        let told = group.theta(&words).ok();
        let suites = told.json()["suites"].clone();
        let free = |suite: &str| {
            let found = suites.as_array().unwrap().iter().find(|found| found["suite"] == suite);
            found.map_or(0, |found| found["free"].as_u64().unwrap())
        };
        (free("frost-ed25519"), free("ecdsa-p256"), told.stderr)
    };
    // Keys that were dealt come into the ledger in a moment.
    until("the pool has what was dealt", Duration::from_secs(30), || counts().0 >= 1 && counts().1 >= 1);
    let (ed, p256_keys, said) = counts();
    assert_eq!((ed, p256_keys), (1, 1), "{said}");
    for (name, reason) in [
        ("zone-frost-ed25519-7", "1 of its holders sign with it, and the group takes 2"),
        ("zone-frost-ed25519-8", "not exactly the members of the group hold it; if these have changed"),
        (
            "zone-ecdsa-p256-6",
            "it has passive security, and the configuration says active: a holder that does not follow the protocol may",
        ),
        ("zone-ecdsa-p256-7", "it is a key of frost-ed25519, and its name says something else"),
    ] {
        assert!(said.contains(&format!("{name} is given to no program: {reason}")), "{name}: {said}");
    }
    let mut host = Host::ready(&group);
    host.ok(ed25519("0x1055", "01"));
    host.ok(p256("02", "02"));
    let given = bindings(&group);
    assert!(given.contains("zone-frost-ed25519-9@1") && given.contains("zone-ecdsa-p256-9@1"), "{given}");
    let said = log(&group);
    assert!(said.contains("zone-frost-ed25519-7@1 is given to no host: 1 of its holders sign"), "{said}");
    // There is no other: the group makes one, with the smallest number that is free.
    host.ok(ed25519("0x1055", "03"));
    assert!(bindings(&group).contains("zone-frost-ed25519-1@1"), "{}", bindings(&group));
}

/// A key with the largest number that there is takes all others with it nowhere.
#[test]
fn a_large_number_ends_no_pool() {
    let group = pooled("zone-ecdsa-p256-4294967295=ecdsa-p256", "");
    let mut host = Host::ready(&group);
    for (id, name) in [("01", "zone-ecdsa-p256-4294967295@1"), ("02", "zone-ecdsa-p256-1@1")] {
        host.ok(p256(id, id));
        assert!(bindings(&group).contains(name), "{name}: {}", bindings(&group));
    }
    group.theta(&["pkcs11", "pool", "--config", "pkcs11.toml", "--level", "1", "--suite", "ecdsa-p256"]).ok();
    host.ok(p256("03", "03"));
    assert!(bindings(&group).contains("zone-ecdsa-p256-2@1"), "{}", bindings(&group));
}

/// Without an honest majority a key of ECDSA needs none, also if the group makes it as it is asked for.
#[test]
fn two_of_two_make_keys_at_once() {
    let mut group = Group::made_with(&["--nodes", "2", "--threshold", "2", "--no-keys"]);
    group.start_all();
    ready(&group, "");
    let mut host = Host::ready(&group);
    host.ok(p256("01", "01"));
    host.ok(json!({"do": "sign", "key": "01", "mechanism": "ecdsa-sha256", "data": "01"}));
}

/// A process that had no file left once reads the bindings again, though they do not change.
#[test]
fn bindings_that_were_not_read_once_are_read_again() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256", "");
    let mut host = Host::ready(&group);
    assert!(listed(&mut host).is_empty());
    Host::ready(&group).ok(p256("01", "one"));
    // The file counts as settled.
    std::thread::sleep(Duration::from_millis(2_500));
    host.ok(json!({"do": "limit files", "count": 0}));
    host.ask(json!({"do": "list"}));
    host.ok(json!({"do": "limit files", "count": -1}));
    until("the key is seen", Duration::from_secs(30), || listed(&mut host) == both("01", "one"));
}

/// What a name server's client needs, and no more: its own pool, and the list of keys.
#[test]
fn a_client_of_one_pool_has_no_other_keys() {
    let mut group =
        Group::made_with(&["--keys", "zone-ecdsa-p256-1=ecdsa-p256,other=frost-ed25519,other-ecdsa-p256-1=ecdsa-p256"]);
    let lines = group.theta(&["client", "new", "--name", "dns", "--group", "theta-group/group.toml"]).ok().text();
    let client = lines.split("\n\n").find(|part| part.contains("certificates = ")).unwrap();
    let rule = |name: &str, keys: &str, operations: &str| {
        format!(
            "\n[[rule]]\nname = \"{name}\"\neffect = \"allow\"\nclients = [\"dns\"]\nkeys = [\"{keys}\"]\noperations = {operations}\n"
        )
    };
    let uses = rule("dns-uses-its-pool", "zone-*", "[\"sign\", \"sign-digest\", \"keys.create\"]");
    for node in group.numbers() {
        group.append(node, "policy.toml", &format!("\n{client}\n{uses}{}", rule("dns-looks", "*", "[\"keys.list\"]")));
    }
    group.start_all();
    fs::rename(group.path().join("dns.client"), group.path().join("host.client")).unwrap();
    configure(&group, "pool = \"zone\"\n");
    let mut host = Host::ready(&group);
    for (id, key) in [("01", "zone-ecdsa-p256-1@1"), ("02", "zone-ecdsa-p256-2@1")] {
        host.ok(p256(id, id));
        assert!(bindings(&group).contains(key), "{key}: {}", bindings(&group));
        host.ok(json!({"do": "sign", "key": id, "mechanism": "ecdsa", "data": "01"}));
    }
    host.fails(FUNCTION_REJECTED, json!({"do": "sign", "key": "other", "mechanism": "eddsa", "data": "01"}));
    // With the other pool it sees keys, and makes no use of them.
    configure(&group, "pool = \"other\"\n");
    let mut host = Host::ready(&group);
    host.ok(p256("03", "03"));
    host.fails(FUNCTION_REJECTED, json!({"do": "sign", "key": "03", "mechanism": "ecdsa", "data": "01"}));
    host.fails(DEVICE_MEMORY, p256("04", "04"));
}

#[test]
fn templates_are_checked() {
    let group = pooled("zone-ecdsa-p256-1=ecdsa-p256", "");
    let mut host = Host::ready(&group);
    for (rv, more) in [
        (0xd1, json!({"private": {"extractable": "01"}})),
        (0xd1, json!({"private": {"sensitive": "00"}})),
        (0xd1, json!({"private": {"token": "00"}})),
        (0xd1, json!({"public": {"token": "00"}})),
        (0xd1, json!({"private": {"class": "0200000000000000"}})),
        (0xd1, json!({"public": {"key_type": "0000000000000000"}})),
        (0xd0, json!({"private": {"token": ""}})),
        (0xd0, json!({"curve": ""})),
        (0x140, json!({"curve": P384})),
        (0x140, json!({"mechanism": "0x1055"})),
        (0x13, json!({"mechanism": "0x0", "bits": 1024})),
        (0x13, json!({"private": {"label": "ff"}})),
        (0x70, json!({"mechanism": "0x10"})),
        (0xb5, json!({"flags": 4})),
    ] {
        let mut ask = p256("01", "one");
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        host.fails(rv, ask);
    }
    assert_eq!(bindings(&group), "", "nothing was given");
    // What it does not know is left to the key.
    host.ok(
        json!({"do": "generate", "mechanism": "0x1040", "curve": P256, "private": {"unknown": "01", "local": "00"}}),
    );
    assert!(bindings(&group).contains("zone-ecdsa-p256-1@1"));
    assert_eq!(listed(&mut host).iter().filter(|(.., label)| label == "zone-ecdsa-p256-1").count(), 2);
}
