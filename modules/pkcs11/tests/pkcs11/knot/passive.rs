//! Keys with passive security: a zone is signed with them where the configuration says so, and nowhere else.

use std::fs;

use serde_json::{Value, json};

use super::{PATIENCE, bindings, start};
use crate::{
    generation::{P256, ready},
    group::{configure, log},
    harness::Group,
    host::Host,
};

/// What `theta pkcs11 pool` says.
fn pool(group: &Group, words: &[&str]) -> Value {
    group.theta(&[&["pkcs11", "pool", "--config", "pkcs11.toml", "--json"], words].concat()).ok().json()
}

/// Algorithm 13, any two of three nodes: the zone is signed and verified like any other. A module whose configuration does not say passive takes none
/// of these keys, and says why.
#[test]
fn passive_keys_sign_a_zone_where_that_was_said_and_nowhere_else() {
    let mut group = Group::made_with(&["--nodes", "3", "--threshold", "2", "--no-keys"]);
    group.start_all();
    ready(&group, "security = \"passive\"\n");
    let fill = ["--level", "3", "--suite", "ecdsa-p256"];
    let words = [&["pkcs11", "pool", "--config", "pkcs11.toml"], &fill[..]].concat();
    group.theta(&words).fails(2, &["active security are to be made", "says security = \"passive\""]);
    let filling = [&["pkcs11", "pool", "--config", "pkcs11.toml", "--security", "passive"], &fill[..]].concat();
    let filled = group.theta(&filling).ok();
    assert!(filled.stderr.contains("key zone-ecdsa-p256-NUMBER has passive security"), "{filled:?}");
    let shown = group.theta(&["keys", "show", "zone-ecdsa-p256-1", "--live"]).ok().text();
    assert!(shown.contains("  passive  "), "{shown}");

    let knot = start(&group, "ecdsap256sha256");
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    let answer = knot.ask("www.example.").unwrap();
    assert!(answer.contains("192.0.2.1") && answer.contains("A 13 2 "), "{answer}");
    let given = bindings(&group);
    assert!(given.contains("zone-ecdsa-p256-1@1") && given.contains("zone-ecdsa-p256-2@1"), "{given}");

    // Another host of the same pool, whose operator has not said that such keys will do: the third is free, and not for it.
    configure(&group, "pool = \"zone\"\n");
    let mut host = Host::ready(&group);
    host.ok(json!({"do": "generate", "mechanism": "0x1040", "curve": P256, "id": "01", "label": "01"}));
    host.ok(json!({"do": "sign", "key": "01", "mechanism": "ecdsa-sha256", "data": "01"}));
    let said = log(&group);
    let why = "zone-ecdsa-p256-3@1 is given to no host: it has passive security, and the configuration says active: a holder that does not follow the \
               protocol may learn it";
    assert!(said.contains(why), "{said}");
    assert!(said.contains("the group has made zone-ecdsa-p256-4"), "{said}");
    let given = fs::read_to_string(group.path().join("bindings.toml")).unwrap();
    assert!(!given.contains("zone-ecdsa-p256-3@1") && given.contains("zone-ecdsa-p256-4@1"), "{given}");
    let shown = group.theta(&["keys", "show", "zone-ecdsa-p256-4", "--live"]).ok().text();
    assert!(shown.contains("  all  "), "{shown}");
    let counted = pool(&group, &[]);
    assert_eq!(counted["suites"][0]["free"], 0, "{counted}");
}
