//! A zone whose signatures are made before the name server asks for them, by what an operator's agent knows of it.

use std::fs;

use theta_dnssec::{denial::hashed::Parameters, look_ahead::serve_ahead};

use super::{
    PATIENCE, RECORDS,
    agents::{open_agent, prepared},
    start_with,
};
use crate::{
    group::{log, until},
    harness::Group,
};

const P256: (&str, &str) = ("ecdsa-p256", "sign-digest");
const CONFIG: &str = "look_ahead = \"ahead.sock\"\n";
/// How many names with an address there are beside the zone's own.
const NAMES: usize = 200;

fn records() -> String {
    let hosts = (0..NAMES).map(|number| format!("host-{number} A 192.0.2.{}\n", number % 256));
    RECORDS.to_owned() + &hosts.collect::<String>()
}

/// What the module says of the last event: how many signatures there were, and how many of them were made ahead.
fn reported(group: &Group) -> Option<(usize, usize)> {
    let said = log(group);
    let line = said.lines().rev().find(|line| line.contains(" were made ahead"))?;
    let numbers = line.split(' ').filter_map(|word| word.parse().ok()).collect::<Vec<_>>();
    Some((numbers[0], numbers[1]))
}

/// Signs a zone with the agents of all nodes but the first, and looks ahead with this copy of it; the module's report.
fn signed_ahead(knot_algorithm: &str, nsec3: Option<&Parameters>, copy: &str) -> (Group, Option<(usize, usize)>) {
    let records = records();
    let (group, agents) = prepared(P256, 2..=4, &records, nsec3, CONFIG);
    let folder = group.path().join("name-server");
    fs::create_dir(&folder).unwrap();
    let agent = open_agent(&group, &folder, copy, nsec3.cloned());
    let service = serve_ahead(&agent, &group.path().join("ahead.sock")).unwrap();
    let knot = start_with(&group, knot_algorithm, &records);
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    assert!(knot.ask("host-7.example.").unwrap().contains("A 13 2 "), "{}", knot.said());
    assert!(!knot.said().contains("error:"), "{}", knot.said());
    drop((agents, service));
    let report = reported(&group);
    (group, report)
}

/// All nodes but one ask agents about each of them, as about any other.
#[test]
fn most_signatures_of_a_zone_are_made_ahead() {
    let (group, report) = signed_ahead("ecdsap256sha256", None, &records());
    let (all, ahead) = report.unwrap_or_else(|| panic!("no report: {}", log(&group)));
    // An address and a denial for each name.
    assert!(all >= 2 * NAMES && ahead >= all * 9 / 10, "{ahead} of {all}: {}", log(&group));
    assert!(!log(&group).contains("are not made ahead"), "{}", log(&group));
    let told = group.theta(&["audit", "show", "--node", "2", "--refused", "--last", "1000"]).ok().text();
    assert!(!told.contains("agent zone"), "{told}");
}

#[test]
fn most_signatures_of_a_zone_with_nsec3_are_made_ahead() {
    let algorithm = "ecdsap256sha256\n    nsec3: on\n    nsec3-salt-length: 0";
    let (group, report) = signed_ahead(algorithm, Some(&Parameters::default()), &records());
    let (all, ahead) = report.unwrap_or_else(|| panic!("no report: {}", log(&group)));
    assert!(all >= 2 * NAMES && ahead >= all * 9 / 10, "{ahead} of {all}: {}", log(&group));
}

/// Whoever says what will be signed says of a record that is in nobody's zone: no node with an agent signs it, and the zone is signed all the same.
#[test]
fn what_is_in_no_zone_is_not_signed_ahead() {
    let foreign = records() + "host-1-evil A 192.0.2.66\n";
    let (group, _) = signed_ahead("ecdsap256sha256", None, &foreign);
    until("the operators' agents refuse it", PATIENCE, || log(&group).contains("are not made ahead"));
    assert!(log(&group).contains("agent zone refuses it"), "{}", log(&group));
    for node in ["2", "3", "4"] {
        let told = group.theta(&["audit", "show", "--node", node, "--refused", "--last", "1000"]).ok().text();
        assert!(told.contains("no record set of the zone has this digest with times of now"), "{told}");
    }
}
