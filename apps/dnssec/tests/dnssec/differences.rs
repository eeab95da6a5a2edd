//! What has changed since a copy was transferred, and copies that expire.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use theta_dnssec::{
    owner::Owner,
    transfer::Copy,
    zone::{Set, Zone},
};

use crate::{
    primary::{Lie, Server, address, record, record_for, start, start_for},
    transfers::{arrived, follow, until},
    zones::owner,
};

/// The messages of a server, which has the zone with the serial 7 at first.
type Messages = Vec<Vec<Vec<u8>>>;

/// Changes the zone of a server, after which it has this serial.
fn change(server: &Server, serial: u32, whole: Messages, differences: Option<Messages>) {
    let mut said = server.said.lock().unwrap();
    (said.messages, said.differences, said.start) = (whole, differences, start(serial));
}

fn second(copy: &Copy) -> Arc<Zone> {
    until("the change is transferred", || (copy.transfers() == 2).then_some(()));
    copy.zone().unwrap()
}

fn all(zone: &Zone) -> Vec<(Owner, u16, Set)> {
    let set = |owner: &Owner, kind| (owner.clone(), kind, zone.set(owner, kind).unwrap().clone());
    zone.names().flat_map(|(owner, kinds)| kinds.map(|kind| set(owner, kind)).collect::<Vec<_>>()).collect()
}

/// Two changes at once, in two messages: the copy is what the whole zone would be.
#[test]
fn differences_make_the_zone_that_the_primary_has() {
    let whole = vec![vec![
        start(9),
        address("www", [192, 0, 2, 1]),
        address("www", [192, 0, 2, 3]),
        address("new", [192, 0, 2, 8]),
        start(9),
    ]];
    let differences = vec![
        vec![start(9), start(7), address("www", [192, 0, 2, 2]), start(8), address("new", [192, 0, 2, 8])],
        // What the signer adds is in no copy, and is no difference.
        vec![
            start(8),
            address("MAIL", [192, 0, 2, 7]),
            record(b"\xc0\x0c", 51, &[1, 0, 0, 0, 0]),
            start(9),
            address("www", [192, 0, 2, 3]),
            start(9),
        ],
    ];
    let server = Server::start(Lie::Nothing);
    let copy = follow(&server);
    arrived(&copy);
    change(&server, 9, whole.clone(), Some(differences));
    let zone = second(&copy);
    assert_eq!((zone.serial(), zone.len(), zone.records(), copy.differences()), (Some(9), 3, 4, 1));
    let said = server.said.lock().unwrap();
    assert_eq!((said.transfers, &said.serials[..]), (1, &[7][..]));
    drop(said);

    let other = Server::start(Lie::Nothing);
    change(&other, 9, whole, None);
    assert_eq!(all(&zone), all(&arrived(&follow(&other))));
}

/// A primary may answer as if the whole zone had been asked for, and must if it has forgotten what has changed.
#[test]
fn the_answer_may_be_the_whole_zone() {
    for whole in [
        vec![vec![start(8), address("www", [192, 0, 2, 9]), start(8)]],
        vec![vec![start(8)], vec![address("www", [192, 0, 2, 9])], vec![start(8)]],
        vec![vec![start(8), start(8)]],
    ] {
        let server = Server::start(Lie::Nothing);
        let copy = follow(&server);
        arrived(&copy);
        let addresses = usize::from(whole.concat().len() > 2);
        change(&server, 8, whole, None);
        let zone = second(&copy);
        assert_eq!((zone.serial(), zone.records(), copy.differences()), (Some(8), 1 + addresses, 0));
        let said = server.said.lock().unwrap();
        assert_eq!((said.transfers, said.serials.len()), (1, 1), "the second time differences are asked for");
    }
}

/// Serials are compared as RFC 1982 says: 1 comes after the greatest one.
#[test]
fn serials_wrap_around() {
    let server = Server::start(Lie::Nothing);
    let greatest = u32::MAX;
    change(&server, greatest, vec![vec![start(greatest), start(greatest)]], None);
    let copy = follow(&server);
    assert_eq!(arrived(&copy).serial(), Some(greatest));
    let differences = vec![vec![start(1), start(greatest), start(1), address("new", [192, 0, 2, 8]), start(1)]];
    change(&server, 1, vec![], Some(differences));
    assert_eq!((second(&copy).serial(), copy.differences()), (Some(1), 1));
}

/// Whether the whole zone comes at once, and nothing of these differences is in it.
fn falls_back(lie: Lie, differences: &[Vec<Vec<u8>>]) {
    let server = Server::start(Lie::Nothing);
    let copy = follow(&server);
    arrived(&copy);
    server.said.lock().unwrap().lie = lie;
    change(&server, 9, vec![vec![start(9), address("whole", [192, 0, 2, 5]), start(9)]], Some(differences.to_vec()));
    let zone = second(&copy);
    let found = (zone.serial(), zone.records(), zone.set(&owner("whole.example"), 1).is_some(), copy.differences());
    assert_eq!(found, (Some(9), 2, true, 0), "{lie:?} {differences:?}");
    let said = server.said.lock().unwrap();
    assert_eq!((said.transfers, &said.serials[..]), (2, &[7][..]), "{lie:?} {differences:?}");
}

#[test]
fn differences_that_do_not_fit_the_copy_are_worth_nothing() {
    let (www, new) = (address("www", [192, 0, 2, 1]), address("new", [192, 0, 2, 8]));
    let one = |taken: &[&[u8]], added: &[&[u8]]| -> Messages {
        let (taken, added) = (taken.iter().map(|one| one.to_vec()), added.iter().map(|one| one.to_vec()));
        let begin = [start(9), start(7)].into_iter().chain(taken);
        vec![begin.chain([start(9)]).chain(added).chain([start(9)]).collect()]
    };
    let foreign = record(b"\x05other\0", 1, &[192, 0, 2, 1]);
    let other_ttl = record_for(b"\x03www\xc0\x0c", 1, 60, &[192, 0, 2, 1]);
    let half = 7 + (1 << 31);
    for differences in [
        // What is taken away is not there: no such name, type, data, or time to live; or it is taken twice.
        one(&[&new], &[]),
        one(&[&record(b"\x03www\xc0\x0c", 16, b"\x03any")], &[]),
        one(&[&address("www", [192, 0, 2, 66])], &[]),
        one(&[&other_ttl], &[]),
        one(&[&www, &www], &[]),
        // What is added is there, or is added twice, or to a set with another time to live.
        one(&[], &[&www]),
        one(&[], &[&new, &new]),
        one(&[], &[&record_for(b"\x03www\xc0\x0c", 1, 60, &[192, 0, 2, 66])]),
        // Not of the zone.
        one(&[&foreign], &[]),
        one(&[], &[&foreign]),
        // Serials that do not connect, do not count on, or end elsewhere.
        vec![vec![start(9), start(7), start(8), start(9)]],
        vec![vec![start(9), start(7), start(8), new.clone(), start(7), start(9), start(9)]],
        vec![vec![start(9), start(7), start(7), new.clone(), start(9)]],
        vec![vec![start(9), start(7), start(6), start(6), start(9), start(9)]],
        vec![vec![start(9), start(7), start(half), new.clone(), start(half), start(9), start(9)]],
        vec![vec![start(9), start(7), start_for(9, 1), new.clone(), start(9)]],
        vec![vec![start(9), start_for(7, 1), start(9), new.clone(), start(9)]],
        // No end, no beginning, and something after the end.
        vec![vec![start(9), start(7), www, start(9), new.clone()]],
        vec![vec![start(5)]],
        vec![vec![new.clone(), start(9)]],
        vec![vec![start(9), start(7), start(9), start(9), new]],
    ] {
        falls_back(Lie::Nothing, &differences);
    }
}

#[test]
fn differences_that_are_not_believed_or_not_there_are_worth_nothing() {
    let good = || vec![vec![start(9), start(7), start(9), address("new", [192, 0, 2, 8]), start(9)]];
    falls_back(Lie::NoDifferences, &good());
    falls_back(Lie::BentDifferences, &good());
}

/// A primary that sends more than the whole zone would be is not listened to for ever.
#[test]
fn differences_are_bounded() {
    let host = |number: u16| {
        let [high, low] = number.to_be_bytes();
        address("many", [192, 0, high, low])
    };
    let messages = |many: u16| {
        let hosts: Vec<Vec<u8>> = (0..many).map(host).collect();
        let (one, two) = hosts.split_at(hosts.len() / 2);
        vec![[&[start(9), start(7), start(9)][..], one].concat(), [two, &[start(9)]].concat()]
    };
    // The copy has four records; two SOA records of the differences count, too, and that at the end.
    falls_back(Lie::Nothing, &messages(2 * 4 + 1_000 - 2));
    let server = Server::start(Lie::Nothing);
    let copy = follow(&server);
    arrived(&copy);
    change(&server, 9, vec![], Some(messages(2 * 4 + 1_000 - 3)));
    assert_eq!((second(&copy).records(), copy.differences()), (4 + 1_005, 1));
}

/// The primary answers with what the copy has, or was set back.
#[test]
fn serials_that_are_not_newer_bring_no_differences() {
    let server = Server::start(Lie::Nothing);
    let copy = follow(&server);
    arrived(&copy);
    change(&server, 8, vec![], Some(vec![vec![start(7)]]));
    until("it is asked for differences", || (server.said.lock().unwrap().serials.len() > 1).then_some(()));
    assert_eq!((copy.transfers(), copy.zone().unwrap().serial()), (1, Some(7)));
    change(&server, 5, vec![vec![start(5), start(5)]], None);
    assert_eq!(second(&copy).serial(), Some(5));
    let said = server.said.lock().unwrap();
    assert_eq!(said.transfers, 2, "the whole zone was asked for");
}

/// Whoever keeps the primary away keeps the copy for as long as its SOA record says, and not longer.
#[test]
fn a_copy_expires_without_its_primary() {
    let server = Server::start(Lie::Nothing);
    let whole = vec![vec![start_for(7, 10), address("www", [192, 0, 2, 1]), start_for(7, 10)]];
    change(&server, 7, whole, None);
    let copy = follow(&server);
    arrived(&copy);
    thread::sleep(Duration::from_secs(11));
    assert_eq!((copy.zone().unwrap().serial(), copy.changes()), (Some(7), 1), "the primary answers");

    server.said.lock().unwrap().lie = Lie::Refused;
    let away = Instant::now();
    let said = until("the copy expires", || copy.zone().err());
    assert!(away.elapsed() > Duration::from_secs(3), "{:?}", away.elapsed());
    let words = format!("the copy of example. has expired: {} has not been reached for 10 seconds", server.address);
    assert_eq!((said, copy.changes(), copy.transfers()), (words, 2, 1));

    server.said.lock().unwrap().lie = Lie::Nothing;
    assert_eq!(second(&copy).serial(), Some(7));
    assert_eq!(copy.changes(), 3);
}
