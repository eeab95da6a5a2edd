//! Certificates of authorities.

use rpki::repository::{
    cert::{Overclaim, TbsCert},
    resources::ResourceSet,
    x509::Serial,
};
use theta_rpki::registry::Registry;

use crate::issuer::{World, keys, no_addresses, registry_text, rsync, tbs};

#[test]
fn authorities_are_certified_as_the_data_have_it() {
    let mut world = World::new();
    let certificate = world.certify();
    let held = ResourceSet::try_from(&certificate).unwrap();
    assert_eq!(held, ResourceSet::from_strs("AS64496", "192.0.2.0/24", "2001:db8::/32").unwrap());
}

/// A change of a certificate, and what is said against it.
type Bend = (fn(&mut TbsCert), &'static str);

#[test]
fn whatever_else_an_authority_would_claim_is_refused() {
    let bends: [Bend; 9] = [
        (|bent| bent.set_as_resources_inherit(), "inheritance of resources"),
        (
            |bent| bent.set_v4_resources(ResourceSet::all().to_ip_resources_v4()),
            "two registries' data differ about acme: ",
        ),
        (|bent| bent.set_overclaim(Overclaim::Trim), "certificate policy"),
        (|bent| bent.set_basic_ca(None), "basic constraints"),
        (|bent| bent.set_rpki_notify(None), "address of notifications"),
        (|bent| bent.set_ca_repository(Some(rsync("rsync://evil.example/repo/acme/"))), "address of the repository"),
        (|bent| bent.set_crl_uri(Some(rsync("rsync://evil.example/repo/ta.crl"))), "address of revoked certificates"),
        (|bent| bent.set_authority_key_identifier(None), "authority key identifier"),
        (|bent| bent.set_subject_public_key(keys().public(keys().foreign)), "subject"),
    ];
    let mut world = World::new();
    for (bend, words) in bends {
        let mut bent = world.authority_certificate(world.acme(), 2);
        bend(&mut bent);
        world.refused("rpki-ta", &tbs(&bent), words);
    }
    let good = world.authority_certificate(world.acme(), 2);
    world.ask("rpki-ta", &tbs(&good)).unwrap();
    let mut stranger = good.clone();
    stranger.set_subject_public_key(keys().public(keys().foreign));
    stranger.set_subject(keys().public(keys().foreign).to_subject_name());
    world.refused("rpki-ta", &tbs(&stranger), "public key");
    // The member cannot certify itself, and nobody else.
    world.refused("rpki-acme", &tbs(&good), "issuer");
}

#[test]
fn serial_numbers_and_times_are_used_once_and_are_of_now() {
    let mut world = World::new();
    let good = world.authority_certificate(world.acme(), 2);
    world.ask("rpki-ta", &tbs(&good)).unwrap();
    world.ask("rpki-ta", &tbs(&good)).unwrap();
    let mut other = good;
    other.set_validity(world.validity(1_001 * 86_400));
    world.refused("rpki-ta", &tbs(&other), "serial number 2 was used before");
    other.set_serial_number(0_u64);
    world.refused("rpki-ta", &tbs(&other), "serial number 0");
    other.set_serial_number(3_u64);
    world.ask("rpki-ta", &tbs(&other)).unwrap();
    other.set_serial_number(4_u64);
    other.set_validity(world.validity(3_000 * 86_400));
    world.refused("rpki-ta", &tbs(&other), "end is later");
    world.now += 1_000;
    world.refused("rpki-ta", &tbs(&other), "beginning is not now");
}

/// One registry would end all that is below a certificate, the anchor's own as well, by one that takes its place and ends in minutes.
#[test]
fn an_authoritys_certificate_lasts() {
    let mut world = World::new();
    for (of, serial) in [("ta", 1), ("acme", 2)] {
        let authority = world.registry.authority(of).unwrap();
        let mut brief = world.authority_certificate(authority, serial);
        for seconds in [120, 915 * 86_400 - 1] {
            brief.set_validity(world.validity(seconds));
            world.refused("rpki-ta", &tbs(&brief), "an authority's certificate lasts half as long");
        }
        brief.set_validity(world.validity(915 * 86_400));
        world.ask("rpki-ta", &tbs(&brief)).unwrap();
    }
}

/// Whoever may ask has certificates signed for a file until no more are taken: for the others that is over a day later.
#[test]
fn certificates_of_a_file_are_counted_by_the_day() {
    let mut world = World::new();
    for serial in 1..=64 {
        let certificate = world.authority_certificate(world.acme(), serial);
        world.ask("rpki-ta", &tbs(&certificate)).unwrap();
    }
    let more = world.authority_certificate(world.acme(), 65);
    world.refused("rpki-ta", &tbs(&more), "there are 64 certificates of acme.cer that have begun within a day");
    world.now += 86_401;
    let more = world.authority_certificate(world.acme(), 65);
    world.ask("rpki-ta", &tbs(&more)).unwrap();
}

/// One issuer would have a certificate that relying parties refuse: what the member has none of is mentioned, and empty.
#[test]
fn what_a_member_has_none_of_is_not_mentioned() {
    let mut world = World::new();
    let text = registry_text().replace("v6 = [\"2001:db8::/32\"]\n", "");
    assert_ne!(text, registry_text());
    world.registry = Registry::parse(&text).unwrap();
    let good = world.authority_certificate(world.acme(), 2);
    let mut bent = good.clone();
    bent.set_v6_resources(no_addresses());
    world.refused("rpki-ta", &tbs(&bent), "one is there and empty");
    world.ask("rpki-ta", &tbs(&good)).unwrap();
}

#[test]
fn serial_numbers_have_159_bits() {
    let mut world = World::new();
    let mut certificate = world.authority_certificate(world.acme(), 2);
    certificate.set_serial_number(Serial::from_array([0x7f; 20]).unwrap());
    let good = tbs(&certificate);
    let head = [&[2_u8, 20][..], &[0x7f; 20]].concat();
    let at = good.windows(head.len()).position(|window| window == head).unwrap();
    let mut bent = good.clone();
    bent[at + 2] = 0xff;
    world.refused("rpki-ta", &bent, "these bytes are no certificate");
    world.ask("rpki-ta", &good).unwrap();
}
