//! A state that cannot be continued, and a new session after it.

use std::{fs, time::SystemTime};

use rpki::uri::Https;
use theta_rpki_publication::{
    check::CheckError,
    publication::{Outcome, PublicationError},
};

use crate::{
    publisher::Publisher,
    repository::{Authority, Files, from_now},
};

#[test]
fn a_broken_state_is_named_and_takes_a_new_session() {
    let (mut publisher, authority) = (Publisher::new(), Authority::new());
    let files = authority.files(5, from_now(3600), &Files::new());
    let Ok(Outcome::Published { session: old, .. }) = publisher.publish(&files) else { panic!("published") };
    fs::write(publisher.output.path().join("rrdp/notification.xml"), "<notification").unwrap();
    let refused = publisher.publish(&files).unwrap_err();
    assert!(matches!(refused, PublicationError::State { .. }), "{refused}");
    assert!(refused.to_string().contains("--new-session"), "{refused}");

    // The tree still says which numbers were published.
    publisher.settings.new_session = true;
    let error = publisher.refuses(&authority.files(4, from_now(3600), &Files::new()));
    assert!(matches!(error, CheckError::Older { .. }), "{error}");

    let anew = publisher.publish(&files).unwrap();
    let Outcome::Published { session, serial: 1, new: 2, changed: 0, gone: 0 } = anew else { panic!("{anew:?}") };
    assert_ne!(session, old);
    publisher.settings.new_session = false;
    assert_eq!(publisher.publish(&files).unwrap(), Outcome::Unchanged);
}

#[test]
fn another_base_takes_a_new_session() {
    let (mut publisher, authority) = (Publisher::new(), Authority::new());
    let files = authority.files(1, from_now(3600), &Files::new());
    publisher.publish(&files).unwrap();
    publisher.settings.base = Https::from_string("https://rpki.example.net/moved/".to_owned()).unwrap();
    let refused = publisher.run(SystemTime::now()).unwrap_err();
    assert!(matches!(refused, PublicationError::State { .. }), "{refused}");
    publisher.settings.new_session = true;
    assert!(matches!(publisher.publish(&files), Ok(Outcome::Published { serial: 1, .. })));
}

#[test]
fn who_begins_anew_is_warned_of_what_expired_as_it_was() {
    let (mut publisher, authority) = (Publisher::new(), Authority::new());
    publisher.publish(&authority.files(1, from_now(60), &Files::new())).unwrap();
    publisher.settings.new_session = true;
    let report = publisher.run(from_now(120)).unwrap();
    assert!(matches!(report.outcome, Outcome::Published { serial: 1, .. }), "{report:?}");
    assert_eq!(report.warnings.len(), 1, "{report:?}");
}
