//! Another algorithm: Knot signs the zone with keys of both, and then lets the old ones go.

use std::fs;

use super::submit;
use crate::{
    generation::pooled,
    group::{log, until},
    knot::{
        PATIENCE, RECORDS,
        agents::{attached, sources},
        bindings, start_with,
    },
};

/// From P-256, whose digests agents recognise, to Ed25519, which they see whole. The operators have agreed on the keys of both.
#[test]
fn operators_change_the_algorithm() {
    let old = ["zone-ecdsa-p256-1", "zone-ecdsa-p256-2"];
    let new = ["zone-frost-ed25519-1", "zone-frost-ed25519-2"];
    let keys = |names: [&str; 2], suite: &str| names.map(|name| format!("{name}={suite}")).join(",");
    let group = pooled(&[keys(old, "ecdsa-p256"), keys(new, "frost-ed25519")].join(","), "");
    let names: Vec<String> = old.iter().chain(&new).map(|name| (*name).to_owned()).collect();
    let agents = attached(&group, &names, "sign-digest", 1..=4, RECORDS, |group, folder| sources(group, folder, None));
    let knot = start_with(&group, "ecdsap256sha256", RECORDS);
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    submit(&knot);

    let config = fs::read_to_string(group.path().join("knot.conf")).unwrap();
    assert_eq!(config.matches("algorithm: ecdsap256sha256").count(), 1, "{config}");
    group.file("knot.conf", config.replace("algorithm: ecdsap256sha256", "algorithm: ed25519"));
    assert!(knot.tell(&["reload"]), "{}", knot.said());
    let zone = || fs::read_to_string(knot.zone_file()).unwrap();
    let keys = |algorithm: &str| {
        let fields = format!(" 3 {algorithm} ");
        zone().lines().filter(|line| line.contains("\tDNSKEY\t") && line.contains(&fields)).count()
    };
    until("the zone has keys of both", PATIENCE, || (keys("13"), keys("15")) == (2, 2));
    knot.verify().unwrap();
    submit(&knot);
    until("the old keys are let go", PATIENCE, || bindings(&group).matches("state = \"released\"").count() == 2);
    until("the new keys are alone", PATIENCE, || (keys("13"), keys("15")) == (0, 2));
    until("the old signatures are gone", PATIENCE, || {
        !zone()
            .lines()
            .any(|line| line.split_once("RRSIG\t").is_some_and(|(_, data)| data.split(' ').nth(1) == Some("13")))
    });
    knot.verify().unwrap();
    let answer = knot.ask("www.example.").unwrap();
    assert!(answer.contains("192.0.2.1") && answer.contains("A 15 2 ") && !answer.contains("A 13 "), "{answer}");
    let keys = knot.keys().unwrap();
    assert!(keys.len() == 2 && keys.iter().all(|key| key.contains("ED25519")), "{keys:?}");
    for name in old {
        let binding = bindings(&group);
        let part = binding.split("[[").find(|part| part.contains(&format!("{name}@1"))).unwrap();
        assert!(part.contains("state = \"released\""), "{binding}");
    }
    assert!(!log(&group).contains("agent zone"), "{}", log(&group));
    drop(agents);
}
