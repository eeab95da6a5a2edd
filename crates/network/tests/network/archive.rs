//! Reading at the address for nodes: real sockets, real TLS.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
};

use bytes::Bytes;
use theta_network::{
    Fingerprint, Identity,
    archive::{self, Archive, ArchiveError},
    mesh::Mesh,
};

use crate::support::{Group, Running, new_identity, quick, send, until};

/// Ten records; of those who have left each may read so many.
#[derive(Debug, Default)]
struct Ten(Mutex<HashMap<Fingerprint, u64>>);

impl Archive for Ten {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        self.0.lock().unwrap().contains_key(certificate)
    }

    fn read(&self, certificate: &Fingerprint, is_peer: bool, after: u64) -> Vec<Bytes> {
        let most = if is_peer { 10 } else { self.0.lock().unwrap()[certificate] };
        (after + 1..=most).map(|number| Bytes::from(vec![u8::try_from(number).unwrap(); 70_000])).collect()
    }
}

fn numbers(records: &[Bytes]) -> Vec<u8> {
    assert!(records.iter().all(|record| record.len() == 70_000));
    records.iter().map(|record| record[0]).collect()
}

#[tokio::test]
async fn who_has_left_reads_so_far_and_says_nothing() {
    let mut group = Group::new(3);
    let ten = Arc::new(Ten::default());
    let archive = Arc::clone(&ten) as Arc<dyn Archive>;
    let mut one: Running = Mesh::start_with(group.config(1, quick()), Some(archive)).unwrap();
    let (address, pin) = (group.peers[0].address.clone(), group.peers[0].certificate);
    // A peer reads all of it.
    let read = archive::read(&group.identities[1], &address, Some(pin), 3).await.unwrap();
    assert_eq!(numbers(&read), [4, 5, 6, 7, 8, 9, 10]);
    assert!(archive::read(&group.identities[1], &address, Some(pin), 10).await.unwrap().is_empty());
    // A stranger is not let in, whatever it speaks.
    let old = new_identity();
    let refused = archive::read(&old, &address, Some(pin), 0).await;
    assert!(matches!(refused, Err(ArchiveError::Refused)), "{refused:?}");
    ten.0.lock().unwrap().insert(old.fingerprint(), 2);
    let read = archive::read(&old, &address, Some(pin), 0).await.unwrap();
    assert_eq!(numbers(&read), [1, 2]);
    // Another node in its place is found out; who expects nobody reads there all the same.
    let other = archive::read(&old, &address, Some(group.peers[1].certificate), 0).await;
    assert!(matches!(other, Err(ArchiveError::Unpinned(_))), "{other:?}");
    assert_eq!(numbers(&archive::read(&old, &address, None, 1).await.unwrap()), [2]);

    // It is no peer: what it would send as the second node goes nowhere.
    let failures = one.0.counters().handshake_failures.get();
    group.identities[1] = old;
    let liar = group.start(2, quick());
    send(&liar.0, 1, Bytes::from_static(b"I am the second")).await;
    until("it is refused", || one.0.counters().handshake_failures.get() > failures).await;
    assert!(one.1.try_recv().is_err());
    assert_eq!(liar.0.unreached().len(), 2);
}

/// A node without an archive has nothing to read.
#[tokio::test]
async fn nothing_is_read_where_there_is_nothing() {
    let mut group = Group::new(2);
    let one = group.start(1, quick());
    let (address, pin) = (group.peers[0].address.clone(), group.peers[0].certificate);
    assert!(archive::read(&group.identities[1], &address, Some(pin), 0).await.is_err());
    drop(one);
}

/// Says nothing, at length.
#[derive(Debug)]
struct Nothing;

impl Archive for Nothing {
    fn admits(&self, _certificate: &Fingerprint) -> bool {
        false
    }

    fn read(&self, _certificate: &Fingerprint, _is_peer: bool, after: u64) -> Vec<Bytes> {
        vec![Bytes::new(); usize::try_from(after).unwrap()]
    }
}

/// A peer that lies fills nobody's memory with what costs it four bytes each.
#[tokio::test]
async fn empty_records_are_counted() {
    let mut group = Group::new(2);
    let one: Running = Mesh::start_with(group.config(1, quick()), Some(Arc::new(Nothing))).unwrap();
    let (address, pin) = (group.peers[0].address.clone(), group.peers[0].certificate);
    let read = async |count| archive::read(&group.identities[1], &address, Some(pin), count).await;
    assert_eq!(read(1_000).await.unwrap().len(), 1_000);
    let flooded = read(100_000).await;
    assert!(matches!(flooded, Err(ArchiveError::TooMuch)), "{flooded:?}");
    drop(one);
}

/// Reads slowly: each question waits until it is let go.
#[derive(Debug)]
struct Slow {
    strangers: Vec<Fingerprint>,
    reading: AtomicUsize,
    gate: Mutex<()>,
}

impl Archive for Slow {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        self.strangers.contains(certificate)
    }

    fn read(&self, _certificate: &Fingerprint, _is_peer: bool, _after: u64) -> Vec<Bytes> {
        self.reading.fetch_add(1, SeqCst);
        drop(self.gate.lock().unwrap());
        vec![Bytes::from_static(b"read")]
    }
}

/// Those who have left keep half of the places at most, however many connections and certificates they have, and peers read meanwhile.
#[tokio::test]
async fn strangers_keep_no_peer_from_reading() {
    let mut group = Group::new(3);
    let strangers: Vec<_> = (0..3).map(|_| new_identity()).collect();
    let slow = Arc::new(Slow {
        strangers: strangers.iter().map(Identity::fingerprint).collect(),
        reading: AtomicUsize::new(0),
        gate: Mutex::new(()),
    });
    let one: Running = Mesh::start_with(group.config(1, quick()), Some(Arc::clone(&slow) as Arc<dyn Archive>)).unwrap();
    let (address, pin) = (group.peers[0].address.clone(), group.peers[0].certificate);
    let ask = |identity: &Identity| {
        let (identity, address) = (identity.clone(), address.clone());
        tokio::spawn(async move { archive::read(&identity, &address, Some(pin), 0).await })
    };
    let (entered, held) = (mpsc::channel(), mpsc::channel::<()>());
    let keeper = Arc::clone(&slow);
    let holding = std::thread::spawn(move || {
        let _locked = keeper.gate.lock().unwrap();
        entered.0.send(()).unwrap();
        // Ends when the test lets go.
        let _ = held.1.recv();
    });
    entered.1.recv().unwrap();
    // The second question of one who reads is refused, and so is the third stranger.
    let first = ask(&strangers[0]);
    until("the first reads", || slow.reading.load(SeqCst) == 1).await;
    assert!(ask(&strangers[0]).await.unwrap().is_err(), "one question at a time");
    let second = ask(&strangers[1]);
    until("the second reads", || slow.reading.load(SeqCst) == 2).await;
    assert!(ask(&strangers[2]).await.unwrap().is_err(), "strangers have half of the places");
    let peers = [ask(&group.identities[1]), ask(&group.identities[2])];
    until("both peers read", || slow.reading.load(SeqCst) == 4).await;
    drop(held.0);
    holding.join().unwrap();
    for read in [first, second].into_iter().chain(peers) {
        assert_eq!(read.await.unwrap().unwrap(), [Bytes::from_static(b"read")]);
    }
    // Their places are free again.
    assert!(ask(&strangers[0]).await.unwrap().is_ok() && ask(&strangers[2]).await.unwrap().is_ok());
    drop(one);
}
