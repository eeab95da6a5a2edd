//! Overrides, from an operator's key to what an agent lets pass.

use std::fs;

use rpki::repository::x509::Time;
use theta_rpki::overrides::{Override, OverrideError};

use super::{Desk, digits};

const DIGEST: [u8; 32] = [0xab; 32];

/// A new override with this reason.
fn new(desk: &Desk, words: &str, reason: &str) -> super::Run {
    let words =
        format!("override new --registry registry.toml --digest {} --node-key rpki-acme {words}", hex::encode(DIGEST));
    desk.run_with(&words, &["--reason", reason])
}

#[test]
fn two_of_three_operators_override_one_object() {
    let desk = Desk::new();
    let reason = "the \"court\" of Zürich";
    let made = new(&desk, "--key 11.key --out o.toml --json", reason).ok().json();
    assert_eq!(made["override"]["reason"], reason);
    assert_eq!(made["keys"]["missing"], 1);
    let registry = desk.registry();
    let few = OverrideError::Signatures { count: 1, need: 2 };
    assert_eq!(Override::read(&desk.text("o.toml"), &registry), Err(few));
    let show = "override show --registry registry.toml o.toml";
    desk.run(show).ok().says("it does not count now: 1 of 2 operators have signed");

    let once = desk.text("o.toml");
    let sign = |key: &str| desk.run(&format!("override sign --registry registry.toml --key {key} o.toml --yes"));
    sign("1.key").fails(1, "is no key of the operators");
    sign("11.key").fails(1, "o.toml has a signature of");
    desk.run("override sign --registry registry.toml --key 13.key o.toml").fails(1, "nobody is there to be asked");
    assert_eq!(desk.text("o.toml"), once);
    sign("13.key").ok().says("that is enough");
    let shown = desk.run(&format!("{show} --json")).ok().json();
    assert_eq!(shown["counts"], true);
    assert_eq!(shown["keys"]["unsigned"][0], digits(12));

    let one = Override::read(&desk.text("o.toml"), &registry).unwrap();
    let now = Time::now().timestamp();
    assert!(one.permits("rpki-acme", &DIGEST, now) && !one.permits("rpki-ta", &DIGEST, now));
    assert!(!one.permits("rpki-acme", &DIGEST, now + 8 * 86_400), "a week is enough if nobody says otherwise");
    assert_eq!(one.reason, reason);
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let desk = Desk::new();
    new(&desk, "--out o.toml", "two\nlines").fails(1, "its reason is a line");
    new(&desk, "--key 9.key --out o.toml", "r").fails(1, "is no key of the operators");
    let words = "override new --registry registry.toml --digest 00 --node-key rpki-acme --reason r --out o.toml";
    desk.run(words).fails(2, "a digest is SHA-256");
    assert!(!desk.path("o.toml").exists());
    new(&desk, "--until 2020-01-01T00:00:00Z --key 11.key --out o.toml", "r").ok();
    new(&desk, "--out o.toml", "r").fails(1, "o.toml exists already");
    desk.run("override sign --registry registry.toml --key 12.key o.toml --yes").ok();
    desk.run("override show --registry registry.toml o.toml").ok().says("it ended at 2020-01-01T00:00:00Z");

    let data = desk.text("registry.toml");
    let (without, _) = data.split_once("[operators]").unwrap();
    fs::write(desk.path("registry.toml"), without).unwrap();
    desk.run("override show --registry registry.toml o.toml").fails(1, "name no operators");
}
