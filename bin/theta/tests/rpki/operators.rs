//! What operators state in a member's place: taken up by a threshold of the registries, it is issued, published and validated, and flagged everywhere; it ends by
//! itself, or as operators state later, and nobody else takes it away.

use std::{
    fs,
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rpki::repository::x509::Time;

use crate::registries::{Origins, Registries, origins};

const REASON: &str = "acme-has-lost-its-keys";
const MEMBERS: (u64, &str) = (64_496, "192.0.2.0/24");
const LOST: (u64, &str) = (64_500, "192.0.2.0/25");
const SHORT: (u64, &str) = (64_501, "192.0.2.128/25");
/// So many seconds the one lasts that ends by itself: longer than what is done meanwhile takes.
const LASTS: u64 = 90;

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// One operator states something in the member's place.
fn state(registries: &Registries, act: &str, (network, prefix): (u64, &str), end: &str, file: &str) {
    let about = format!("--registry registry.toml --member acme --roa AS{network} --prefix {prefix}");
    registries.rpki(&format!("override {act} {about} --reason {REASON} {end} --key one.op --out {file}"));
}

/// And the second one, which is enough; its SHA-256 on record.
fn sign(registries: &Registries, file: &str) -> String {
    let said = registries.rpki(&format!("override sign --registry registry.toml --key two.op {file} --yes"));
    assert!(said.contains("that is enough"), "{said}");
    let digest = said.split("its SHA-256 in records is ").nth(1).unwrap();
    digest.lines().next().unwrap().to_owned()
}

/// Where all registries see it.
fn show(registries: &Registries, file: &str) {
    let shown = registries.path().join("store/overrides");
    fs::create_dir_all(&shown).unwrap();
    fs::copy(registries.path().join(file), shown.join(file)).unwrap();
}

fn take_up(registries: &Registries, node: u16, file: &str) {
    fs::copy(registries.path().join(file), registries.folder(node).join("overrides").join(file)).unwrap();
}

/// What relying parties have after a run of the issuer, which is done with all of it, or is not.
#[track_caller]
fn validated(registries: &Registries, is_done: bool) -> Origins {
    let run = registries.issue("registry.toml", "statements", "issued");
    if is_done {
        run.ok()
    } else {
        run.fails()
    };
    registries.publish().ok();
    let validated = registries.validated();
    assert_eq!(registries.routinated(), validated);
    validated
}

#[test]
fn three_registries_grant_in_a_members_place_and_all_see_it() {
    let registries = Registries::new();
    registries.grant("1.toml", "AS64496", MEMBERS.1);
    assert_eq!(validated(&registries, true), origins(&[MEMBERS]));

    // One of two operators has signed, and everybody has it.
    let end = format!("--until {}", moment(now() + LASTS));
    state(&registries, "grant", LOST, "--days 30", "lost.toml");
    state(&registries, "grant", SHORT, &end, "short.toml");
    let ends = now() + LASTS;
    show(&registries, "lost.toml");
    (1..=5).for_each(|node| take_up(&registries, node, "lost.toml"));
    registries.wait();
    assert_eq!(validated(&registries, true), origins(&[MEMBERS]));
    (1..=5).for_each(|node| fs::remove_file(registries.folder(node).join("overrides/lost.toml")).unwrap());

    // Both have signed, and two registries have taken it up.
    let digests = ["lost.toml", "short.toml"].map(|file| (file, sign(&registries, file)));
    for (file, _) in &digests {
        (1..=2).for_each(|node| take_up(&registries, node, file));
        show(&registries, file);
    }
    registries.wait();
    assert_eq!(validated(&registries, false), origins(&[MEMBERS]));
    // The issuer of a registry that has not taken it up asks nobody for it.
    let own = registries.folder(5).join("overrides");
    registries.issue_by(&format!("--overrides {}", own.display())).ok();

    // Three have: without any signature of the member it is published.
    digests.iter().for_each(|(file, _)| take_up(&registries, 3, file));
    registries.wait();
    assert_eq!(validated(&registries, true), origins(&[MEMBERS, LOST, SHORT]));
    for ((_, digest), (network, prefix)) in digests.iter().zip([LOST, SHORT]) {
        check_seen(&registries, digest, &format!("the ROA of AS{network} for {prefix}"));
    }
    let own = registries.folder(1).join("overrides");
    let said = registries
        .rpki(&format!("check --registry registry.toml --statements statements --overrides {}", own.display()));
    assert!(said.contains("  OVERRIDE: the ROA of AS64500 for 192.0.2.0/25, until"), "{said}");
    assert!(said.contains(&format!("the ROA of AS64500 for 192.0.2.0/25 ({REASON}) until")), "{said}");

    // Whoever has the member's key takes nothing of it away, with whatever number.
    registries.withdraw("2.toml", "AS64500", LOST.1);
    assert_eq!(validated(&registries, true), origins(&[MEMBERS, LOST, SHORT]));

    // Operators state later what is to be, also in the place of what the member has granted.
    // The number is said for one of them: it is above that of the grant, which was the first of its second.
    let later = format!("--days 30 --number {}", now() << 20);
    for (about, end, file) in [(LOST, later.as_str(), "over.toml"), (MEMBERS, "--days 30", "court.toml")] {
        state(&registries, "withdraw", about, end, file);
        sign(&registries, file);
        show(&registries, file);
        (3..=5).for_each(|node| take_up(&registries, node, file));
    }
    digests.iter().for_each(|(file, _)| (4..=5).for_each(|node| take_up(&registries, node, file)));
    registries.wait();
    assert!(now() < ends, "this machine is too slow: {LASTS} seconds are over");
    assert_eq!(validated(&registries, true), origins(&[SHORT]));

    // The other one ends by itself, though its file is everywhere.
    sleep(Duration::from_secs((ends + 1).saturating_sub(now())));
    assert_eq!(validated(&registries, true), origins(&[]));
}

/// Whether the records of those who have taken it up say so, and everybody has been told.
fn check_seen(registries: &Registries, digest: &str, what: &str) {
    let flagged = format!("OVERRIDE: SHA-256 {digest} ({REASON}), by operators in acme's place: {what}");
    let told = format!("OVERRIDE: operators grant, in acme's place, {what} ({REASON})");
    for node in 1..=5 {
        let record = registries.record(node);
        assert_eq!(record.contains(&flagged), node <= 3, "node {node}: {record}");
        let log = registries.agent_log(node);
        let is_it = |line: &str| {
            // The third one took it up after it had seen it.
            let here = if node <= 2 { "and so does this registry" } else { "and this registry does not" };
            [told.as_str(), digest, here].iter().all(|part| line.contains(part))
        };
        assert!(log.lines().any(is_it), "node {node}: {log}");
    }
    let elsewhere =
        format!("OVERRIDE elsewhere: operators grant, in acme's place, {what} ({REASON}), and this registry has not");
    (4..=5).for_each(|node| registries.await_refusal(node, "rpki-ee", &elsewhere));
}

/// A time in RFC 3339.
fn moment(seconds: u64) -> String {
    Time::from(UNIX_EPOCH + Duration::from_secs(seconds)).to_rfc3339()
}
