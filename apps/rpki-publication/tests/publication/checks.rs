use std::time::Duration;

use bytes::Bytes;
use rpki::repository::x509::Validity;
use theta_rpki_publication::{
    check::{self, CheckError},
    due::{Step, due},
    objects::Objects,
    publication::{Outcome, PublicationError},
};

use crate::{
    publisher::Publisher,
    repository::{Authority, Files, begin, from_now},
};

fn child(authority: &Authority) -> Files {
    Files::from([("child.cer".to_owned(), authority.certificate_of_a_stranger())])
}

#[test]
fn what_fits_together_is_published_and_renewed() {
    let (publisher, authority) = (Publisher::new(), Authority::new());
    let child = child(&authority);
    let first = publisher.publish(&authority.files(1, from_now(3600), &child)).unwrap();
    let Outcome::Published { session, serial: 1, new: 3, changed: 0, gone: 0 } = first else { panic!("{first:?}") };
    let second = publisher.publish(&authority.files(2, from_now(7200), &Files::new())).unwrap();
    assert_eq!(second, Outcome::Published { session, serial: 2, new: 0, changed: 2, gone: 1 });
    assert_eq!(publisher.served(), Objects::read(publisher.objects.path()).unwrap());
}

#[test]
fn the_certificate_of_a_trust_anchor_is_on_no_manifest() {
    let (publisher, authority) = (Publisher::new(), Authority::new());
    let mut files = authority.files(1, from_now(3600), &Files::new());
    files.insert("ca.cer".to_owned(), authority.own_certificate());
    assert!(matches!(publisher.publish(&files), Ok(Outcome::Published { new: 3, .. })));
}

/// Relying parties take nothing of an anchor whose certificate has not begun, or has ended; one that is as it was published is published on.
#[test]
fn the_certificate_of_a_trust_anchor_is_valid_now() {
    let (publisher, authority) = (Publisher::new(), Authority::new());
    let mut files = authority.files(1, from_now(3600), &Files::new());
    files.insert("ca.cer".to_owned(), authority.own_certificate());
    publisher.publish(&files).unwrap();
    for (from, until) in [(600, 3600), (-3600, -600)] {
        let validity = Validity::new(from_now(from).into(), from_now(until).into());
        let mut files = files.clone();
        files.insert("ca.cer".to_owned(), authority.own_certificate_for(validity));
        let error = publisher.refuses(&files);
        assert!(matches!(error, CheckError::NotCurrent { .. }), "{error}");
    }
    publisher.leave("ca", &files);
    assert!(matches!(publisher.run(from_now(100_000)).unwrap().outcome, Outcome::Unchanged));
}

/// Until a manifest's own certificate begins relying parties take the manifest for none.
#[test]
fn a_manifest_waits_for_its_own_certificate() {
    let (publisher, authority) = (Publisher::new(), Authority::new());
    publisher.publish(&authority.files(1, from_now(3600), &Files::new())).unwrap();
    let mut files = Files::from([("ca.crl".to_owned(), authority.crl(2, from_now(3600)))]);
    let validity = Validity::new(from_now(300).into(), from_now(3600).into());
    let manifest = authority.manifest_for(validity, 2, (begin(2), from_now(3600)), &files);
    files.insert("ca.mft".to_owned(), manifest);
    let error = publisher.refuses(&files);
    assert!(matches!(error, CheckError::NotCurrent { .. }), "{error}");
    assert!(matches!(publisher.run(from_now(301)).unwrap().outcome, Outcome::Published { .. }));
}

#[test]
fn what_does_not_fit_is_refused_and_the_old_state_stays() {
    let (publisher, authority) = (Publisher::new(), Authority::new());
    let child = child(&authority);
    let good = authority.files(5, from_now(3600), &child);
    publisher.publish(&good).unwrap();

    let error = publisher.refuses(&Files::new());
    assert!(matches!(error, CheckError::Empty), "{error}");

    let mut files = good.clone();
    files.insert("child.cer".to_owned(), Bytes::from_static(b"no certificate"));
    let error = publisher.refuses(&files);
    assert!(matches!(error, CheckError::Hash { .. } | CheckError::Unparseable { .. }), "{error}");

    let mut files = good.clone();
    files.insert("child.cer".to_owned(), authority.certificate_of_a_stranger());
    let error = publisher.refuses(&files);
    assert!(matches!(error, CheckError::Hash { .. }), "{error}");

    let mut files = good.clone();
    files.insert("ca.mft".to_owned(), Bytes::from_static(b"no manifest"));
    let error = publisher.refuses(&files);
    assert!(matches!(error, CheckError::Unparseable { .. }), "{error}");

    let mut files = good.clone();
    files.insert("other.cer".to_owned(), authority.certificate_of_a_stranger());
    let error = publisher.refuses(&files);
    assert!(matches!(error, CheckError::Unlisted { .. }), "{error}");

    let mut files = good.clone();
    files.insert("notes.txt".to_owned(), Bytes::from_static(b"notes"));
    let error = publisher.refuses(&files);
    assert!(matches!(error, CheckError::Kind { .. }), "{error}");

    let mut files = good.clone();
    files.remove("child.cer");
    let error = publisher.refuses(&files);
    assert!(matches!(error, CheckError::Missing { .. }), "{error}");

    assert!(matches!(publisher.publish(&good), Ok(Outcome::Unchanged)));
}

#[test]
fn manifests_that_do_not_follow_the_published_ones_are_refused() {
    let (publisher, authority) = (Publisher::new(), Authority::new());
    let child = child(&authority);
    let issued = begin(5);
    let good = authority.files(5, from_now(3600), &child);
    publisher.publish(&good).unwrap();

    // One more manifest that lists the same.
    let mut files = good.clone();
    files.insert("second.mft".to_owned(), good["ca.mft"].clone());
    let error = publisher.refuses(&files);
    assert!(matches!(error, CheckError::Twice { .. }), "{error}");

    let mut files = child.clone();
    files.insert("ca.mft".to_owned(), authority.manifest(6, from_now(3600), &child));
    let error = publisher.refuses(&files);
    assert!(matches!(error, CheckError::Crls { count: 0, .. }), "{error}");

    for number in [4, 5] {
        let error = publisher.refuses(&authority.files(number, from_now(7200), &child));
        assert!(matches!(error, CheckError::Older { .. }), "{error}");
    }

    let error = publisher.refuses(&authority.files(6, from_now(-10), &child));
    assert!(matches!(error, CheckError::NotCurrent { .. }), "{error}");

    // Relying parties keep the manifest that they have if the next one has its time of issue, or an earlier one.
    let mut listed = child;
    listed.insert("ca.crl".to_owned(), good["ca.crl"].clone());
    for from in [issued, issued - Duration::from_secs(1)] {
        let mut files = listed.clone();
        files.insert("ca.mft".to_owned(), authority.manifest_of(6, from, from_now(7200), &listed));
        let error = publisher.refuses(&files);
        assert!(matches!(error, CheckError::NotLater { .. }), "{error}");
    }

    assert!(matches!(publisher.publish(&good), Ok(Outcome::Unchanged)));
}

#[test]
fn due_reads_signed_objects() {
    let (publisher, authority) = (Publisher::new(), Authority::new());
    publisher.publish(&authority.files(1, from_now(3600), &Files::new())).unwrap();
    let objects = Objects::read(publisher.objects.path()).unwrap();
    let points = check::points(&objects).unwrap();
    // Objects are of a minute ago, and end in an hour.
    for (at, step) in [(0, Step::Wait), (1700, Step::Wait), (1900, Step::Renew), (3700, Step::Expired)] {
        let due = due(&points, from_now(at));
        assert_eq!(due.iter().map(|due| due.step).collect::<Vec<_>>(), [step], "at {at}");
    }
}

#[test]
fn the_manifests_own_certificate_ends_its_time() {
    let authority = Authority::new();
    let publisher = Publisher::new();
    publisher.publish(&authority.files(1, from_now(7 * 86_400), &Files::new())).unwrap();
    let points = check::points(&Objects::read(publisher.objects.path()).unwrap()).unwrap();
    assert!(due(&points, from_now(0))[0].expires <= from_now(86_400));
}

#[test]
fn names_that_are_no_uris_are_refused() {
    let (publisher, authority) = (Publisher::new(), Authority::new());
    let files = authority.files(1, from_now(3600), &Files::new());
    publisher.publish(&files).unwrap();
    for name in ["with space.cer", "quote\".cer"] {
        let mut files = files.clone();
        files.insert(name.to_owned(), Bytes::new());
        let refused = publisher.publish(&files);
        assert!(matches!(refused, Err(PublicationError::Read(_))), "{refused:?}");
    }
    // An issuer that is writing.
    let mut files = files;
    files.insert(".half-written".to_owned(), Bytes::new());
    assert!(matches!(publisher.publish(&files), Ok(Outcome::Unchanged)));
}
