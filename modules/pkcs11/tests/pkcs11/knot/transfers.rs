//! Knot DNS as an operator's own name server, from which its agent has its copy of the zone. No group takes part.

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use theta_dnssec::{
    transfer::{Copy, Primary, tsig::Key},
    zone::Zone,
};
use theta_knot::{
    places::Places,
    server::{Knot, Setup},
};

use super::{PATIENCE, RECORDS, ZONE};
use crate::group::until;

pub(super) const SECRET: &str = "YW4gZXhhbXBsZSdzIHNlY3JldCwgb2YgMzIgYnl0ZXM=";

/// The zone as it is, for whoever knows the key.
pub(super) fn config() -> String {
    format!(
        "key:\n  - id: transfer.\n    algorithm: hmac-sha256\n    secret: {SECRET}\n\
         acl:\n  - id: out\n    key: transfer.\n    action: transfer\n\
         zone:\n  - domain: {ZONE}\n    acl: out\n"
    )
}

/// An agent's copy, transferred with this key.
fn follow(knot: &Knot, line: &str) -> Arc<Copy> {
    follow_every(knot, line, Duration::from_millis(200))
}

fn follow_every(knot: &Knot, line: &str, refresh: Duration) -> Arc<Copy> {
    let (key, address) = (Key::parse(line).unwrap(), format!("127.0.0.1:{}", knot.port()));
    let primary = Primary { address, key, refresh };
    Copy::follow(primary, Zone::origin(ZONE).unwrap())
}

/// A zone of many messages, a change of all of it, and one that comes by differences; with another secret or another key nothing comes.
#[test]
fn a_copy_follows_knot() {
    let folder = tempfile::tempdir().unwrap();
    let hosts: String = (0..5_000).map(|number| format!("host-{number} A 192.0.2.{}\n", number % 256)).collect();
    let (records, config) = (format!("{RECORDS}{hosts}"), config());
    let setup = Setup { folder: folder.path(), zone: ZONE, records: &records, config: &config };
    let knot = Knot::start(&Places::of_this_machine(), setup).unwrap();
    let copy = follow(&knot, &format!("hmac-sha256 transfer. {SECRET}"));
    until("the zone is transferred", PATIENCE, || copy.transfers() == 1);
    let before = copy.zone().unwrap();
    assert_eq!((before.serial(), before.len()), (Some(1), 5_003));

    for (name, secret, errors) in [
        ("transfer.", "AAAA", &["the primary refuses the key: error 16 (BADSIG)"][..]),
        // That it does not know a key Knot 3.2 says in a record of TSIG, and 3.4 without one.
        ("other.", SECRET, &["the primary refuses the key: error 17 (BADKEY)", "the primary says NOTAUTH: "]),
    ] {
        let copy = follow(&knot, &format!("hmac-sha256 {name} {secret}"));
        let is_refused = |said: String| errors.iter().any(|error| said.contains(error));
        until("the key is refused", PATIENCE, || copy.zone().is_err_and(is_refused));
    }

    let changed = format!("{}mail A 192.0.2.7\n", RECORDS.replace("admin 1 ", "admin 2 "));
    fs::write(knot.zone_file(), changed).unwrap();
    assert!(knot.tell(&["zone-reload", ZONE]), "{}", knot.said());
    until("the change is transferred", PATIENCE, || copy.transfers() == 2);
    let after = copy.zone().unwrap();
    assert_eq!((after.serial(), after.len()), (Some(2), 4));
    assert_eq!(copy.differences(), 0, "Knot does not know how a file has changed");

    for words in [
        &["zone-begin", "example."][..],
        &["zone-set", "example.", "more", "1", "A", "192.0.2.8"],
        &["zone-unset", "example.", "mail", "A"],
        &["zone-commit", "example."],
    ] {
        assert!(knot.tell(words), "{}", knot.said());
    }
    until("the differences are transferred", PATIENCE, || copy.transfers() == 3);
    let changed = copy.zone().unwrap();
    let has = |name: &str| changed.set(&Zone::origin(name).unwrap(), 1).is_some();
    assert_eq!((copy.differences(), changed.len()), (1, 4));
    assert!(has("more.example.") && has("www.example.") && !has("mail.example."));
    drop(knot);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(copy.zone().unwrap().serial(), changed.serial(), "the last copy stays");
}

/// A copy that is asked for once an hour changes as soon as Knot tells that the zone has.
#[test]
fn knot_tells_when_the_zone_changes() {
    let folder = tempfile::tempdir().unwrap();
    let address: SocketAddr = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let port = address.port();
    let remote = format!("remote:\n  - id: agent\n    address: 127.0.0.1@{port}\n    key: transfer.\nzone:\n");
    let config = config().replace("zone:\n", &remote).replace("acl: out\n", "acl: out\n    notify: agent\n");
    let setup = Setup { folder: folder.path(), zone: ZONE, records: RECORDS, config: &config };
    let knot = Knot::start(&Places::of_this_machine(), setup).unwrap();
    let copy = follow_every(&knot, &format!("hmac-sha256 transfer. {SECRET}"), Duration::from_secs(3_600));
    assert_eq!(copy.listen(address).unwrap(), address);
    until("the zone is transferred", PATIENCE, || copy.transfers() == 1);
    for number in 2..4_u64 {
        for words in [
            &["zone-begin", "example."][..],
            &["zone-set", "example.", &format!("more-{number}"), "1", "A", "192.0.2.8"],
            &["zone-commit", "example."],
        ] {
            assert!(knot.tell(words), "{}", knot.said());
        }
        until("the change is transferred", PATIENCE, || copy.transfers() == number);
    }
    assert_eq!((copy.differences(), copy.zone().unwrap().serial()), (2, Some(3)));
}
