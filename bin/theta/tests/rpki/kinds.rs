//! A registry that was taken over asks the nodes for an object of each kind that no member has stated, or that takes away what a member has stated.

use std::fs;

use rpki::repository::{crl::Crl, sigobj::SignedObject};
use theta_rpki::attestation::Attestation;

use crate::{
    forgery::{Forger, Refused},
    registries::{Registries, origins},
};

/// The one that was taken over. Its node signs everything.
const TAKEN_OVER: u16 = 1;

fn roa(network: u32, prefix: &str) -> Attestation {
    Attestation::roa(network, [prefix.parse().unwrap()].into()).unwrap()
}

/// The other registries say why not, to whoever asks and on their records; and nothing is signed.
#[track_caller]
fn refused<T>(registries: &Registries, made: Result<T, Refused>, words: &str) {
    let Err(Refused { key, words: said, .. }) = made else { panic!("it is signed, though {words}") };
    assert!(said.contains(words), "{key}: {said}");
    registries.await_refusals(TAKEN_OVER, &key, words);
}

#[test]
fn nothing_of_any_kind_is_forged_or_withdrawn() {
    let registries = Registries::new();
    registries.put_statement("grant --roa AS64496 --prefix 192.0.2.0/24 --out statements/acme/1.toml");
    registries.grant_providers("2.toml", "AS64496", "AS64497");
    registries.issue("registry.toml", "statements", "issued").ok();
    registries.publish().ok();
    let stated = origins(&[(64_496, "192.0.2.0/24")]);
    let providers = vec![("AS64496".to_owned(), vec!["AS64497".to_owned()])];
    assert_eq!((registries.validated(), registries.providers()), (stated.clone(), providers.clone()));
    registries.take_over(TAKEN_OVER);

    // A certificate of an authority, for more than the member holds: so this registry's data have it.
    let data = fs::read_to_string(registries.path().join("registry.toml")).unwrap();
    fs::write(registries.path().join("over.toml"), data.replace("[\"AS64496\"]", "[\"AS64496-AS64511\"]")).unwrap();
    fs::copy(registries.path().join("issued"), registries.path().join("issued-otherwise")).unwrap();
    let said = registries.issue("over.toml", "statements", "issued-otherwise").fails();
    let more = "two registries' data differ about acme: it holds asn: 'AS64496-AS64511'";
    assert!(said.contains(more), "{said}");
    registries.await_refusals(TAKEN_OVER, "rpki-ta", more);

    // Objects, and a certificate of an object's key for more than the object.
    let forger = Forger::new(&registries, "rpki-ee-9");
    let unstated = "is authorised by no member's statement that counts now";
    refused(
        &registries,
        forger.object(&roa(666, "192.0.2.0/24")),
        &format!("the ROA of AS666 for 192.0.2.0/24 {unstated}"),
    );
    let aspa = Attestation::aspa(64_496, [666].into()).unwrap();
    refused(&registries, forger.object(&aspa), unstated);
    let wide = roa(64_496, "192.0.0.0/16").resources().to_ip_resources_v4();
    let bearer = Forger::new(&registries, "rpki-ee-8");
    refused(&registries, bearer.object_with(&roa(64_496, "192.0.2.0/24"), wide), "it claims ");

    // A manifest without the ROA; and one with it, and with a list that revokes it.
    let files: Vec<_> = registries.files().into_iter().filter(|(name, _)| !name.ends_with(".mft")).collect();
    let without = files.iter().filter(|(name, _)| !name.ends_with(".roa")).cloned().collect::<Vec<_>>();
    let missing = "the ROA of AS64496 for 192.0.2.0/24 is missing, and acme has not withdrawn it";
    refused(&registries, forger.manifest(&without), missing);
    let (_, object) = files.iter().find(|(name, _)| name.ends_with(".roa")).unwrap();
    let serial = SignedObject::decode(object.as_slice(), true).unwrap().cert().serial_number();
    // By itself such a list harms nothing, and may be had.
    let list = forger.list(&[serial]).unwrap();
    assert!(Crl::decode(list.as_slice()).unwrap().contains(serial));
    let revoking = files
        .iter()
        .map(|(name, bytes)| (name.clone(), if name.ends_with(".crl") { list.clone() } else { bytes.clone() }));
    refused(&registries, forger.manifest(&revoking.collect::<Vec<_>>()), "its certificate is revoked");

    registries.await_named(TAKEN_OVER);
    registries.publish().ok();
    assert_eq!((registries.validated(), registries.providers()), (stated, providers), "what was published stays");
    assert!(registries.record(TAKEN_OVER).contains("allowed"), "it has signed all of it alone");
}
