//! Signatures that are wrong, while all hashes are right.

use bytes::Bytes;
use theta_rpki_publication::{
    check::CheckError,
    publication::{Outcome, PublicationError},
};

use crate::{
    publisher::Publisher,
    repository::{Authority, Files, from_now},
};

/// The bytes, the last of which is the end of the signature, with another last one.
fn bent(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    Bytes::from(bytes)
}

fn check_error(refused: Result<Outcome, PublicationError>) -> CheckError {
    match refused {
        Err(PublicationError::Check(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_signed_object_is_signed_by_the_key_of_its_certificate() {
    let (publisher, authority) = (Publisher::new(), Authority::new());
    let mut files = authority.files(1, from_now(3600), &Files::new());
    let good = files.clone();
    files.insert("ca.mft".to_owned(), bent(&good["ca.mft"]));
    let error = check_error(publisher.publish(&files));
    assert!(matches!(&error, CheckError::Signature { uri } if *uri == authority.at("mft")), "{error}");
    assert!(matches!(publisher.publish(&good), Ok(Outcome::Published { new: 2, .. })));
}

#[test]
fn all_is_signed_by_the_authority_whose_certificate_names_the_manifest() {
    let (publisher, authority, other) = (Publisher::new(), Authority::new(), Authority::new());
    let anchor = ("ca.cer".to_owned(), authority.own_certificate());
    let listed = |crl: Bytes, more: Option<(String, Bytes)>| {
        let mut files: Files = more.into_iter().collect();
        files.insert("ca.crl".to_owned(), crl);
        files
    };
    let whole = |signer: &Authority, mut files: Files| {
        let manifest = signer.manifest(1, from_now(3600), &files);
        files.extend([("ca.mft".to_owned(), manifest), anchor.clone()]);
        files
    };
    let crl = authority.crl(1, from_now(3600));
    let strange = ("strange.cer".to_owned(), other.certificate_of_a_stranger());
    let wrong = [
        (whole(&other, listed(crl.clone(), None)), "ca.mft"),
        (whole(&authority, listed(other.crl(1, from_now(3600)), None)), "ca.crl"),
        (whole(&authority, listed(bent(&crl), None)), "ca.crl"),
        (whole(&authority, listed(crl.clone(), Some(strange))), "strange.cer"),
    ];
    for (files, name) in wrong {
        let error = check_error(publisher.publish(&files));
        let CheckError::Issuer { uri, certificate } = error else { panic!("{error}") };
        assert_eq!(uri.as_str(), format!("rsync://rpki.example.net/repo/ca/{name}"));
        assert_eq!(certificate, authority.at("cer"));
    }
    let good = whole(&authority, listed(crl, None));
    assert!(matches!(publisher.publish(&good), Ok(Outcome::Published { new: 3, .. })));
}

/// The parent's mistake is seen though the child has changed nothing.
#[test]
fn a_certificate_of_another_key_does_not_take_the_place_of_an_authoritys() {
    let publisher = Publisher::new();
    let (parent, child) = (Authority::new(), Authority::named("child"));
    let certified = |child: &Authority| Files::from([("child.cer".to_owned(), parent.certificate_of(child))]);
    publisher.leave("child", &child.files(1, from_now(3600), &Files::new()));
    publisher.publish(&parent.files(1, from_now(3600), &certified(&child))).unwrap();

    let error = publisher.refuses(&parent.files(2, from_now(3600), &certified(&Authority::named("child"))));
    assert!(matches!(&error, CheckError::Issuer { uri, .. } if *uri == child.at("mft")), "{error}");
    let renewed = publisher.publish(&parent.files(2, from_now(3600), &certified(&child)));
    assert!(matches!(renewed, Ok(Outcome::Published { new: 0, gone: 0, .. })), "{renewed:?}");
}
