//! Overrides, from an operator's key to what an agent lets pass.

use std::fs;

use rpki::repository::x509::Time;
use sha2::{Digest as _, Sha256};
use theta_rpki::overrides::{OverrideError, Overriding};

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
    let read = || Overriding::signed(&desk.text("o.toml"), registry.operators.as_ref());
    assert_eq!(read(), Err(few));
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

    let Ok(Overriding::Object(one)) = read() else { panic!("one object") };
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

#[test]
fn two_of_three_operators_state_in_a_members_place() {
    let desk = Desk::new();
    let about = "--registry registry.toml --member acme --roa AS64496 --prefix 192.0.2.0/24-26";
    let reason = ["--reason", "the \"court\" of Zürich"];
    let made = desk.run_with(&format!("override grant {about} --days 30 --key 11.key --out g.toml --json"), &reason);
    let made = made.ok().json();
    assert_eq!((&made["override"]["act"], &made["keys"]["missing"]), (&"grant".into(), &1.into()));
    let registry = desk.registry();
    let read = |file: &str| Overriding::signed(&desk.text(file), registry.operators.as_ref());
    assert_eq!(read("g.toml"), Err(OverrideError::Signatures { count: 1, need: 2 }));
    let show = "override show --registry registry.toml g.toml";
    desk.run(show).ok().says("it does not count now: 1 of 2 operators have signed");
    // A member's key is none of an operator, and an operator's is none of the member.
    desk.run("override sign --registry registry.toml --key 1.key g.toml --yes").fails(1, "is no key of the operators");
    desk.run("statement sign --key 12.key g.toml --yes").fails(1, "unknown field");
    let signed = desk.run("override sign --registry registry.toml --key 13.key g.toml --yes").ok();
    let shown = desk.run(show).ok().says("it counts now").says("because: the \\\"court\\\" of Zürich");
    let Ok(Overriding::Statement(one)) = read("g.toml") else { panic!("a statement") };
    let digest = hex::encode(Sha256::digest(one.signed_bytes()));
    let head = "OVERRIDE: operators grant in acme's place, whatever it states itself, by their statement";
    shown.says(head).says("192.0.2.0/24, and its parts of up to 26 bits").says(&digest);
    assert!(
        [head, "192.0.2.0/24, and its parts", &digest].iter().all(|part| signed.stderr.contains(part)),
        "{signed:?}"
    );
    let now = Time::now().timestamp();
    assert!(one.until > now + 29 * 86_400 && one.until <= now + 30 * 86_400);
    assert_eq!(one.reason, reason[1]);

    // It withdraws as well, and later than now.
    let later = "override withdraw --registry registry.toml --member acme --aspa AS64496 --from 2990-01-01T00:00:00Z --key 11.key --out w.toml";
    desk.run_with(later, &reason).ok().says("OVERRIDE: operators withdraw in acme's place");
    desk.run("override sign --registry registry.toml --key 12.key w.toml --yes").ok();
    desk.run("override show --registry registry.toml w.toml").ok().says("it begins at 2990-01-01T00:00:00Z");
    let Ok(Overriding::Statement(one)) = read("w.toml") else { panic!("a statement") };
    assert!(!one.statement.is_grant() && one.until == one.statement.from + 7 * 86_400, "{one:?}");
}

#[test]
fn operators_state_nothing_that_makes_no_sense() {
    let desk = Desk::new();
    let grant = |words: &str, reason: &str| {
        let words = format!("override grant --registry registry.toml --key 11.key --out g.toml {words}");
        desk.run_with(&words, &["--reason", reason])
    };
    grant("--member acme --roa AS64496 --prefix 198.51.100.0/24", "r").fails(1, "acme does not hold what the ROA of");
    grant("--member nobody --roa AS64496 --prefix 192.0.2.0/24", "r").fails(1, "nobody is no member");
    grant("--member acme --roa AS64496 --prefix 192.0.2.0/24", "two\nlines").fails(1, "its reason is a line");
    grant("--member acme --roa AS64496 --prefix 192.0.2.0/24 --until 2020-01-01T00:00:00Z", "r")
        .fails(1, "has an end (until), after its beginning");
    desk.run("override grant --registry registry.toml --member acme --roa AS64496 --prefix 192.0.2.0/24 --out g.toml")
        .fails(2, "--reason");
    assert!(!desk.path("g.toml").exists());
}
