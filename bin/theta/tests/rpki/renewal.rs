//! An issuer and a publisher that go on by themselves, while days pass: what is due is made and published without anybody asking, whoever is away; and how they go on after
//! a loss, and after a break.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use rpki::repository::{crl::Crl, manifest::Manifest};

use crate::{
    clock::{DAY, HOUR},
    registries::{Origins, Registries, origins},
};

const FIRST: (u64, &str) = (64_496, "192.0.2.0/24");
const SECOND: (u64, &str) = (64_500, "192.0.2.0/25");
/// How long a renewal may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// Manifests and lists of the anchor and of the member.
const POINTS: usize = 4;

/// From when until when the manifests and lists last that are published, by the names of their files.
type Points = BTreeMap<String, (i64, i64)>;

/// Those below this folder.
fn points_in(folder: &Path, points: &mut Points) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() {
            points_in(&path, points);
            continue;
        }
        // A state that is not served any more may be removed meanwhile.
        let Ok(bytes) = fs::read(&path) else { continue };
        let times = if name.ends_with(".mft") {
            let manifest = Manifest::decode(bytes.as_slice(), true).unwrap();
            (manifest.content().this_update(), manifest.content().next_update())
        } else if name.ends_with(".crl") {
            let list = Crl::decode(bytes.as_slice()).unwrap();
            (list.this_update(), list.next_update())
        } else {
            continue;
        };
        points.insert(name, (times.0.timestamp(), times.1.timestamp()));
    }
}

fn points(registries: &Registries) -> Points {
    let mut points = Points::new();
    points_in(&registries.path().join("pub/rsync/current"), &mut points);
    points
}

/// Waits until all that is published was made at this time or later; how long it lasts.
#[track_caller]
fn await_points(registries: &Registries, since: i64) -> Points {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let points = points(registries);
        if points.len() == POINTS && points.values().all(|(from, _)| *from >= since) {
            return points;
        }
        let log = |name: &str| fs::read_to_string(registries.path().join(name)).unwrap_or_default();
        let said = || format!("{} {}", log("issuer.log"), log("publisher.log"));
        assert!(Instant::now() < deadline, "not all is of {since} or later: {points:?} {}", said());
        sleep(Duration::from_millis(100));
    }
}

/// Waits until relying parties have these.
#[track_caller]
fn await_routes(registries: &Registries, expected: &Origins) {
    let deadline = Instant::now() + PATIENCE;
    while registries.routinated() != *expected {
        assert!(Instant::now() < deadline, "relying parties do not have {expected:?}");
        sleep(Duration::from_millis(500));
    }
    assert_eq!(registries.validated(), *expected);
}

/// Manifests and lists last for two days, and are renewed when one is over.
#[test]
fn what_is_due_is_renewed_by_itself_and_who_was_away_catches_up() {
    let mut registries = Registries::with_clock();
    registries.grant("1.toml", "AS64496", FIRST.1);
    let issuer = registries.issue_on("--every 1 --at-once 4 --json");
    let publisher = registries.publish_on("--every 1 --grace 60 --most-deltas 2");
    await_routes(&registries, &origins(&[FIRST]));
    let first = points(&registries);
    let ends = *first.values().map(|(_, until)| until).max().unwrap();

    // Half a day later nothing is due, and nothing is made.
    registries.clock().advance(12 * HOUR);
    let runs = issuer.count("\"failures\"");
    issuer.await_count(runs + 3, "\"failures\"");
    assert_eq!(points(&registries), first);

    // Two registries are away for a day, in which all is renewed, and the member states more.
    registries.kill(4);
    registries.kill(5);
    registries.clock().advance(13 * HOUR);
    let renewed = await_points(&registries, registries.clock().now() - HOUR);
    assert!(renewed.values().all(|(_, until)| *until > ends), "{renewed:?}");
    registries.put_statement("grant --roa AS64500 --prefix 192.0.2.0/25 --out statements/acme/2.toml");
    await_routes(&registries, &origins(&[FIRST, SECOND]));

    // They are back, and nothing is signed without them, since two others are away.
    registries.restart(4);
    registries.restart(5);
    registries.kill(1);
    registries.kill(2);
    registries.clock().advance(25 * HOUR);
    let (again, now) = (await_points(&registries, registries.clock().now() - HOUR), registries.clock().now());
    assert!(ends < now && again.values().all(|(_, until)| *until > now), "all that was published first is over");
    await_routes(&registries, &origins(&[FIRST, SECOND]));

    // It is told to end while a run waits for the agents: that run is done first, and another one goes on where it was.
    registries.signal_agents("-STOP");
    registries.clock().advance(25 * HOUR);
    let begun = issuer.count("data are read");
    issuer.await_count(begun + 1, "data are read");
    let mut issuer = issuer.told_to_end();
    sleep(Duration::from_secs(1));
    assert!(issuer.runs(), "{}", issuer.said());
    registries.signal_agents("-CONT");
    let (code, said) = issuer.ended();
    assert!(code == Some(0) && said.contains("ends by SIGTERM"), "{code:?} {said}");
    let last = await_points(&registries, registries.clock().now() - HOUR);
    let said = registries.issue_by("").ok();
    assert!(said.contains("0 new certificates of authorities, 0 new objects, 2 authorities published"), "{said}");
    assert_eq!(points(&registries), last);

    // With no issuer what is published ends, whatever the publisher does.
    registries.clock().advance(49 * HOUR);
    publisher.await_count(1, "not current");
    assert_eq!(registries.routinated(), origins(&[]));
}

#[test]
fn what_was_lost_is_begun_anew_and_what_was_refused_is_asked_for_again() {
    let registries = Registries::with_clock();
    registries.grant("1.toml", "AS64496", FIRST.1);
    registries.issue_by("").ok();
    registries.publish().ok();
    assert_eq!(registries.routinated(), origins(&[FIRST]));

    // The issuer's state: a registry's agent remembers which keys are for what, and what may be on a manifest.
    fs::remove_file(registries.path().join("issued")).unwrap();
    let memory = registries.folder(2).join("rpki.memory");
    registries.wait();
    let said = registries.issue_by(&format!("--from-memory {}", memory.display())).ok();
    // Of the anchor and of the member one certificate for a manifest each, and the object's; the keys of these.
    assert!(said.contains("rpki.memory: 5 certificates and 3 keys that were not known"), "{said}");
    // What the publisher has published.
    fs::remove_file(registries.path().join("pub/rrdp/notification.xml")).unwrap();
    let said = registries.publish().fails();
    assert!(said.contains("--new-session"), "{said}");
    registries.publish_by("--new-session").ok();
    assert_eq!(registries.routinated(), origins(&[FIRST]));

    // The member has got more, which the other registries do not know yet: they refuse its certificate.
    let data = fs::read_to_string(registries.path().join("registry.toml")).unwrap();
    let more = data.replace("[\"AS64496\"]", "[\"AS64496-AS64511\"]");
    fs::write(registries.path().join("more.toml"), &more).unwrap();
    for _ in 0..8 {
        let said = registries.issue("more.toml", "statements", "issued").fails();
        assert!(said.contains("two registries' data differ") && !said.contains("--retry"), "{said}");
        registries.clock().advance(HOUR / 10);
    }
    // They know it now. Nobody has told the issuer, who asks once in half an hour.
    fs::write(registries.path().join("registry.toml"), &more).unwrap();
    registries.wait();
    let said = registries.issue_by("").fails();
    assert!(said.contains("the answer to the last of 8 tries within a day"), "{said}");
    let said = registries.issue_by("--retry").ok();
    assert!(said.contains("1 new certificates of authorities"), "{said}");
    registries.publish().ok();
    assert_eq!(registries.validated(), origins(&[FIRST]));
}

/// Nobody has asked for 46 days, or so a clock says: neither an issuer nor agents go on by it until somebody says that it is right.
#[test]
fn what_was_left_for_long_is_gone_on_with_by_who_says_so() {
    let mut registries = Registries::with_clock();
    registries.grant("1.toml", "AS64496", FIRST.1);
    registries.issue_by("").ok();
    registries.clock().advance(46 * DAY);
    registries.put_statement("grant --roa AS64500 --prefix 192.0.2.0/25 --out statements/acme/2.toml");
    let said = registries.issue_by("").fails();
    assert!(said.contains("the last run was 46 days ago") && said.contains("--after-break"), "{said}");
    let said = registries.issue_by("--after-break").fails();
    assert!(said.contains("the last consent was 46 days ago") && said.contains("0 new objects"), "{said}");
    // Three of their operators say so as well, and that is enough.
    (1..=3).for_each(|node| registries.restart_agent(node, "--after-break"));
    let said = registries.issue_by("").ok();
    assert!(said.contains("1 new objects, 2 authorities published"), "{said}");
    // A manifest that follows another one of the same second begins in the next.
    registries.clock().advance(2);
    registries.publish().ok();
    assert_eq!(registries.routinated(), origins(&[FIRST, SECOND]));
    assert_eq!(registries.validated(), origins(&[FIRST, SECOND]));
}
