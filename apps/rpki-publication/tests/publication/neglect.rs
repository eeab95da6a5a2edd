//! What one authority neglects: it does not stop the others, and is not lost in silence.

use std::time::SystemTime;

use theta_rpki_publication::{
    check::CheckError,
    publication::{Outcome, PublicationError},
};

use crate::{
    publisher::Publisher,
    repository::{Authority, Files, from_now},
};

/// An authority, another one below it, and the files with which the first certifies the second.
fn family() -> (Authority, Authority, Files) {
    let (parent, child) = (Authority::new(), Authority::named("child"));
    let certificates = Files::from([("child.cer".to_owned(), parent.certificate_of(&child))]);
    (parent, child, certificates)
}

#[test]
fn a_point_that_expired_as_it_was_published_holds_nothing_up() {
    let publisher = Publisher::new();
    let (parent, child, certificates) = family();
    publisher.leave("child", &child.files(1, from_now(60), &Files::new()));
    publisher.publish(&parent.files(1, from_now(3600), &certificates)).unwrap();

    publisher.leave("ca", &parent.files(2, from_now(7200), &certificates));
    let report = publisher.run(from_now(120)).unwrap();
    assert!(matches!(report.outcome, Outcome::Published { serial: 2, new: 0, changed: 2, gone: 0, .. }), "{report:?}");
    let [CheckError::NotCurrent { uri, .. }] = report.warnings.as_slice() else { panic!("{report:?}") };
    assert_eq!(*uri, child.at("mft"));
    let report = publisher.run(from_now(120)).unwrap();
    assert_eq!((report.outcome, report.warnings.len()), (Outcome::Unchanged, 1));

    // What is new has to be current.
    publisher.leave("child", &child.files(2, from_now(60), &Files::new()));
    let error = publisher.refuses_at(from_now(120));
    assert!(matches!(error, CheckError::NotCurrent { .. }), "{error}");
    publisher.leave("child", &child.files(2, from_now(3600), &Files::new()));
    let report = publisher.run(from_now(120)).unwrap();
    assert!(matches!(report.outcome, Outcome::Published { serial: 3, changed: 2, .. }), "{report:?}");
    assert!(report.warnings.is_empty(), "{report:?}");
}

#[test]
fn what_is_expired_at_first_is_not_published() {
    let publisher = Publisher::new();
    let (parent, child, certificates) = family();
    publisher.leave("child", &child.files(1, from_now(60), &Files::new()));
    publisher.leave("ca", &parent.files(1, from_now(3600), &certificates));
    let refused = publisher.run(from_now(120));
    assert!(matches!(refused, Err(PublicationError::Check(CheckError::NotCurrent { .. }))), "{refused:?}");
}

#[test]
fn a_point_that_goes_missing_is_named_and_the_old_state_stays() {
    let publisher = Publisher::new();
    let (parent, child, certificates) = family();
    publisher.leave("child", &child.files(1, from_now(3600), &Files::new()));
    publisher.publish(&parent.files(1, from_now(3600), &certificates)).unwrap();

    publisher.leave("child", &Files::new());
    for files in [parent.files(2, from_now(3600), &certificates), parent.files(3, from_now(3600), &certificates)] {
        let error = publisher.refuses(&files);
        let CheckError::MissingPoint { certificate, manifest } = error else { panic!("{error}") };
        assert_eq!(certificate.as_str(), "rsync://rpki.example.net/repo/ca/child.cer");
        assert_eq!(manifest, child.at("mft"));
    }
    // With its certificate it may go.
    let outcome = publisher.publish(&parent.files(2, from_now(3600), &Files::new())).unwrap();
    assert!(matches!(outcome, Outcome::Published { new: 0, changed: 2, gone: 3, .. }), "{outcome:?}");
}

#[test]
fn a_point_that_was_missing_before_is_warned_of() {
    let mut publisher = Publisher::new();
    let (parent, child, certificates) = family();
    publisher.leave("ca", &parent.files(1, from_now(3600), &certificates));
    let refused = publisher.run(SystemTime::now());
    assert!(matches!(refused, Err(PublicationError::Check(CheckError::MissingPoint { .. }))), "{refused:?}");

    publisher.settings.without = vec![child.at("mft")];
    let report = publisher.run(SystemTime::now()).unwrap();
    assert!(matches!(report.outcome, Outcome::Published { new: 3, .. }), "{report:?}");
    assert_eq!(report.warnings.len(), 1, "{report:?}");

    publisher.settings.without = Vec::new();
    publisher.leave("ca", &parent.files(2, from_now(3600), &certificates));
    let report = publisher.run(SystemTime::now()).unwrap();
    assert!(matches!(report.outcome, Outcome::Published { changed: 2, .. }), "{report:?}");
    assert!(matches!(report.warnings.as_slice(), [CheckError::MissingPoint { .. }]), "{report:?}");

    publisher.leave("child", &child.files(1, from_now(3600), &Files::new()));
    let report = publisher.run(SystemTime::now()).unwrap();
    assert!(matches!(report.outcome, Outcome::Published { new: 2, .. }), "{report:?}");
    assert!(report.warnings.is_empty(), "{report:?}");
}
