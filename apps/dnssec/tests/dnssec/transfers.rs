//! Copies that come from a name server.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use theta_dnssec::{
    transfer::{Copy, Primary, tsig::Key},
    zone::Zone,
};

use crate::{
    primary::{LINE, Lie, Server, address, record, start},
    zones::owner,
};

pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it does not come about that {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn follow(server: &Server) -> Arc<Copy> {
    let key = Key::parse(LINE).unwrap();
    let refresh = Duration::from_millis(20);
    Copy::follow(Primary { address: server.address.to_string(), key, refresh }, owner("example"))
}

pub(crate) fn arrived(copy: &Copy) -> Arc<Zone> {
    until("the zone arrives", || copy.zone().ok())
}

/// What is said in the place of the zone.
fn refused(server: &Server) -> String {
    let copy = follow(server);
    let said = until("it is said why there is no zone", || copy.zone().err().filter(|said| !said.contains(" yet")));
    assert!(copy.zone().is_err() && copy.transfers() == 0);
    said
}

#[test]
fn a_zone_is_transferred_and_again_when_it_changes() {
    for lie in [Lie::Nothing, Lie::SignedAtTheEnd] {
        let server = Server::start(lie);
        let copy = follow(&server);
        let zone = arrived(&copy);
        assert_eq!((zone.serial(), zone.len(), copy.transfers()), (Some(7), 3, 1));
        let www = zone.set(&owner("www.example"), 1).unwrap();
        assert_eq!((www.ttl, www.data.len()), (300, 2), "names are the same in upper case");
        let wire = |name: &str| owner(name).wire();
        let start_data = zone.set(&owner("example"), 6).unwrap().data.first().unwrap();
        assert!(start_data.starts_with(&[wire("ns.example"), wire("admin.example")].concat()), "without pointers");
        // The same serial: nothing is asked for.
        thread::sleep(Duration::from_millis(200));
        assert_eq!(server.said.lock().unwrap().transfers, 1);
        let mut said = server.said.lock().unwrap();
        said.messages = vec![vec![start(8), address("new", [192, 0, 2, 8]), start(8)]];
        said.start = start(8);
        drop(said);
        until("the new zone arrives", || (copy.transfers() == 2).then_some(()));
        let zone = copy.zone().unwrap();
        assert!(zone.set(&owner("new.example"), 1).is_some() && zone.set(&owner("www.example"), 1).is_none());
    }
}

#[test]
fn what_was_changed_on_the_way_is_no_zone() {
    let wrong = "the signature of a message is wrong";
    for (lie, words) in [
        (Lie::OtherSecret, wrong),
        (Lie::Bent(0), wrong),
        (Lie::Bent(1), wrong),
        (Lie::Bent(2), wrong),
        (Lie::Missing, wrong),
        (Lie::Swapped, wrong),
        (Lie::Unsigned, "a message is not signed"),
        (Lie::EndUnsigned, "a message is not signed"),
        (Lie::Cut, "the connection ended before the zone did"),
        (Lie::Old, "one of the two clocks is wrong"),
        (Lie::Refused, "the primary says REFUSED"),
        (Lie::OtherId, "a message answers another question"),
        (Lie::Empty, "a message has no records"),
    ] {
        let said = refused(&Server::start(lie));
        assert!(said.contains(words), "{lie:?}: {said}");
        assert!(said.contains("example. cannot be transferred from 127.0.0.1:"), "{said}");
    }
}

#[test]
fn a_transfer_has_a_beginning_and_an_end() {
    let www = address("www", [192, 0, 2, 1]);
    let foreign = record(b"\x05other\0", 1, &[192, 0, 2, 1]);
    for (messages, words) in [
        (vec![vec![www.clone(), start(7)]], "the first record is no SOA record"),
        (vec![vec![start(7), www.clone(), start(8)]], "the zone changed while it was sent"),
        (vec![vec![start(7), start(7), www.clone()]], "there are records after the second SOA record"),
        (vec![vec![start(7), foreign, start(7)]], "other. is not in the zone example."),
        // It takes the first byte of the signature.
        (vec![vec![start(7), www[..www.len() - 1].to_vec()]], "a signature that cannot be read"),
        (vec![vec![start(7), www]], "the connection ended before the zone did"),
    ] {
        let server = Server::start(Lie::Nothing);
        server.said.lock().unwrap().messages = messages;
        let said = refused(&server);
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn the_last_copy_stays_in_force() {
    let server = Server::start(Lie::Nothing);
    let copy = follow(&server);
    arrived(&copy);
    let mut said = server.said.lock().unwrap();
    (said.start, said.lie) = (start(9), Lie::Bent(0));
    drop(said);
    thread::sleep(Duration::from_millis(200));
    assert_eq!((copy.transfers(), copy.zone().unwrap().serial()), (1, Some(7)));
    let mut said = server.said.lock().unwrap();
    (said.messages, said.lie) = (vec![vec![start(9), start(9)]], Lie::Nothing);
    drop(said);
    until("the primary is believed again", || (copy.transfers() == 2).then_some(()));
    assert_eq!(copy.zone().unwrap().len(), 1);
}

/// Whoever lets go of a copy ends what keeps it.
#[test]
fn nobody_follows_for_nobody() {
    let server = Server::start(Lie::Nothing);
    let copy = follow(&server);
    arrived(&copy);
    let weak = Arc::downgrade(&copy);
    drop(copy);
    until("the copy is gone", || weak.upgrade().is_none().then_some(()));
}

#[test]
fn keys_are_of_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("transfer.key");
    fs::write(&path, LINE).unwrap();
    let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    assert!(Key::read(&path).unwrap_err().to_string().contains("chmod 600"));
    mode(0o600);
    let key = Key::read(&path).unwrap();
    assert!(!format!("{key:?}").contains("secret, of"), "{key:?}");
    for text in [
        "",
        "hmac-sha256 transfer.",
        "hmac-md5 transfer. c2VjcmV0",
        "hmac-sha256 transfer. !",
        "hmac-sha256 a..b c2VjcmV0",
    ] {
        fs::write(&path, text).unwrap();
        let said = Key::read(&path).unwrap_err().to_string();
        assert!(said.contains("write hmac-sha256, the key's name and its secret"), "{said}");
    }
    fs::remove_file(&path).unwrap();
    assert!(Key::read(&path).unwrap_err().to_string().contains("cannot read"));
}
