//! One of four nodes sends false shares while Knot DNS signs. The zone is signed all the same, and the node is named by `theta status` and by
//! `theta doctor`; in the module's log, too, if the answer that came first is that of a node which had found it out by then.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

use super::{PATIENCE, start};
use crate::{
    generation::{import_rsa, ready},
    group::{log, until},
    harness::Group,
};

/// The node that lies.
const LIAR: u16 = 4;

/// Runs, in the place of a node that was told to run, the one of the demonstration: honest in everything but its shares, in whose place it sends those
/// of other requests. No build of the product has it.
fn liar() -> Command {
    let program = std::env::current_exe().unwrap().parent().unwrap().with_file_name("theta-demo");
    assert!(
        program.is_file(),
        "{} is missing: it is built with the tests of the workspace, and by cargo build -p theta-demo",
        program.display()
    );
    let mut shell = Command::new("sh");
    // The first two words are those of the product: node run.
    shell.args(["-c", "shift 2; exec \"$0\" _x_liar \"$@\""]).arg(program);
    shell
}

/// Everybody whom somebody accuses.
fn named(group: &Group) -> BTreeSet<u64> {
    let status = group.theta(&["status", "--json"]).ok().json();
    let culprits = status["culprits"].as_array().unwrap().iter();
    culprits.map(|culprit| culprit["node"].as_u64().unwrap()).collect()
}

/// A zone that is signed with keys of this group is changed until the liar is named, and nobody else is. The group's nodes do not run yet.
fn the_liar_is_named(mut group: Group, algorithm: &str, signed: &str) {
    (1..LIAR).for_each(|node| group.start(node));
    group.start_by(LIAR, liar());
    group.numbers().for_each(|node| group.await_up(node));
    ready(&group, "");
    let knot = start(&group, algorithm);
    knot.await_signed(PATIENCE).unwrap();
    knot.verify().unwrap();
    let mut changes = 0;
    until("the liar is named", PATIENCE, || {
        changes += 1;
        let name = format!("host-{changes}");
        assert!(knot.tell(&["zone-begin", "example."]), "{}", knot.said());
        assert!(knot.tell(&["zone-set", "example.", &name, "1", "A", "192.0.2.7"]), "{}", knot.said());
        assert!(knot.tell(&["zone-commit", "example."]), "the zone goes on being signed: {}", knot.said());
        let answer = knot.ask(&format!("{name}.example.")).unwrap();
        assert!(answer.contains("192.0.2.7") && answer.contains(signed), "{answer}");
        !named(&group).is_empty()
    });
    assert_eq!(named(&group), BTreeSet::from([u64::from(LIAR)]), "nobody else is");
    for honest in 1..LIAR {
        assert!(!log(&group).contains(&format!("node {honest} misbehaved")), "{}", log(&group));
    }
    let findings: Value = group.theta(&["doctor", "--json"]).json();
    let misbehaved = findings["findings"].as_array().unwrap().iter().filter(|it| it["kind"] == "caught");
    let accused: Vec<String> = misbehaved.map(|it| it["nodes"].to_string()).collect();
    assert!(!accused.is_empty() && accused.iter().all(|nodes| *nodes == format!("[{LIAR}]")), "{findings}");
    assert!(knot.tell(&["zone-flush", "example."]), "{}", knot.said());
    knot.verify().unwrap();
}

/// Ed25519: the false share has to be one that a coordinator takes.
#[test]
fn who_lies_while_a_zone_is_signed_is_named() {
    let keys = "zone-frost-ed25519-1=frost-ed25519,zone-frost-ed25519-2=frost-ed25519";
    the_liar_is_named(Group::made_with(&["--keys", keys]), "ed25519", "A 15 2 ");
}

/// P-256: masks hide which share is false, and it is found by elimination, one of four being in all sets of signers that made no signature.
#[test]
fn who_lies_while_a_zone_is_signed_with_p256_is_named() {
    let keys = "zone-ecdsa-p256-1=ecdsa-p256,zone-ecdsa-p256-2=ecdsa-p256";
    the_liar_is_named(Group::made_with(&["--keys", keys]), "ecdsap256sha256", "A 13 2 ");
}

/// RSA: everybody has all shares, and looks at them if the first ones make no signature.
#[test]
fn who_lies_while_a_zone_is_signed_with_rsa_is_named() {
    let group = Group::made_with(&["--no-keys"]);
    import_rsa(&group);
    the_liar_is_named(group, "rsasha256\n    single-type-signing: on", "A 8 2 ");
}
