//! Manifests: all that is authorised, and nothing else.

use rpki::dep::bcder::{Mode, encode::Values as _};
use theta_rpki::{attestation::Attestation, memory::Digest};

use crate::issuer::{World, aspa, keys, roa};

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
    let asked = world.manifest(6, &files, 3, 22);
    world.refused("rpki-ee-3", &asked[0], "the manifest's number 6 was used before, or a higher one was");
    let (newer, _) = world.list(9, &[]);
    world.ask("rpki-acme", &newer).unwrap();
    let asked = world.manifest(8, &files, 3, 22);
    world.refused("rpki-ee-3", &asked[0], "there is a newer one");
    let without = world.manifest(8, &files[..2], 3, 22);
    world.refused("rpki-ee-3", &without[0], "list of revoked certificates");
}
