//! An operator whose agent has its copy from a name server of the operator's own, by transfers with TSIG, beside others who have files.

use std::{fs, time::Duration};

use theta_dnssec::{
    sources::{CopyFrom, Sources},
    transfer::{Primary, tsig::Key},
};
use theta_knot::{
    places::Places,
    server::{Knot, Setup},
};

use super::{
    PATIENCE, RECORDS, ZONE,
    agents::{ED25519, prepared_with, set, sources},
    start_with,
    transfers::{SECRET, config},
};
use crate::{
    group::{log, until},
    harness::Group,
};

/// What nodes have refused.
fn refused(group: &Group, node: &str) -> String {
    group.theta(&["audit", "show", "--node", node, "--refused", "--last", "1000"]).ok().text()
}

/// Node 1 lets everything pass, nodes 3 and 4 have files that stay as they are, and any two sign: whether a new record is signed is for operator 2, whose
/// own name server has it or has it not.
#[test]
fn a_change_that_is_transferred_is_signed_and_a_foreign_record_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let config = config();
    let setup = Setup { folder: folder.path(), zone: ZONE, records: RECORDS, config: &config };
    let primary = Knot::start(&Places::of_this_machine(), setup).unwrap();
    let transferred = |group: &Group| {
        let key = Key::parse(&format!("hmac-sha256 transfer. {SECRET}")).unwrap();
        let address = format!("127.0.0.1:{}", primary.port());
        let primary = Primary { address, key, refresh: Duration::from_millis(200) };
        let zone = CopyFrom::Primary(Box::new(primary), Vec::new());
        Sources { zone, ..sources(group, &group.node_dir(2), None) }
    };
    let (group, agents) = prepared_with((ED25519.suite, ED25519.operation), 2..=4, RECORDS, "", |group, folder| {
        if *folder == group.node_dir(2) { transferred(group) } else { sources(group, folder, None) }
    });
    fs::remove_file(group.node_dir(2).join("example.zone")).unwrap();
    until("the zone is transferred", PATIENCE, || has_sent(&primary, "AXFR"));
    let knot = start_with(&group, ED25519.knot, RECORDS);
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();

    let record = ["mail", "1", "A", "192.0.2.7"];
    assert!(!set(&knot, &record), "{}", knot.said());
    let objection = "agent zone refuses it: there is no mail.example. A in the zone";
    assert!(refused(&group, "2").contains(objection), "{}", refused(&group, "2"));
    assert!(set(&primary, &record), "{}", primary.said());
    until("the change is transferred", PATIENCE, || has_sent(&primary, "IXFR"));
    until("the change is signed", PATIENCE, || set(&knot, &record));
    let answer = knot.ask("mail.example.").unwrap();
    assert!(answer.contains("192.0.2.7") && answer.contains("A 15 2 "), "{answer}");
    knot.verify().unwrap();

    let before = fs::read_to_string(knot.zone_file()).unwrap();
    assert!(!set(&knot, &["victim", "1", "A", "192.0.2.66"]), "{}", log(&group));
    let objection = "agent zone refuses it: there is no victim.example. A in the zone";
    assert!(refused(&group, "2").contains(objection), "{}", refused(&group, "2"));
    assert_eq!(fs::read_to_string(knot.zone_file()).unwrap(), before, "the old zone is served");
    drop(agents);
}

/// Whether the primary has sent a whole answer of this kind; it sends none without the key.
fn has_sent(primary: &Knot, kind: &str) -> bool {
    let words = format!("{kind}, outgoing, ");
    primary.said().lines().any(|line| line.contains(&words) && line.contains("finished"))
}
