//! BIND, where the operators' nodes sign what is in their own copies of the zone.

use std::{collections::BTreeMap, fs};

use super::server::{Bind, PATIENCE};
use crate::{
    group::{log, until},
    harness::Group,
    knot::{
        RECORDS,
        agents::{
            named::{await_named, named},
            prepared,
        },
    },
};

/// `pkcs11-provider` sends what is to be signed, and not its digest, since the token can hash: agents see it whole, so that they need not know when
/// BIND has its signatures end, which is drawn at random.
const KEYS: (&str, &str) = ("ecdsa-p256", "sign");

/// What these operators' agents have refused.
fn refused(group: &Group) -> String {
    let words = |node| ["audit", "show", "--node", node, "--refused", "--last", "1000"];
    ["2", "3", "4"].map(|node| group.theta(&words(node)).ok().text()).concat()
}

/// The operators' copies of the zone.
fn agree(group: &Group, records: &str) {
    (2..=4).for_each(|node| fs::write(group.node_dir(node).join("example.zone"), records).unwrap());
}

/// The zone is signed from nothing, and changed; nodes 2 to 4 ask agents, and any two sign.
#[test]
fn agents_consent_to_what_bind_signs_and_to_nothing_else() {
    let (group, agents) = prepared(KEYS, 2..=4, RECORDS, None, "");
    let bind = Bind::start(&group, None, "A 13 2 ");
    // The last that BIND has to sign by itself, some seconds after its start.
    until("the parent is told of the key", PATIENCE, || bind.verify().contains("\tCDNSKEY\t"));
    bind.validate("www.example");
    // Another address, and another type.
    let records = RECORDS.replace("www A 192.0.2.1", "www A 192.0.2.8\nwww TXT \"new\"");
    agree(&group, &records);
    bind.change(&["delete www.example A", "add www.example 1 A 192.0.2.8", "add www.example 1 TXT \"new\""]);
    until("the change is signed", PATIENCE, || bind.verify().contains("\"new\""));
    let answer = bind.ask("www.example");
    assert!(answer.contains("192.0.2.8") && answer.contains("A 13 2 "), "{answer}");
    assert!(!refused(&group).contains("agent zone"), "{}{}", bind.said(), refused(&group));

    // Somebody else's address. Node 1 lets it pass.
    assert_eq!(named(&group), BTreeMap::new(), "all go by the same");
    bind.change(&["add www.example 1 A 192.0.2.66"]);
    until("BIND cannot sign it", PATIENCE, || bind.said().contains("receive_secure_serial: failure"));
    assert_eq!(bind.ask("www.example"), answer, "the old zone is served");
    assert!(
        log(&group).contains("agent zone refuses it: www.example. A has other data in the zone"),
        "{}",
        log(&group)
    );
    let said = refused(&group);
    assert_eq!(said.matches("agent zone refuses it: www.example. A has other data in the zone").count(), 3, "{said}");
    await_named(&group, 1, &[2, 3, 4], || ());
    bind.verify();
    // When it is gone, changes are signed again.
    agree(&group, &records.replace("new", "newer"));
    bind.change(&["delete www.example A 192.0.2.66", "delete www.example TXT", "add www.example 1 TXT \"newer\""]);
    until("the zone is signed again", PATIENCE, || bind.verify().contains("\"newer\""));
    assert!(bind.ask("www.example").contains("192.0.2.8"));
    drop(agents);
}

/// Where a name is new BIND has a denial signed on its way that denies all names after it: nobody consents. `dnssec-signzone` has none, and signs the
/// zone with the same keys.
#[test]
fn new_names_are_signed_by_dnssec_signzone() {
    let (group, agents) = prepared(KEYS, 2..=4, RECORDS, None, "");
    let bind = Bind::start(&group, None, "A 13 2 ");
    until("the parent is told of the key", PATIENCE, || bind.verify().contains("\tCDNSKEY\t"));
    let records = format!("{RECORDS}mail A 192.0.2.7\n");
    agree(&group, &records);
    bind.update("mail");
    until("BIND cannot sign it", PATIENCE, || bind.said().contains("receive_secure_serial: failure"));
    let said = refused(&group);
    let objection = "the NSEC record of mail.example. does not say what is in the zone: ns.example. and A RRSIG NSEC there, . and here; if that was BIND";
    assert!(said.contains(objection), "{said}");
    bind.verify();

    let before = refused(&group);
    let signed = bind.sign_anew(&group, &records);
    assert!(signed.contains("mail.example.") && signed.contains("A 13 2 1 "), "{signed}");
    assert_eq!(refused(&group), before, "nobody objects");
    drop(agents);
}
