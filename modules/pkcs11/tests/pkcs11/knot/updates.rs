//! Dynamic updates (RFC 2136): `knsupdate` asks, and Knot answers when the change is signed.

use std::fs;

use theta_knot::{
    config::signing,
    places::Places,
    server::{Knot, Setup},
};

use super::{
    PATIENCE, RECORDS, ZONE,
    agents::{ED25519, prepared},
};
use crate::{
    group::{log, module, until},
    harness::Group,
};

/// A name server that takes updates from this machine.
fn start(group: &Group) -> Knot {
    let module = module().display().to_string();
    let words = ["pkcs11", "config", "--client", "host.client", "--module", &module, "--pool", "zone", "knot"];
    let config = signing(&group.theta(&words).ok().text(), ZONE, ED25519.knot);
    let domain = "  - domain: example.\n";
    assert_eq!(config.matches(domain).count(), 1, "{config}");
    let config = config.replace(domain, &format!("{domain}    acl: updates\n"));
    let config = format!("acl:\n  - id: updates\n    address: 127.0.0.1\n    action: update\n{config}");
    let setup = Setup { folder: group.path(), zone: ZONE, records: RECORDS, config: &config };
    Knot::start_within(&Places::of_this_machine(), setup, 3 * PATIENCE).unwrap()
}

/// Whether the server takes this update; why, if not.
fn update(group: &Group, knot: &Knot, change: &str) -> Result<(), String> {
    group.file("update", format!("server 127.0.0.1 {}\nzone {ZONE}\nupdate {change}\nsend\n", knot.port()));
    knot.tool("knsupdate", &["-t", "30", "update"]).map(drop).map_err(|error| error.to_string())
}

/// What is in the operators' copies is signed before the update is answered; what is in none changes nothing.
#[test]
fn knsupdate_changes_what_the_operators_have_agreed_on() {
    Places::of_this_machine().check(&["knsupdate"]).unwrap();
    let (group, agents) = prepared((ED25519.suite, ED25519.operation), 2..=4, RECORDS, None, "");
    let knot = start(&group);
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    let before = fs::read_to_string(knot.zone_file()).unwrap();
    let add = "add mail.example. 1 A 192.0.2.7";
    let refused = update(&group, &knot, add).unwrap_err();
    assert!(refused.contains("SERVFAIL"), "{refused}");
    assert!(log(&group).contains("agent zone refuses it: there is no mail.example. A in the zone"), "{}", log(&group));
    assert_eq!(fs::read_to_string(knot.zone_file()).unwrap(), before, "the old zone is served");

    for node in 2..=4 {
        fs::write(group.node_dir(node).join("example.zone"), format!("{RECORDS}mail 1 A 192.0.2.7\n")).unwrap();
    }
    until("the update is signed", PATIENCE, || update(&group, &knot, add).is_ok());
    let answer = knot.ask("mail.example.").unwrap();
    assert!(answer.contains("192.0.2.7") && answer.contains("A 15 2 "), "{answer}");
    knot.verify().unwrap();
    drop(agents);
}
