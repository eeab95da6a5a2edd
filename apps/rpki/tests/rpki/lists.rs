//! Lists of revoked certificates.

use rpki::repository::x509::Serial;
use theta_rpki::memory::{Entry, Memory};

use crate::issuer::{DAY, World, aspa, roa};

/// A member with a ROA and an ASPA, which are published.
fn world() -> World {
    let mut world = World::new();
    world.certify();
    world.state(&roa(64_496, &["192.0.2.0/24"]), true);
    world.state(&aspa(&[1]), true);
    let all = [(roa(64_496, &["192.0.2.0/24"]), 0, 11), (aspa(&[1]), 1, 12)];
    let mut files: Vec<_> =
        all.iter().map(|(one, key, serial)| (one.file_name(), world.issue(one, *key, *serial))).collect();
    let (_, list) = world.list(1, &[]);
    files.push(("acme.crl".to_owned(), world.shelf.put(&list)));
    let manifest = world.manifest(1, &files, 2, 21);
    world.ask("rpki-ee-2", &manifest[0]).unwrap();
    world.ask("rpki-acme", &manifest[1]).unwrap();
    world
}

/// One registry would keep in use what a member has withdrawn.
#[test]
fn what_was_withdrawn_is_revoked() {
    let mut world = world();
    world.issue(&aspa(&[1]), 3, 13);
    world.state(&roa(64_496, &["192.0.2.0/24"]), false);
    for revoked in [&[][..], &[12]] {
        let (asked, _) = world.list(1, revoked);
        world.refused("rpki-acme", &asked, "it does not revoke 11");
    }
    let (asked, _) = world.list(1, &[11, 12]);
    world.ask("rpki-acme", &asked).unwrap();
    // And stays so while it has not ended.
    let (asked, _) = world.list(2, &[12]);
    world.refused("rpki-acme", &asked, "it does not revoke 11");
}

/// One issuer would have lists grow for as long as certificates last: it has objects made anew all the time, and published.
#[test]
fn what_was_replaced_need_not_be_revoked_when_its_last_manifest_is_over() {
    let mut world = world();
    let one = roa(64_496, &["192.0.2.0/24"]);
    world.now += 1;
    let mut files =
        vec![(one.file_name(), world.issue(&one, 0, 13)), (aspa(&[1]).file_name(), world.issue(&aspa(&[1]), 1, 14))];
    let (_, list) = world.list(2, &[]);
    files.push(("acme.crl".to_owned(), world.shelf.put(&list)));
    let manifest = world.manifest(2, &files, 3, 22);
    world.ask("rpki-ee-3", &manifest[0]).unwrap();
    world.state(&one, false);
    for (later, serials) in [(0, "11, 13"), (2 * DAY + 1_200, "13")] {
        world.now += later;
        let (asked, _) = world.list(3, &[]);
        world.refused("rpki-acme", &asked, &format!("it does not revoke {serials}, certificates of"));
    }
    let (asked, _) = world.list(3, &[13]);
    world.ask("rpki-acme", &asked).unwrap();
}

/// An agent was absent when a certificate was signed, and there when it came onto a manifest.
#[test]
fn what_was_seen_on_a_manifest_alone_is_revoked() {
    let mut world = world();
    let (one, authority) = (roa(64_496, &["192.0.2.0/24"]), "acme".to_owned());
    world.memory = Memory::default();
    let serial = Serial::from(11_u64).into_array();
    let (file, from, until) = (one.file_name(), world.now, world.now + DAY);
    world.memory.learn(Entry::Published { authority, serial, file, from, until });
    world.state(&one, false);
    let (asked, _) = world.list(1, &[]);
    world.refused("rpki-acme", &asked, "it does not revoke 11");
}

/// Whoever had a certificate signed and tells nobody its number stops no list when the ROA that it was for is withdrawn.
#[test]
fn what_was_never_published_need_not_be_revoked() {
    let mut world = world();
    let third = roa(64_496, &["2001:db8::/32"]);
    world.state(&third, true);
    world.issue(&third, 3, 14);
    world.state(&third, false);
    let (asked, _) = world.list(1, &[]);
    world.ask("rpki-acme", &asked).unwrap();
}

#[test]
fn entries_are_of_certificates_once_and_of_the_past() {
    let mut world = world();
    for revoked in [&[0][..], &[12, 13, 12]] {
        let (asked, _) = world.list(1, revoked);
        world.refused("rpki-acme", &asked, &format!("its entry for the serial number {} is", revoked[0]));
    }
    let (asked, _) = world.list_revoked_at(1, &[12], world.now + 1);
    world.refused("rpki-acme", &asked, "its entry for the serial number 12 is");
    let (asked, _) = world.list_revoked_at(1, &[12], world.now - 1_000);
    world.ask("rpki-acme", &asked).unwrap();
}

#[test]
fn numbers_rise_and_times_are_of_now() {
    let mut world = world();
    let (asked, _) = world.list(5, &[]);
    world.ask("rpki-acme", &asked).unwrap();
    world.ask("rpki-acme", &asked).unwrap();
    let (lower, _) = world.list(4, &[]);
    world.refused("rpki-acme", &lower, "the list's number 4 was used before, or a higher one was");
    world.refused("rpki-ta", &asked, "issuer");
    world.now += 1;
    let (other, _) = world.list(5, &[]);
    world.refused("rpki-acme", &other, "the list's number 5 was used before");
    world.now += 1_000;
    world.refused("rpki-acme", &lower, "beginning is not now");
}

/// An agent was absent when a certificate was signed, and others, who were there, have seen that it was withdrawn.
#[test]
fn what_was_never_seen_may_be_revoked() {
    let mut world = world();
    let (asked, _) = world.list(1, &[99]);
    assert_eq!(world.ask("rpki-acme", &asked).unwrap().what, "the list of 1 revoked certificates of acme");
}

/// One issuer would use up all numbers: nothing is above the last one.
#[test]
fn numbers_are_not_used_up() {
    let mut world = world();
    let highest = u64::try_from(world.now + 600).unwrap() << 20;
    for number in [highest + 1, u64::MAX] {
        let (asked, _) = world.list(number, &[]);
        world.refused("rpki-acme", &asked, &format!("is above {highest}, the highest one that may be used now"));
    }
    let (asked, _) = world.list(highest, &[]);
    world.ask("rpki-acme", &asked).unwrap();
    world.now += 1;
    let (asked, _) = world.list(highest + 1, &[]);
    world.ask("rpki-acme", &asked).unwrap();
}

#[test]
fn a_list_does_not_begin_before_the_last_one() {
    let mut world = world();
    let (asked, _) = world.list(1, &[]);
    world.ask("rpki-acme", &asked).unwrap();
    world.now -= 1;
    let (asked, _) = world.list(2, &[]);
    world.refused("rpki-acme", &asked, "its beginning is before that of the last list");
    world.now += 1;
    let (asked, _) = world.list(2, &[]);
    world.ask("rpki-acme", &asked).unwrap();
}

/// Whoever may ask has lists signed until no more are taken: then there is one in half an hour, whoever asks first.
#[test]
fn lists_are_counted_by_the_day() {
    let mut world = world();
    let list = |world: &World, number| world.list(number, &[]).0;
    for number in 1..=64 {
        let asked = list(&world, number);
        world.ask("rpki-acme", &asked).unwrap();
    }
    let [last, more] = [64, 65].map(|number| list(&world, number));
    let full = "there are 64 lists of acme that have begun within a day";
    world.refused("rpki-acme", &more, full);
    world.ask("rpki-acme", &last).unwrap();
    world.now += 1_800;
    let more = list(&world, 65);
    world.ask("rpki-acme", &more).unwrap();
    world.now += 1;
    let more = list(&world, 66);
    world.refused("rpki-acme", &more, full);
    world.now += DAY;
    for number in 66..=68 {
        let more = list(&world, number);
        world.ask("rpki-acme", &more).unwrap();
    }
}
