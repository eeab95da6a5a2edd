//! Manifests: all that is authorised, and nothing else.

use rpki::{
    dep::bcder::{Mode, encode::Values as _},
    repository::{sigobj::SignedObject, x509::Validity},
    uri::Https,
};
use theta_rpki::{
    attestation::Attestation,
    consent::blames_key,
    memory::{Digest, Memory},
    registry::Registry,
};

use crate::issuer::{DAY, World, aspa, keys, no_addresses, read, registry_text, roa, tbs, time};

fn attestations() -> [Attestation; 2] {
    [roa(64_496, &["192.0.2.0/24"]), aspa(&[1])]
}

/// A member with a ROA and an ASPA, all signed; the files of its manifest.
fn world() -> (World, Vec<(String, Digest)>) {
    let mut world = World::new();
    world.certify();
    let mut files = Vec::new();
    for (number, attestation) in attestations().iter().enumerate() {
        world.state(attestation, true);
        let digest = world.issue(attestation, number, u64::try_from(number + 11).unwrap());
        files.push((attestation.file_name(), digest));
    }
    files.push(list(&mut world, 1, &[]));
    (world, files)
}

/// Signs a list of revoked certificates, whoever has agreed.
fn list(world: &mut World, number: u64, revoked: &[u64]) -> (String, Digest) {
    let (_, file) = world.list(number, revoked);
    ("acme.crl".to_owned(), world.shelf.put(&file))
}

#[test]
fn a_manifest_has_all_that_is_authorised() {
    let (mut world, files) = world();
    let asked = world.manifest(1, &files, 2, 21);
    let said = world.ask("rpki-ee-2", &asked[0]).unwrap();
    assert_eq!(said.what, "the manifest of acme with 3 files");
    assert_eq!(world.ask("rpki-acme", &asked[1]).unwrap().what, "the certificate of the key of the manifest of acme");
}

/// One registry would withdraw a member's ROA, or its ASPA, by leaving it out.
#[test]
fn nothing_is_left_out() {
    let (mut world, files) = world();
    for (number, attestation) in attestations().iter().enumerate() {
        let mut fewer = files.clone();
        fewer.remove(number);
        let asked = world.manifest(1, &fewer, 2, 21);
        world.refused("rpki-ee-2", &asked[0], &format!("{attestation} is missing, and acme has not withdrawn it"));
    }
    // When the member withdraws it, it has to go.
    world.state(&attestations()[0], false);
    let asked = world.manifest(1, &files, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "is published, and nobody has authorised it");
    let (asked, _) = world.list(2, &[11]);
    world.ask("rpki-acme", &asked).unwrap();
    let fewer = [files[1].clone(), list(&mut world, 2, &[11])];
    let asked = world.manifest(1, &fewer, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
}

/// One registry would publish what it has made up, or a good name with other bytes.
#[test]
fn nothing_foreign_is_published() {
    let (mut world, files) = world();
    let forged = roa(666, &["192.0.2.0/24"]);
    let (object, _) = world.object(&forged, keys().foreign, 31);
    let digest = world.shelf.put(&object.encode_ref().to_captured(Mode::Der).into_bytes());
    let more = [&files[..], &[(forged.file_name(), digest)]].concat();
    let asked = world.manifest(1, &more, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "is published, and nobody has authorised it");
    let mut other = files.clone();
    other[0].1 = digest;
    let asked = world.manifest(1, &other, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "its content is not the ROA of AS64496");
    other[0].1 = files[1].1;
    let asked = world.manifest(1, &other, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "its content is not the ROA of AS64496");
    other[0].1 = [9; 32];
    let asked = world.manifest(1, &other, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "what it covers cannot be seen");
    let twice = [&files[..], &files[..1]].concat();
    let asked = world.manifest(1, &twice, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "one of which is there twice");
}

/// One registry would publish a good ROA whose certificate is revoked, or has ended.
#[test]
fn what_is_published_is_good() {
    let (mut world, files) = world();
    let mut revoked = files.clone();
    revoked[2] = list(&mut world, 1, &[11]);
    let asked = world.manifest(1, &revoked, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "its certificate is revoked");
    world.now += 40 * 86_400;
    // The member's statement still counts; its object does not.
    world.state(&attestations()[0], true);
    world.state(&attestations()[1], true);
    let mut late = files;
    late[2] = list(&mut world, 2, &[]);
    let asked = world.manifest(1, &late, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "certificate has expired");
}

#[test]
fn numbers_rise_and_the_list_is_the_last_one() {
    let (mut world, files) = world();
    let asked = world.manifest(7, &files, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    let asked = world.manifest(6, &files, 3, 22);
    world.refused("rpki-ee-3", &asked[0], "the manifest's number 6 was used before, or a higher one was");
    let (newer, _) = world.list(9, &[]);
    world.ask("rpki-acme", &newer).unwrap();
    world.now += 1;
    let asked = world.manifest(8, &files, 3, 22);
    world.refused("rpki-ee-3", &asked[0], "there is a newer one");
    let without = world.manifest(8, &files[..2], 3, 22);
    world.refused("rpki-ee-3", &without[0], "list of revoked certificates");
}

fn file(object: &SignedObject) -> Vec<u8> {
    object.encode_ref().to_captured(Mode::Der).into_bytes().to_vec()
}

/// A member with one ROA, whose key is certified for an hour.
fn short() -> (World, Vec<(String, Digest)>) {
    let mut world = World::new();
    world.certify();
    let attestation = roa(64_496, &["192.0.2.0/24"]);
    world.state(&attestation, true);
    let brief = world.validity(DAY + 3_600);
    let (object, asked) = world.object_with(&attestation, keys().objects[0], 11, |builder| builder.set_validity(brief));
    world.ask("rpki-acme", &asked[1]).unwrap();
    let files = vec![(attestation.file_name(), world.shelf.put(&file(&object))), list(&mut world, 1, &[])];
    (world, files)
}

/// One registry would take a ROA away while the manifest that has it is current.
#[test]
fn objects_last_until_the_next_manifest() {
    let (mut world, mut files) = short();
    files[1].1 = world.shelf.put(&world.list_of("acme", 1, &[], 2 * DAY).1);
    let asked = world.manifest_of("acme", 1, &files, (2, 21), 2 * DAY);
    world.refused("rpki-ee-2", &asked[0], &format!("{}: it ends at ", files[0].0));
    // Whoever has nothing else makes a manifest that ends as early.
    let asked = world.manifest_of("acme", 1, &files, (2, 21), DAY + 3_600);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    world.ask("rpki-acme", &asked[1]).unwrap();
}

/// One registry would take all away that is on a manifest, until somebody issues the next one.
#[test]
fn a_manifest_lasts_for_a_while() {
    let (mut world, files) = world();
    for seconds in [10, DAY - 1] {
        let asked = world.manifest_of("acme", 1, &files, (2, 21), seconds);
        world.refused("rpki-ee-2", &asked[0], "its end comes too soon");
    }
    let asked = world.manifest_of("acme", 1, &files, (2, 21), DAY);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
}

#[test]
fn the_list_lasts_until_the_next_manifest() {
    let (mut world, mut files) = world();
    let (_, early) = world.list_of("acme", 1, &[], DAY);
    files[2].1 = world.shelf.put(&early);
    let asked = world.manifest_of("acme", 1, &files, (2, 21), DAY + 1);
    world.refused("rpki-ee-2", &asked[0], "acme.crl: it ends at ");
    let asked = world.manifest(1, &files, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
}

#[test]
fn authorities_last_until_the_next_manifest() {
    let (mut world, mut files) = world();
    files[2].1 = world.shelf.put(&world.list_of("acme", 1, &[], 2 * DAY).1);
    for (of, serial) in [("acme", 5), ("ta", 6)] {
        let authority = world.registry.authority(of).unwrap();
        let good = world.authority_certificate(authority, serial);
        let mut early = good.clone();
        early.set_validity(world.validity(DAY));
        world.publish(of, early);
        let asked = world.manifest_of("acme", 1, &files, (2, 21), 2 * DAY);
        world.refused("rpki-ee-2", &asked[0], &format!("{of}.cer: it ends at "));
        let asked = world.manifest(1, &files, 2, 21);
        let memory = world.memory.clone();
        world.ask("rpki-ee-2", &asked[0]).unwrap();
        world.memory = memory;
        world.publish(of, good);
    }
}

/// The certificate of the manifest's own key: it lasts as long, and is signed when the manifest is known, so that there is something to compare it
/// with.
#[test]
fn the_manifests_own_certificate_lasts() {
    let (mut world, files) = world();
    let asked = world.manifest(1, &files, 2, 21);
    world.refused("rpki-acme", &asked[1], "a manifest's attributes are signed first");
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    let mut early = read(&asked[1]);
    early.set_validity(world.validity(DAY - 1));
    world.refused("rpki-acme", &tbs(&early), "acme.mft: it ends at ");
    early.set_validity(world.validity(DAY + 1));
    world.refused("rpki-acme", &tbs(&early), "acme.mft: its certificate ends after its next update");
    // One that begins later keeps relying parties from the manifest until then.
    early.set_validity(Validity::new(time(world.now + 1), time(world.now + DAY)));
    world.refused("rpki-acme", &tbs(&early), "acme.mft: its certificate begins after the manifest does");
    world.ask("rpki-acme", &asked[1]).unwrap();
}

/// One issuer would have a list that revokes the manifest on which it is.
#[test]
fn the_list_does_not_revoke_the_manifest() {
    let (mut world, mut files) = world();
    let (asked, revoking) = world.list(1, &[21]);
    world.ask("rpki-acme", &asked).unwrap();
    files[2].1 = world.shelf.put(&revoking);
    let asked = world.manifest(1, &files, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    world.refused("rpki-acme", &asked[1], "the list on it revokes the serial number");
    let asked = world.manifest(1, &files, 2, 22);
    world.ask("rpki-acme", &asked[1]).unwrap();
}

/// One issuer would have relying parties keep an old manifest: they take none that does not begin later.
#[test]
fn a_manifest_begins_after_the_last_one() {
    let (mut world, mut files) = world();
    let (_, long) = world.list_of("acme", 1, &[], 2 * DAY);
    files[2].1 = world.shelf.put(&long);
    world.ahead = 100;
    let asked = world.manifest(1, &files, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    files.swap(0, 1);
    for ahead in [99, 100] {
        world.ahead = ahead;
        let asked = world.manifest(2, &files, 3, 22);
        world.refused("rpki-ee-3", &asked[0], "its beginning is not after that of the last manifest");
    }
    world.ahead = 101;
    let asked = world.manifest(2, &files, 3, 22);
    world.refused("rpki-ee-3", &asked[0], "its signing time is before the beginning of the last manifest");
    (world.now, world.ahead) = (world.now + 100, 1);
    let asked = world.manifest(2, &files, 3, 22);
    world.ask("rpki-ee-3", &asked[0]).unwrap();
}

#[test]
fn numbers_are_not_used_up() {
    let (mut world, files) = world();
    let highest = u64::try_from(world.now + 600).unwrap() << 20;
    let asked = world.manifest(highest + 1, &files, 2, 21);
    world.refused("rpki-ee-2", &asked[0], &format!("is above {highest}, the highest one that may be used now"));
    let asked = world.manifest(highest, &files, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
}

/// One issuer would have the good certificate of a ROA revoked at agents that have not seen it.
#[test]
fn what_was_never_seen_and_is_revoked_is_not_published() {
    let (mut world, mut files) = world();
    world.memory = Memory::default();
    let (asked, revoking) = world.list(1, &[11]);
    world.ask("rpki-acme", &asked).unwrap();
    files[2].1 = world.shelf.put(&revoking);
    let asked = world.manifest(1, &files, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "its certificate is revoked");
    // With another certificate the ROA stays.
    files[0].1 = world.issue(&attestations()[0], 3, 31);
    let asked = world.manifest(1, &files, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
}

#[test]
fn the_key_of_a_manifest_signs_manifests_of_its_authority_alone() {
    let (mut world, files) = world();
    // One that has signed a ROA does not sign a manifest, and is not certified for one.
    let asked = world.manifest(1, &files, 0, 21);
    world.refused("rpki-ee-0", &asked[0], "for another content already");
    world.refused("rpki-acme", &asked[1], "for another content already");
    let asked = world.manifest(1, &files, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    let (_, object) = world.object(&attestations()[0], keys().objects[2], 31);
    world.refused("rpki-ee-2", &object[0], "for another content already");
    world.refused("rpki-acme", &object[1], "for another content already");
    let child = world.publish("acme", world.authority_certificate(world.acme(), 2));
    let of_anchor = [
        ("acme.cer".to_owned(), world.shelf.put(&child.to_captured().into_bytes())),
        ("ta.crl".to_owned(), world.shelf.put(&world.list_of("ta", 1, &[], DAY).1)),
    ];
    let asked = world.manifest_of("ta", 1, &of_anchor, (2, 41), DAY);
    world.refused("rpki-ee-2", &asked[0], "for another content already");
    let asked = world.manifest_of("ta", 1, &of_anchor, (3, 41), DAY);
    world.ask("rpki-ee-3", &asked[0]).unwrap();
    world.ask("rpki-ta", &asked[1]).unwrap();
}

/// A key may sign the next manifest, but not while a certificate for the last one would end it before its time.
#[test]
fn a_key_signs_the_next_manifest_if_its_certificates_last() {
    let (mut world, mut files) = world();
    let (_, long) = world.list_of("acme", 1, &[], 2 * DAY);
    files[2].1 = world.shelf.put(&long);
    let first = DAY + 3_600;
    let asked = world.manifest_of("acme", 1, &files, (2, 21), first);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    world.ask("rpki-acme", &asked[1]).unwrap();
    world.now += 1;
    let asked = world.manifest_of("acme", 2, &files, (2, 22), first);
    world.refused(
        "rpki-ee-2",
        &asked[0],
        "another key may sign it, since its list does not revoke 21, certificates of its key",
    );
    assert!(blames_key(&world.ask("rpki-ee-2", &asked[0]).unwrap_err().to_string()));
    let other = world.manifest_of("acme", 2, &files, (3, 22), first);
    let memory = world.memory.clone();
    world.ask("rpki-ee-3", &other[0]).unwrap();
    world.memory = memory;
    files[2] = list(&mut world, 2, &[21]);
    let asked = world.manifest(2, &files, 2, 22);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
}

/// One issuer would fill the memories of all.
#[test]
fn certificates_of_a_manifest_are_counted() {
    let (mut world, mut files) = world();
    let asked = world.manifest(1, &files, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    let mut certificate = read(&asked[1]);
    for serial in 1_001..=1_004_u64 {
        certificate.set_serial_number(serial);
        world.ask("rpki-acme", &tbs(&certificate)).unwrap();
    }
    world.refused("rpki-acme", &asked[1], "there are 4 certificates for the last acme.mft");
    // The next manifest is not kept from anybody by that.
    world.now += 1;
    files[2] = list(&mut world, 2, &[1_001, 1_002, 1_003, 1_004]);
    let asked = world.manifest(2, &files, 2, 22);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
    world.ask("rpki-acme", &asked[1]).unwrap();
}

/// One issuer would fill the memories of all, with two keys in turn.
#[test]
fn changes_of_a_manifests_key_are_counted() {
    let (mut world, files) = world();
    let by = [2, 3].map(|key| world.manifest(1, &files, key, 21));
    for change in 0..=8 {
        let key = change % 2;
        world.ask(&format!("rpki-ee-{}", key + 2), &by[key][0]).unwrap();
    }
    world.refused("rpki-ee-3", &by[1][0], "there are 8 changes of the key of the last acme.mft");
    // The last one signs it again.
    world.ask("rpki-ee-2", &by[0][0]).unwrap();
}

/// Whoever may ask has a list signed that revokes what stands: nothing goes by that.
#[test]
fn a_list_that_revokes_what_stands_takes_nothing_away() {
    let (mut world, mut files) = world();
    let (asked, revoking) = world.list(2, &[11, 12]);
    world.ask("rpki-acme", &asked).unwrap();
    files[2].1 = world.shelf.put(&revoking);
    let asked = world.manifest(1, &files, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "its certificate is revoked");
    // The next list does not.
    let (asked, next) = world.list(3, &[]);
    world.ask("rpki-acme", &asked).unwrap();
    files[2].1 = world.shelf.put(&next);
    let asked = world.manifest(1, &files, 2, 21);
    world.ask("rpki-ee-2", &asked[0]).unwrap();
}

/// One issuer would keep a member's old certificate, which points to where nothing is published any more.
#[test]
fn members_are_certified_by_todays_data() {
    let mut world = World::new();
    let child = world.certify();
    let mut files = vec![
        ("acme.cer".to_owned(), world.shelf.put(&child.to_captured().into_bytes())),
        ("ta.crl".to_owned(), world.shelf.put(&world.list_of("ta", 1, &[], DAY).1)),
    ];
    let asked = world.manifest_of("ta", 1, &files, (0, 41), DAY);
    let memory = world.memory.clone();
    world.ask("rpki-ee-0", &asked[0]).unwrap();
    world.memory = memory;
    world.registry = Registry::parse(&registry_text().replace("notification.xml", "notify.xml")).unwrap();
    let notify = world.acme().notify.as_ref().map(Https::as_str);
    assert_eq!(notify, Some("https://rpki.example/notify.xml"));
    world.refused("rpki-ee-0", &asked[0], "acme.cer: its address of notifications");
    let today = world.authority_certificate(world.acme(), 3);
    world.ask("rpki-ta", &tbs(&today)).unwrap();
    files[0].1 = {
        let certificate = world.publish("acme", today);
        world.shelf.put(&certificate.to_captured().into_bytes())
    };
    let asked = world.manifest_of("ta", 1, &files, (0, 41), DAY);
    world.ask("rpki-ee-0", &asked[0]).unwrap();
    // It lasts until the next manifest, as objects do.
    let mut early = world.authority_certificate(world.acme(), 4);
    early.set_validity(world.validity(3_600));
    let early = world.publish("acme", early);
    files[0].1 = world.shelf.put(&early.to_captured().into_bytes());
    world.now += 1;
    files[1].1 = world.shelf.put(&world.list_of("ta", 2, &[], DAY).1);
    let asked = world.manifest_of("ta", 2, &files, (1, 42), DAY);
    world.refused("rpki-ee-1", &asked[0], "acme.cer: it ends at ");
}

/// One issuer would have certificates, signed before this was looked at, that relying parties refuse.
#[test]
fn what_is_not_there_is_not_mentioned_on_a_manifest() {
    let (mut world, mut files) = world();
    let one = &attestations()[0];
    let (object, _) = world.object_with(one, keys().objects[0], 31, |builder| builder.set_v6_resources(no_addresses()));
    let good = files[0].1;
    files[0].1 = world.shelf.put(&file(&object));
    let asked = world.manifest(1, &files, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "one is there and empty");
    files[0].1 = good;
    let mut authority = world.authority_certificate(world.acme(), 5);
    authority.set_v6_resources(no_addresses());
    world.publish("acme", authority);
    let asked = world.manifest(1, &files, 2, 21);
    world.refused("rpki-ee-2", &asked[0], "acme.cer: its extension of resources");
}

/// Whoever may ask has manifests signed all the time, each with other good certificates of the same files.
#[test]
fn manifests_are_counted_by_the_day() {
    let (mut world, mut files) = world();
    files[2].1 = world.shelf.put(&world.list_of("acme", 1, &[], 2 * DAY).1);
    for number in 1..=64 {
        let asked = world.manifest(number, &files, 2, 21);
        world.ask("rpki-ee-2", &asked[0]).unwrap();
        world.now += 1;
    }
    let more = world.manifest(65, &files, 2, 21);
    world.refused("rpki-ee-2", &more[0], "there are 64 manifests of acme that have begun within a day");
    world.now += 1_800;
    let more = world.manifest(65, &files, 2, 21);
    world.ask("rpki-ee-2", &more[0]).unwrap();
}
