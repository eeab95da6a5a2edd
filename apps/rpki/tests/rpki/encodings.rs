//! Other encodings of what would be good: relying parties may refuse them, which would withdraw what they are for.

use rpki::dep::bcder::{Mode, encode::Values as _};
use theta_rpki::{memory::Digest, store::Store as _};

use crate::issuer::{World, keys, roa};

const FORM: &str = "these bytes are no certificate";

/// A value of DER.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let digits = content.len().to_be_bytes();
    let digits: Vec<u8> = digits.iter().copied().skip_while(|digit| *digit == 0).collect();
    let head = match digits.as_slice() {
        [] => vec![tag, 0],
        [digit] if *digit < 0x80 => vec![tag, *digit],
        digits => [&[tag, 0x80 | u8::try_from(digits.len()).unwrap()][..], digits].concat(),
    };
    [&head[..], content].concat()
}

/// How long the head of a value is, and its content.
fn lengths(bytes: &[u8]) -> (usize, usize) {
    if bytes[1] < 0x80 {
        return (2, usize::from(bytes[1]));
    }
    let count = usize::from(bytes[1] & 0x7f);
    (2 + count, bytes[2..2 + count].iter().fold(0, |length: usize, digit| (length << 8) | usize::from(*digit)))
}

/// The values that a value consists of.
fn parts(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &bytes[lengths(bytes).0..];
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (head, content) = lengths(rest);
        parts.push(rest[..head + content].to_vec());
        rest = &rest[head + content..];
    }
    parts
}

/// The value at a place: the number of a part, that of a part of it, and so on.
fn at(bytes: &[u8], place: &[usize]) -> Vec<u8> {
    place.iter().fold(bytes.to_vec(), |value, part| parts(&value)[*part].clone())
}

/// The same with another value at a place.
fn with(bytes: &[u8], place: &[usize], other: &[u8]) -> Vec<u8> {
    let Some((part, place)) = place.split_first() else { return other.to_vec() };
    let mut all = parts(bytes);
    all[*part] = with(&all[*part], place, other);
    value(bytes[0], &all.concat())
}

/// A time with a century.
fn long(time: &[u8]) -> Vec<u8> {
    assert_eq!(time[0], 0x17, "a UTCTime");
    value(0x18, &[&b"20"[..], &time[2..]].concat())
}

/// The attributes of an object in another order than that of DER.
fn turned(attributes: &[u8]) -> Vec<u8> {
    let mut parts = parts(attributes);
    parts.reverse();
    value(attributes[0], &parts.concat())
}

#[test]
fn attributes_have_one_encoding() {
    let mut world = World::new();
    let attestation = roa(64_496, &["192.0.2.0/24"]);
    world.state(&attestation, true);
    let (_, asked) = world.object(&attestation, keys().objects[0], 1);
    let good = &asked[0];
    let time = [1, 1, 0];
    for bent in [
        turned(good),
        with(good, &time, &long(&at(good, &time))),
        [&[0x31, 0x81][..], &good[1..]].concat(),
        [&good[..], &[0][..]].concat(),
    ] {
        assert_ne!(bent, *good);
        world.refused("rpki-ee-0", &bent, FORM);
    }
    world.ask("rpki-ee-0", good).unwrap();
}

#[test]
fn lists_have_one_encoding() {
    let mut world = World::new();
    let (good, _) = world.list(1, &[99]);
    let time = [5, 0, 1];
    world.refused("rpki-acme", &with(&good, &time, &long(&at(&good, &time))), FORM);
    world.ask("rpki-acme", &good).unwrap();
}

#[test]
fn the_contents_of_manifests_have_one_encoding() {
    let mut world = World::new();
    world.certify();
    let (_, list) = world.list(1, &[]);
    let files = [("acme.crl".to_owned(), world.shelf.put(&list))];
    let asked = world.manifest(1, &files, 2, 21);
    let place = [2, 1, 0];
    let digest: Digest = at(&asked[0], &place)[2..].try_into().unwrap();
    let content = world.shelf.content(&digest).unwrap();
    let (file, other) = ([4, 0, 1], [8_u8; 32]);
    let plain = with(&content, &file, &value(3, &[&[0][..], &other[..]].concat()));
    // Three bits of it are said to be unused, which are 0.
    let bent = with(&content, &file, &value(3, &[&[3][..], &other[..]].concat()));
    for (content, words) in [(plain, "what it covers cannot be seen"), (bent, FORM)] {
        let attributes = with(&asked[0], &place, &value(4, &world.shelf.put(&content)));
        world.refused("rpki-ee-2", &attributes, words);
    }
    world.ask("rpki-ee-2", &asked[0]).unwrap();
}

/// Prefixes out of order, and one within another.
#[test]
fn resources_have_one_encoding() {
    let mut world = World::new();
    let attestation = roa(64_496, &["192.0.2.0/25", "192.0.2.192/26"]);
    world.state(&attestation, true);
    let (_, asked) = world.object(&attestation, keys().objects[0], 1);
    let [low, high, within] = [[7, 192, 0, 2, 0], [6, 192, 0, 2, 192], [6, 192, 0, 2, 64]].map(|bits| value(3, &bits));
    let pair = [&low[..], &high[..]].concat();
    let place = asked[1].windows(pair.len()).position(|window| window == pair).unwrap();
    for other in [[&high[..], &low[..]].concat(), [&low[..], &within[..]].concat()] {
        let mut bent = asked[1].clone();
        bent[place..place + pair.len()].copy_from_slice(&other);
        world.refused("rpki-acme", &bent, FORM);
    }
    world.ask("rpki-acme", &asked[1]).unwrap();
}

/// An object whose key has signed its attributes in another order: whoever reads it as the library does takes it.
#[test]
fn objects_have_one_encoding() {
    let mut world = World::new();
    world.certify();
    let attestation = roa(64_496, &["192.0.2.0/24"]);
    world.state(&attestation, true);
    let (object, _) = world.object(&attestation, keys().objects[0], 11);
    let good = object.encode_ref().to_captured(Mode::Der).into_bytes().to_vec();
    let (attributes, signature) = ([1, 0, 4, 0, 3], [1, 0, 4, 0, 5]);
    let carried = turned(&at(&good, &attributes));
    let mut signed = carried.clone();
    signed[0] = 0x31;
    let signed = keys().sign(keys().objects[0], &signed);
    let bent = with(&with(&good, &attributes, &carried), &signature, &value(4, &signed));
    let (_, list) = world.list(1, &[]);
    let list = ("acme.crl".to_owned(), world.shelf.put(&list));
    for (file, good) in [(&bent, false), (&good, true)] {
        let files = [(attestation.file_name(), world.shelf.put(file)), list.clone()];
        let asked = world.manifest(1, &files, 2, 21);
        if good {
            world.ask("rpki-ee-2", &asked[0]).unwrap();
        } else {
            world.refused("rpki-ee-2", &asked[0], "it is not in the one form in which objects are made");
        }
    }
}
