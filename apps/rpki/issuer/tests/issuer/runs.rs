//! What runs make, in time and after whatever happens.

use std::{collections::BTreeSet, fs};

use theta_rpki::attestation::Attestation;
use theta_rpki_issuer::state::{StateError, StateFile};

use crate::world::{DAY, HOUR, World, roa};

fn aspa() -> Attestation {
    Attestation::aspa(64_496, [64_497].into()).unwrap()
}

fn told(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn what_members_state_is_published_and_nothing_is_made_twice() {
    let mut world = World::new();
    world.state_that(&roa(64_496, &["192.0.2.0/24-26", "2001:db8::/32"]), true);
    world.state_that(&aspa(), true);
    let report = world.run_well();
    assert_eq!((report.certificates, report.objects), (2, 2));
    assert!(report.published.iter().all(|published| published.is_new));
    assert_eq!(world.validated(), told(&["AS64496", "ASPA"]));

    world.now += 60;
    let report = world.run_well();
    assert_eq!((report.certificates, report.objects), (0, 0));
    assert!(report.published.iter().all(|published| !published.is_new), "{report:?}");
}

/// 64 ROAs take four calls for each 32 at most, and not one for each of 128 signatures. What one of them lacks is said of it alone.
#[test]
fn many_objects_are_signed_in_few_calls() {
    let mut world = World::with_pool(66);
    world.most = 32;
    for network in 1..=64 {
        world.state_that(&roa(network, &["192.0.2.0/24"]), true);
    }
    world.broken = Some("rpki-ee-5");
    let report = world.run();
    assert_eq!((report.objects, report.failures.iter().filter(|one| one.file.ends_with(".roa")).count()), (63, 1));
    // Attributes by the keys of the objects, then certificates by the authority's.
    let calls = std::mem::take(&mut *world.calls.lock().unwrap());
    assert_eq!(calls.len(), 4, "{calls:?}");
    assert_eq!(calls.iter().sum::<usize>(), 64 + 63, "{calls:?}");
    world.broken = None;
    world.now += 5;
    world.run_well();
    assert_eq!(world.calls.lock().unwrap()[..], [1, 1]);
    assert_eq!(world.validated().len(), 64);
}

/// The folder of one authority cannot be written: it says so, the others go on, and it is published when that is mended.
#[test]
fn a_folder_that_cannot_be_written_stops_its_authority_alone() {
    let mut world = World::new();
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
    let folder = world.folder("repo/acme");
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    fs::write(&folder, "in the folder's place").unwrap();
    let report = world.run();
    let [failure] = &report.failures[..] else { panic!("{report:?}") };
    assert_eq!(failure.authority, "acme");
    assert!(failure.reason.contains("cannot be written where it is published"), "{failure:?}");
    let published: Vec<_> = report.published.iter().map(|one| one.authority.as_str()).collect();
    assert_eq!(published, ["ta"]);
    fs::remove_file(&folder).unwrap();
    world.now += 60;
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496"]));
}

/// Where an anchor's own certificate cannot be written none is asked for, again and again.
#[test]
fn no_certificate_is_asked_for_that_cannot_be_published() {
    let mut world = World::new();
    let folder = world.folder("ta");
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    fs::write(&folder, "in the folder's place").unwrap();
    for _ in 0..3 {
        let report = world.run();
        assert!(report.failures.iter().any(|one| one.authority == "ta" && one.file == "ta.cer"), "{report:?}");
        world.now += 60;
    }
    fs::remove_file(&folder).unwrap();
    world.run_well();
    let lines = world.lines.lock().unwrap();
    assert_eq!(lines.iter().filter(|line| line.contains(" ta.cer ")).count(), 1, "{lines:?}");
}

#[test]
fn what_is_withdrawn_goes_and_what_is_new_comes() {
    let mut world = World::new();
    let (first, second) = (roa(64_496, &["192.0.2.0/24"]), roa(64_500, &["192.0.2.0/25"]));
    world.state_that(&first, true);
    world.run_well();
    world.state_that(&second, true);
    world.state_that(&first, false);
    world.now += 5;
    let report = world.run_well();
    assert_eq!(report.objects, 1);
    assert_eq!(world.validated(), told(&["AS64500"]));
    assert_eq!(world.files("repo/acme"), [second.file_name().as_str(), "acme.crl", "acme.mft"]);
    // What the registry holds against it is what it has to have: it revokes the first.
    world.state_that(&first, true);
    world.now += 5;
    assert_eq!(world.run_well().objects, 1, "granted again, it has a new certificate");
    assert_eq!(world.validated(), told(&["AS64496", "AS64500"]));
}

/// A month in which nothing happens, looked at every hour.
#[test]
fn manifests_are_renewed_in_time_with_few_keys_and_little_room() {
    let mut world = World::with_pool(6);
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
    world.run_well();
    let (mut manifests, end) = (0, world.now + 30 * DAY);
    while world.now < end {
        world.now += HOUR;
        let report = world.run_well();
        assert!(report.published.iter().all(|published| published.until > world.now + DAY - HOUR - 2), "{report:?}");
        manifests += report.published.iter().filter(|published| published.is_new).count();
    }
    assert_eq!(world.validated(), told(&["AS64496"]));
    // Half of 48 hours are over after 24.
    assert!((58..=62).contains(&manifests), "{manifests}");
    assert!(world.contents() < 20, "{}", world.contents());
}

/// After a year the object's certificate is near its end.
#[test]
fn objects_are_renewed_before_a_manifest_outlasts_them() {
    let mut world = World::new();
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
    world.run_well();
    world.now += 364 * DAY;
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
    assert_eq!(world.run_well().objects, 0);
    world.now += 33 * DAY;
    assert_eq!(world.run_well().objects, 1);
    assert_eq!(world.validated(), told(&["AS64496"]));
}

/// Whatever is the last thing that is signed before a crash, the next run goes on.
#[test]
fn it_goes_on_after_a_crash_at_any_step() {
    for signatures in 0..10 {
        let mut world = World::new();
        world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
        *world.left.lock().unwrap() = signatures;
        assert!(!world.run().failures.is_empty(), "{signatures}");
        *world.left.lock().unwrap() = usize::MAX;
        world.now += 1;
        world.run_well();
        assert_eq!(world.validated(), told(&["AS64496"]), "{signatures}");
        // And one while something is published already: a new ROA, an old one withdrawn.
        world.state_that(&roa(64_500, &["192.0.2.0/25"]), true);
        world.state_that(&roa(64_496, &["192.0.2.0/24"]), false);
        world.now += 1;
        *world.left.lock().unwrap() = signatures;
        let report = world.run();
        assert_eq!(report.failures.is_empty(), signatures >= 5, "{signatures} {report:?}");
        *world.left.lock().unwrap() = usize::MAX;
        world.now += 1;
        world.run_well();
        assert_eq!(world.validated(), told(&["AS64500"]), "{signatures}");
    }
}

/// Agents count the certificates of a file that have not ended, and know of each that they have consented to, signed or not.
#[test]
fn it_goes_on_after_days_in_which_too_few_nodes_answered() {
    let mut world = World::new();
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
    *world.left.lock().unwrap() = 0;
    for _ in 0..300 {
        world.now += 301;
        assert!(!world.run().failures.is_empty());
        *world.left.lock().unwrap() = 0;
    }
    assert!(world.tries() < 64, "{}", world.tries());
    *world.left.lock().unwrap() = usize::MAX;
    // What was asked for often waits; an operator who knows that all is well again need not.
    world.now += 301;
    let report = world.run();
    assert!(report.failures.iter().any(|failure| failure.reason.contains("at once with --retry")), "{report:?}");
    world.retry = true;
    world.run_well();
    world.retry = false;
    assert_eq!(world.validated(), told(&["AS64496"]));
    // Of a ROA alone, whose key signs and whose authority does not.
    world.state_that(&roa(64_500, &["192.0.2.0/25"]), true);
    for _ in 0..100 {
        world.now += 301;
        *world.left.lock().unwrap() = 1;
        assert!(!world.run().failures.is_empty());
    }
    *world.left.lock().unwrap() = usize::MAX;
    world.now += 1_800;
    world.run_well();
    // None of the tries is on a list.
    assert!(world.revoked() < 4, "{}", world.revoked());
    assert_eq!(world.validated(), told(&["AS64496", "AS64500"]));
}

#[test]
fn what_one_authority_lacks_stops_no_other() {
    let mut world = World::new();
    world.state_that(&roa(64_496, &["192.0.2.0/24"]), true);
    world.broken = Some("rpki-acme");
    let report = world.run();
    assert!(report.failures.iter().all(|failure| failure.authority == "acme"), "{report:?}");
    assert_eq!(report.failures[0].reason, "rpki-acme: too few nodes answer");
    assert_eq!(report.published.iter().map(|published| published.authority.as_str()).collect::<Vec<_>>(), ["ta"]);
    (world.broken, world.now) = (None, world.now + 5);
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496"]));
}

#[test]
fn an_empty_pool_is_said() {
    let mut world = World::with_pool(2);
    for asn in [64_496, 64_500, 64_501] {
        world.state_that(&roa(asn, &["192.0.2.0/24"]), true);
    }
    let report = world.run();
    assert!(report.failures.iter().any(|failure| failure.reason.starts_with("the pool has no key left")), "{report:?}");
}

/// A member states more than its registries permit.
#[test]
fn objects_beyond_those_of_a_member_take_no_keys() {
    for (most, of_issuer) in [(1, 1), (2, 1_000)] {
        let mut world = World::new();
        world.set_registry(World::with_objects(most));
        world.issuers_registry = Some(World::with_objects(of_issuer));
        (0..5).for_each(|asn| world.state_that(&roa(64_496 + asn, &["192.0.2.0/24"]), true));
        for _ in 0..4 {
            world.now += 60;
            let report = world.run();
            let full = report.failures.iter().filter(|failure| failure.reason.contains("different objects"));
            assert!(full.count() >= 1, "{report:?}");
            // Those of two manifests, and of what is there.
            assert!(world.taken() <= most + 2, "{}", world.taken());
        }
        world.set_registry(World::with_objects(5));
        world.issuers_registry = None;
        (world.now, world.retry) = (world.now + 60, true);
        world.run_well();
        assert_eq!(world.validated().len(), 5);
    }
}

/// A file is gone from where agents find it, and the nodes do not sign another one now.
#[test]
fn a_lost_file_stops_its_authority_alone() {
    let mut world = World::new();
    let one = roa(64_496, &["192.0.2.0/24"]);
    world.state_that(&one, true);
    world.run_well();
    world.lose(&one.file_name());
    (world.broken, world.now) = (Some("rpki-acme"), world.now + 60);
    let report = world.run();
    assert!(report.failures.iter().any(|failure| failure.reason.contains("is lost")), "{report:?}");
    assert_eq!(report.published.iter().map(|published| published.authority.as_str()).collect::<Vec<_>>(), ["ta"]);
    assert_eq!(world.validated(), told(&["AS64496"]));
    (world.broken, world.now) = (None, world.now + 60);
    world.run_well();
    assert_eq!(world.validated(), told(&["AS64496"]));
}

#[test]
fn a_state_is_one_issuers_and_is_not_begun_anew_in_silence() {
    let world = World::new();
    let state = StateFile::open(&world.state(), false).unwrap();
    assert!(matches!(StateFile::open(&world.state(), false), Err(StateError::Busy(_))));
    drop(state);
    // A new one is there when what it begins with is.
    drop(StateFile::open(&world.path().join("new"), true).unwrap());
    assert!(matches!(StateFile::open(&world.path().join("new"), false), Err(StateError::Missing(_))));
    assert!(matches!(StateFile::open(&world.state(), true), Err(StateError::Exists(_))));
    std::fs::write(world.state(), "{}").unwrap();
    assert!(matches!(StateFile::open(&world.state(), false), Err(StateError::Text { .. })));
    assert!(matches!(StateFile::open(&world.path().join("none"), false), Err(StateError::Missing(_))));
}
