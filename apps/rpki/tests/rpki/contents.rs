//! ROAs and ASPAs: what their keys sign, and what their keys are certified for.

use rpki::repository::resources::ResourceSet;
use sha2::{Digest as _, Sha256};
use theta_rpki::{memory::Entry, registry::Registry, statements::Statement};

use crate::issuer::{DAY, World, aspa, base64, keys, no_addresses, registry_text, roa, time};

#[test]
fn what_a_member_has_stated_is_signed() {
    let mut world = World::new();
    for (number, attestation) in [roa(64_496, &["192.0.2.0/24-25", "2001:db8::/48"]), aspa(&[1, 2])].iter().enumerate()
    {
        world.state(attestation, true);
        let serial = u64::try_from(number + 1).unwrap();
        let (_, asked) = world.object(attestation, keys().objects[number], serial);
        let said = world.ask(&format!("rpki-ee-{number}"), &asked[0]).unwrap();
        let digest = hex::encode(Sha256::digest(world.statements[number].signed_bytes()));
        let by = format!("by acme's statement {number} (SHA-256 {digest}): ");
        assert_eq!(said.what, format!("{by}{attestation}"));
        let said = world.ask("rpki-acme", &asked[1]).unwrap();
        assert_eq!(said.what, format!("{by}the certificate of the key of {attestation}"));
        // The same again, by whoever asks once more.
        world.ask(&format!("rpki-ee-{number}"), &asked[0]).unwrap();
        world.ask("rpki-acme", &asked[1]).unwrap();
    }
}

/// One registry invents a ROA, or an ASPA.
#[test]
fn what_no_member_has_stated_is_refused() {
    let mut world = World::new();
    world.state(&roa(64_496, &["192.0.2.0/24"]), true);
    world.state(&aspa(&[1]), true);
    for (number, forged) in [
        roa(666, &["192.0.2.0/24"]),
        roa(64_496, &["192.0.2.0/24-32"]),
        roa(64_496, &["192.0.2.0/25"]),
        roa(64_496, &["198.51.100.0/24"]),
        aspa(&[1, 2]),
    ]
    .iter()
    .enumerate()
    {
        let (_, asked) = world.object(forged, keys().objects[0], u64::try_from(number + 1).unwrap());
        world.refused("rpki-ee-0", &asked[0], "what it covers cannot be seen");
        world.shelf.put(&forged.encode());
        world.refused("rpki-ee-0", &asked[0], &format!("{forged} is authorised by no member's statement"));
        world.refused("rpki-acme", &asked[1], "is authorised by no member's statement");
    }
}

#[test]
fn what_was_withdrawn_is_not_signed_again() {
    let mut world = World::new();
    let attestation = roa(64_496, &["192.0.2.0/24"]);
    world.state(&attestation, true);
    world.state(&attestation, false);
    world.shelf.put(&attestation.encode());
    let (_, asked) = world.object(&attestation, keys().objects[0], 1);
    world.refused("rpki-ee-0", &asked[0], "is authorised by no member's statement");
    world.refused("rpki-acme", &asked[1], "is authorised by no member's statement");
}

#[test]
fn a_key_signs_one_content_and_is_certified_for_it() {
    let mut world = World::new();
    let (one, two) = (roa(64_496, &["192.0.2.0/24"]), aspa(&[1]));
    world.state(&one, true);
    world.state(&two, true);
    let (_, first) = world.object(&one, keys().objects[0], 1);
    let (_, second) = world.object(&two, keys().objects[0], 2);
    world.ask("rpki-ee-0", &first[0]).unwrap();
    world.refused("rpki-ee-0", &second[0], "for another content already");
    world.refused("rpki-acme", &second[1], "for another content already");
    world.ask("rpki-acme", &first[1]).unwrap();
}

#[test]
fn certificates_of_objects_have_what_the_object_has() {
    let mut world = World::new();
    let attestation = roa(64_496, &["192.0.2.0/24"]);
    world.state(&attestation, true);
    let wide = ResourceSet::from_strs("", "192.0.0.0/16", "").unwrap();
    let (_, asked) = world.object_with(&attestation, keys().objects[0], 1, |builder| {
        builder.set_v4_resources(wide.to_ip_resources_v4());
    });
    world.refused("rpki-acme", &asked[1], "it claims");
    let (_, asked) =
        world.object_with(&attestation, keys().objects[0], 1, |builder| builder.set_as_resources_inherit());
    world.refused("rpki-acme", &asked[1], "inheritance of resources");
    let (_, asked) = world.object(&attestation, keys().foreign, 1);
    world.refused("rpki-acme", &asked[1], "public key");
    let (late, other) = (world.validity(500 * 86_400), aspa(&[1]).file_name());
    let (_, asked) = world.object_with(&attestation, keys().objects[0], 1, |builder| builder.set_validity(late));
    world.refused("rpki-acme", &asked[1], "end is later");
    let address = crate::issuer::rsync(&world.acme().address(&other));
    let (_, asked) =
        world.object_with(&attestation, keys().objects[0], 1, |builder| builder.set_signed_object(address));
    world.refused("rpki-acme", &asked[1], "is authorised by no member's statement");
    let early = time(world.now - 5_000);
    let (_, asked) = world.object_with(&attestation, keys().objects[0], 1, |builder| builder.set_signing_time(early));
    world.refused("rpki-ee-0", &asked[0], "signing time is not now");
}

#[test]
fn keys_sign_what_they_are_for() {
    let mut world = World::new();
    let attestation = roa(64_496, &["192.0.2.0/24"]);
    world.state(&attestation, true);
    let (_, asked) = world.object(&attestation, keys().objects[0], 1);
    world.refused("rpki-acme", &asked[0], "is for an authority, and does not sign objects");
    world.refused("rpki-ee-0", &asked[1], "is for one object, and does not sign certificates");
    world.refused("rpki-ta", &asked[1], "issuer");
    world.refused("mail", &asked[0], "mail is no key of an authority");
    world.refused("rpki-ee-0", b"bytes", "these bytes are no certificate");
    for bytes in &asked {
        for end in 0..bytes.len() {
            world.refused("rpki-acme", &bytes[..end], "these bytes are no certificate");
        }
        world.refused("rpki-acme", &[&bytes[..], &[0]].concat(), "these bytes are no certificate");
    }
}

/// A certificate binds a key as its signature does.
#[test]
fn a_certified_key_signs_nothing_else() {
    let mut world = World::new();
    let (one, two) = (roa(64_496, &["192.0.2.0/24"]), aspa(&[1]));
    world.state(&one, true);
    world.state(&two, true);
    let (_, first) = world.object(&one, keys().objects[0], 1);
    let (_, second) = world.object(&two, keys().objects[0], 2);
    world.ask("rpki-acme", &first[1]).unwrap();
    world.refused("rpki-ee-0", &second[0], "for another content already");
    world.refused("rpki-acme", &second[1], "for another content already");
    world.ask("rpki-ee-0", &first[0]).unwrap();
}

/// One issuer would have a certificate that relying parties refuse, and that has what the object has.
#[test]
fn what_an_object_has_none_of_is_not_mentioned() {
    let mut world = World::new();
    let attestation = roa(64_496, &["192.0.2.0/24"]);
    world.state(&attestation, true);
    let (_, asked) =
        world.object_with(&attestation, keys().objects[0], 1, |builder| builder.set_v6_resources(no_addresses()));
    world.refused("rpki-acme", &asked[1], "one is there and empty");
    let (_, asked) = world.object(&attestation, keys().objects[0], 1);
    world.ask("rpki-acme", &asked[1]).unwrap();
}

/// One issuer would fill the memories of all.
#[test]
fn certificates_of_a_file_are_counted() {
    let mut world = World::new();
    let attestation = roa(64_496, &["192.0.2.0/24"]);
    world.state(&attestation, true);
    for serial in 1..=64 {
        let (_, asked) = world.object(&attestation, keys().objects[0], serial);
        world.ask("rpki-acme", &asked[1]).unwrap();
        // The same again is not one more.
        world.ask("rpki-acme", &asked[1]).unwrap();
    }
    let (_, asked) = world.object(&attestation, keys().objects[0], 65);
    world.refused("rpki-acme", &asked[1], "there are 64 certificates");
    // A list that he publishes nowhere makes no room for more.
    let replaced: Vec<_> = (1..64).collect();
    let (list, _) = world.list(1, &replaced);
    world.ask("rpki-acme", &list).unwrap();
    world.refused("rpki-acme", &asked[1], "there are 64 certificates");
    world.now += DAY;
    let (_, asked) = world.object(&attestation, keys().objects[0], 65);
    world.ask("rpki-acme", &asked[1]).unwrap();
}

/// One issuer would have all keys of the pool for one content.
#[test]
fn keys_of_a_content_are_counted() {
    let mut world = World::new();
    let attestation = roa(64_496, &["192.0.2.0/24"]);
    world.state(&attestation, true);
    let digest = attestation.digest();
    for key in 1..=3 {
        world.memory.learn(Entry::Content { key: [key; 20], digest, authority: "acme".to_owned(), from: world.now });
    }
    let (_, first) = world.object(&attestation, keys().objects[0], 1);
    world.ask("rpki-ee-0", &first[0]).unwrap();
    let (_, other) = world.object(&attestation, keys().objects[1], 2);
    world.refused(
        "rpki-ee-1",
        &other[0],
        "4 keys were taken for that within a day, and no other one is taken for it now; rpki-ee-0 may",
    );
    world.refused("rpki-acme", &other[1], "4 keys were taken for that within a day");
    // One of them may sign it again, and be certified again.
    world.now += 1;
    let (_, again) = world.object(&attestation, keys().objects[0], 3);
    world.ask("rpki-ee-0", &again[0]).unwrap();
    world.ask("rpki-acme", &again[1]).unwrap();
    // He may have had others taken at each registry, so that no key is for it at all of them: a day later another one is taken.
    world.now += DAY;
    let (_, other) = world.object(&attestation, keys().objects[1], 2);
    world.ask("rpki-ee-1", &other[0]).unwrap();
    world.ask("rpki-acme", &other[1]).unwrap();
}

/// One member would have all keys of the pool. Others have theirs, and whoever asks cannot use up a member's.
#[test]
fn objects_of_a_member_are_counted() {
    let mut world = World::new();
    let text = registry_text().replace("need = 2\n\n[[authority]]", "need = 2\nobjects = 1\n\n[[authority]]");
    assert_ne!(text, registry_text());
    world.registry = Registry::parse(&text).unwrap();
    let (one, two) = (roa(64_496, &["192.0.2.0/24"]), aspa(&[1]));
    world.state(&one, true);
    world.state(&two, true);
    for key in 0..=1 {
        let (_, asked) = world.object(&one, keys().objects[key], 1);
        world.ask(&format!("rpki-ee-{key}"), &asked[0]).unwrap();
    }
    let (_, asked) = world.object(&two, keys().objects[2], 2);
    world.refused(
        "rpki-ee-2",
        &asked[0],
        "there are 1 different objects of acme, as many as the registry's data permit",
    );
    world.refused(
        "rpki-acme",
        &asked[1],
        "there are 1 different objects of acme, as many as the registry's data permit",
    );
    world.registry = Registry::parse(&text.replace("objects = 1", "objects = 2")).unwrap();
    world.ask("rpki-ee-2", &asked[0]).unwrap();
}

/// Two members hold the same prefixes, and state the same. One that may have no more objects keeps it from none but itself.
#[test]
fn a_member_that_may_have_no_more_keeps_nothing_from_another() {
    let mut world = World::new();
    let text = registry_text().replace("need = 2\n\n[[authority]]", "need = 2\nobjects = 1\n\n[[authority]]");
    let other = format!(
        "[[member]]\nhandle = \"other\"\nv4 = [\"192.0.2.0/24\"]\nkeys = [\"{}\"]\n\n\
         [[authority]]\nname = \"other\"\nkey = \"rpki-other\"\npublic = \"{}\"\nparent = \"ta\"\nmember = \"other\"\n\
         certificate = \"rsync://rpki.example/repo/ta/other.cer\"\nrepository = \"rsync://rpki.example/repo/other/\"\n",
        hex::encode([7; 32]),
        base64(keys().foreign),
    );
    world.registry = Registry::parse(&format!("{text}\n{other}")).unwrap();
    let (one, two) = (roa(64_496, &["192.0.2.0/24"]), roa(64_497, &["192.0.2.0/24"]));
    world.state(&one, true);
    world.state(&two, true);
    let (_, first) = world.object(&one, keys().objects[0], 1);
    world.ask("rpki-ee-0", &first[0]).unwrap();
    let (_, second) = world.object(&two, keys().objects[1], 2);
    world.refused("rpki-ee-1", &second[0], "there are 1 different objects of acme");
    let others = world.statements.last().unwrap().clone();
    world.statements.push(Statement { member: "other".to_owned(), ..others });
    world.ask("rpki-ee-1", &second[0]).unwrap();
}
