//! Statements, from a member's key to what the library counts.

use std::{fs, os::unix::fs::PermissionsExt as _};

use rpki::repository::x509::Time;
use theta_rpki::statements::{Authorised, Statement, StatementError};

use super::{Desk, digits};
use crate::issuer::roa;

const GRANT: &str = "statement grant --registry registry.toml --member acme --roa AS64496 --prefix 192.0.2.0/24-26";

/// What an agent reads.
fn read_statement(text: &str, desk: &Desk) -> Result<Statement, StatementError> {
    let (statement, signatures) = Statement::parse(text)?;
    statement.check(&desk.registry(), &signatures).map(|()| statement)
}

fn now() -> i64 {
    Time::now().timestamp()
}

#[test]
fn a_key_is_made_once_and_for_its_owner_alone() {
    let desk = Desk::new();
    let made = desk.run("key new --out ann.key --json").ok().json();
    let key = made["key"].as_str().unwrap();
    assert_eq!((key.len(), made["file"].as_str()), (64, Some("ann.key")));
    assert_eq!(fs::metadata(desk.path("ann.key")).unwrap().permissions().mode() & 0o777, 0o600);
    let before = desk.text("ann.key");
    desk.run("key new --out ann.key").fails(1, "ann.key exists already");
    assert_eq!(desk.text("ann.key"), before);
    assert_ne!(desk.run("key new --out ben.key").ok().stdout.trim(), key);

    // The key that was printed is the one that signs.
    let data = desk.text("registry.toml").replace(&digits(1), key);
    fs::write(desk.path("registry.toml"), data).unwrap();
    let report = desk.run(&format!("{GRANT} --key ann.key --out 1.toml --json")).ok().json();
    assert_eq!(report["keys"]["signed"][0], key);
}

#[test]
fn two_of_three_keys_make_a_statement_count() {
    let desk = Desk::new();
    let made = desk.run(&format!("{GRANT} --number 7 --key 1.key --out 7.toml --json")).ok().json();
    assert_eq!(made["keys"]["need"], 2);
    assert_eq!(made["keys"]["missing"], 1);
    assert_eq!(made["keys"]["signed"][0], digits(1));
    let once = desk.text("7.toml");
    let few = StatementError::Signatures { member: "acme".to_owned(), count: 1, need: 2 };
    assert_eq!(read_statement(&once, &desk), Err(few));
    let shown = desk.run("statement show --registry registry.toml 7.toml --json").ok().json();
    assert_eq!(shown["counts"], false);
    assert_eq!(shown["reason"], "1 of 2 keys of acme have signed");

    // Nobody says yes.
    let sign = "statement sign --registry registry.toml --key 3.key 7.toml";
    let asked = desk.run(sign).fails(1, "nobody is there to be asked");
    assert!(asked.stderr.contains("192.0.2.0/24, and its parts of up to 26 bits"), "{asked:?}");
    assert_eq!(desk.text("7.toml"), once);

    let signed = desk.run(&format!("{sign} --yes --json")).ok().json();
    assert_eq!(signed["keys"]["missing"], 0);
    desk.run(&format!("{sign} --yes")).fails(1, "7.toml has a signature of");
    let statement = read_statement(&desk.text("7.toml"), &desk).unwrap();
    assert_eq!((statement.number, statement.is_grant()), (7, true));
    let authorised = Authorised::at(&[statement], now());
    let stated = roa(64_496, &["192.0.2.0/24-26"]);
    assert_eq!(authorised.of("acme").collect::<Vec<_>>(), [&stated]);
    desk.run("statement show --registry registry.toml 7.toml").ok().says("it counts now").says("that is enough");
}

#[test]
fn a_key_that_is_not_the_members_is_refused() {
    let desk = Desk::new();
    desk.run(&format!("{GRANT} --key 9.key --out 1.toml")).fails(1, "is no key of acme");
    assert!(!desk.path("1.toml").exists());
    desk.run(&format!("{GRANT} --out 1.toml")).ok().says("2 more, and it is enough");
    let unsigned = desk.text("1.toml");
    desk.run("statement sign --registry registry.toml --key 11.key 1.toml --yes").fails(1, "is no key of acme");
    fs::set_permissions(desk.path("registry.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    desk.run("statement sign --key registry.toml 1.toml --yes").fails(1, "others can read");
    fs::set_permissions(desk.path("registry.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    desk.run("statement sign --key registry.toml 1.toml --yes").fails(1, "is not an Ed25519 private key");
    assert_eq!(desk.text("1.toml"), unsigned);

    // Without the registry's data nobody knows whose key it is, and its signature counts for nothing.
    desk.run("statement sign --key 9.key 1.toml --yes").ok();
    let shown = desk.run("statement show --registry registry.toml 1.toml --json").ok().json();
    assert_eq!(shown["keys"]["missing"], 2);
    assert_eq!(shown["keys"]["void"][0], digits(9));
    assert_eq!(shown["counts"], false);
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let desk = Desk::new();
    let grant = "statement grant --registry registry.toml --out 1.toml --member";
    for (words, code, reason) in [
        ("acme --roa AS64496 --prefix 192.0.2.1/24", 2, "192.0.2.1/24 is no prefix such as"),
        ("acme --roa 64x --prefix 192.0.2.0/24", 2, "64x is no number of a network"),
        ("acme --roa AS64496", 2, "--prefix"),
        ("acme", 2, "--roa"),
        ("acme --roa AS64496 --prefix 192.0.2.0/24 --aspa AS64496 --provider AS1", 2, "cannot be used with"),
        ("acme --aspa AS64496 --provider AS1 --prefix 192.0.2.0/24", 2, "cannot be used with"),
        (
            "acme --roa AS64496 --prefix 198.51.100.0/24",
            1,
            "acme does not hold what the ROA of AS64496 for 198.51.100.0/24 is about; it holds",
        ),
        ("acme --aspa AS64497 --provider AS1", 1, "acme does not hold what the ASPA of AS64497"),
        ("acme --aspa AS64496 --provider AS64496", 1, "not the customer among them"),
        ("acme --aspa AS64496", 1, "an ASPA has 1 to 4000 providers"),
        ("nobody --roa AS64496 --prefix 192.0.2.0/24", 1, "nobody is no member"),
        ("acme --roa AS64496 --prefix 192.0.2.0/24 --until 2020-01-01T00:00:00Z", 1, "a grant has an end"),
        ("acme --roa AS64496 --prefix 192.0.2.0/24 --until tomorrow", 2, "is not a point in time"),
    ] {
        desk.run(&format!("{grant} {words}")).fails(code, reason);
        assert!(!desk.path("1.toml").exists(), "{words}");
    }
}

#[test]
fn a_file_that_is_there_is_left_as_it_is() {
    let desk = Desk::new();
    fs::write(desk.path("1.toml"), "somebody else's").unwrap();
    desk.run(&format!("{GRANT} --key 1.key --out 1.toml")).fails(1, "1.toml exists already");
    assert_eq!(desk.text("1.toml"), "somebody else's");
    // A file to which no signature can be added.
    desk.run(&format!("{GRANT} --out 2.toml")).ok();
    let inline = format!("signature = []\n{}", desk.text("2.toml"));
    fs::write(desk.path("2.toml"), &inline).unwrap();
    desk.run("statement sign --key 1.key 2.toml --yes").fails(1, "no signature can be added at its end");
    assert_eq!(desk.text("2.toml"), inline);
}

#[test]
fn a_withdrawal_comes_after_what_it_withdraws() {
    let desk = Desk::new();
    fs::create_dir_all(desk.path("statements/acme")).unwrap();
    let sign = |file: &str| desk.run(&format!("statement sign --key 2.key statements/acme/{file} --yes")).ok();
    desk.run(&format!("{GRANT} --number 41 --key 1.key --out statements/acme/41.toml")).ok();
    sign("41.toml");
    let show = |file: &str| {
        let words = "statement show --registry registry.toml --statements statements --json";
        desk.run(&format!("{words} statements/acme/{file}")).ok().json()
    };
    assert_eq!(show("41.toml")["counts"], true);

    let withdraw = GRANT.replace("grant", "withdraw");
    let made =
        desk.run(&format!("{withdraw} --statements statements --key 1.key --out statements/acme/42.toml --json"));
    let made = made.ok().json();
    assert_eq!(made["statement"]["number"], 42);
    assert_eq!(made["statement"]["act"], "withdraw");
    assert_eq!(show("41.toml")["counts"], true, "one signature withdraws nothing");
    sign("42.toml");
    let shown = show("41.toml");
    assert_eq!(shown["counts"], false);
    assert_eq!(shown["reason"], "statement 42, in statements/acme/42.toml, decides in its place");
    assert_eq!(show("42.toml")["counts"], true);
    let read = |file: &str| read_statement(&desk.text(&format!("statements/acme/{file}")), &desk).unwrap();
    assert_eq!(Authorised::at(&[read("41.toml"), read("42.toml")], now()).of("acme").count(), 0);

    // An ASPA is withdrawn without its providers, and without a folder the number is the time.
    let words = "statement withdraw --registry registry.toml --member acme --aspa AS64496 --out 43.toml --json";
    let made = desk.run(words).ok().json();
    assert!(made["statement"]["number"].as_i64().unwrap() > 1_700_000_000);
    assert_eq!(made["statement"].get("until"), None);
}

#[test]
fn a_statement_counts_from_its_beginning_to_its_end() {
    let desk = Desk::new();
    for (words, reason) in [
        ("--from 2020-01-01T00:00:00Z --until 2021-01-01T00:00:00Z", "it ended at 2021-01-01T00:00:00Z"),
        ("--from 2999-01-01T00:00:00Z --days 3", "it begins at 2999-01-01T00:00:00Z"),
    ] {
        desk.run(&format!("{GRANT} {words} --key 1.key --out 1.toml")).ok();
        desk.run("statement sign --key 2.key 1.toml --yes").ok();
        desk.run("statement show --registry registry.toml 1.toml").ok().says(reason);
        fs::remove_file(desk.path("1.toml")).unwrap();
    }
}
