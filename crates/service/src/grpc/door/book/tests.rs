use std::net::IpAddr;

use super::*;
use crate::grpc::door::connections::{ConnectionBounds, Connections, Listed};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

fn bounds() -> Bounds {
    Bounds {
        requests: 10,
        bytes: 1_000,
        client_requests: 8,
        client_bytes: 800,
        reserved_requests: 2,
        reserved_bytes: 100,
        stranger_requests: 4,
        stranger_bytes: 200,
        body: Duration::from_secs(10),
        body_rate: 10,
        response: Duration::from_secs(30),
    }
}

fn connections() -> Arc<Connections> {
    let hour = Duration::from_secs(3600);
    Connections::new(ConnectionBounds { all: 100, client: 100, strangers: 100, idle: hour, stranger_idle: hour })
}

fn connection(address: IpAddr) -> Listed {
    connections().enter(None, address).unwrap()
}

fn client(name: &str) -> Owner {
    Owner::Client(name.parse().unwrap())
}

fn is_ended(told: &mut oneshot::Receiver<()>) -> bool {
    told.try_recv() == Err(oneshot::error::TryRecvError::Closed)
}

/// Checks the sums by adding everything up again.
fn check(book: &Book) {
    let sum = |owner: &Owner| {
        let mine = book.entries.values().filter(|entry| entry.owner == *owner);
        mine.fold((0, 0), |(requests, bytes), entry| (requests + entry.requests, bytes + entry.bytes))
    };
    assert_eq!((book.strangers.requests, book.strangers.bytes), sum(&Owner::Stranger));
    let mut common = (0, 0);
    for (name, usage) in &book.clients {
        assert_eq!((usage.requests, usage.bytes), sum(&Owner::Client(name.clone())), "{name}");
        common.0 += usage.requests.saturating_sub(book.bounds.reserved_requests);
        common.1 += usage.bytes.saturating_sub(book.bounds.reserved_bytes);
    }
    assert_eq!((book.common.requests, book.common.bytes), common);
}

/// A batch of requests counts as all of them, for its client and for the node, until it leaves.
#[test]
fn a_batch_counts_as_all_its_requests() {
    let (mut book, now) = (Book::new(bounds()), Instant::now());
    let here = connection(HERE);
    let (batch, _told) = book.enter(client("ann"), &here.connection, now).unwrap();
    book.widen(batch, 8).unwrap();
    check(&book);
    assert_eq!(book.usage(&"ann".parse().unwrap()).requests, 8);
    book.arrived(batch);
    assert_eq!(book.enter(client("ann"), &here.connection, now).unwrap_err(), Refused::OwnRequests);
    // Bob may have 2 reserved ones and the 4 that Ann leaves of the common 10.
    let (other, _told_too) = book.enter(client("bob"), &here.connection, now).unwrap();
    assert_eq!(book.widen(other, 7).unwrap_err(), Refused::Requests);
    book.widen(other, 6).unwrap();
    check(&book);
    assert_eq!(book.widen(other, 9).unwrap_err(), Refused::OwnRequests);
    book.leave(batch, now);
    check(&book);
    book.widen(other, 8).unwrap();
    book.leave(other, now);
    check(&book);
    assert!(book.clients.is_empty());
    let (stranger, _told) = book.enter(Owner::Stranger, &here.connection, now).unwrap();
    assert_eq!(book.widen(stranger, 2).unwrap_err(), Refused::OwnRequests);
    check(&book);
}

#[test]
fn strangers_shed_strangers_and_nobody_else() {
    let (mut book, now) = (Book::new(bounds()), Instant::now());
    let (mut one, mut other) = (connection(HERE), connection(THERE));
    let (known, mut kept) = book.enter(client("known"), &one.connection, now).unwrap();
    let (_, mut first) = book.enter(Owner::Stranger, &one.connection, now).unwrap();
    let (_, mut far) = book.enter(Owner::Stranger, &other.connection, now).unwrap();
    let held: Vec<_> = (0..1_000).map(|_| book.enter(Owner::Stranger, &one.connection, now).unwrap()).collect();
    check(&book);
    assert_eq!(book.requests(), 5, "one address has three of four places, besides the client's");
    assert!(is_ended(&mut first) && is_ended(&mut one.ended), "the oldest is shed, and its connection with it");
    assert!(!is_ended(&mut far) && !is_ended(&mut other.ended) && !is_ended(&mut kept));
    assert_eq!(book.shed(), 998);
    drop(held);
    book.leave(known, now);
    check(&book);
}

#[test]
fn strangers_share_their_bytes() {
    let (mut book, now) = (Book::new(bounds()), Instant::now());
    let one = connection(HERE);
    let (first, mut told) = book.enter(Owner::Stranger, &one.connection, now).unwrap();
    let (second, _kept) = book.enter(Owner::Stranger, &one.connection, now).unwrap();
    book.receive(first, 150).unwrap();
    book.receive(second, 60).unwrap();
    assert!(is_ended(&mut told));
    assert_eq!(book.receive(first, 1), Err(Refused::Shed));
    assert_eq!(book.receive(second, 141), Err(Refused::OwnBytes), "more than there is for all");
    check(&book);
    book.leave(first, now);
    book.leave(second, now);
    assert_eq!((book.requests(), book.bytes()), (0, 0));
    check(&book);
}

#[test]
fn a_client_takes_its_quota_and_leaves_the_others_theirs() {
    let (mut book, now) = (Book::new(bounds()), Instant::now());
    let one = connection(HERE);
    let mut entered = Vec::new();
    let mut enter = |book: &mut Book, name: &str| {
        let place = book.enter(client(name), &one.connection, now).map(|(number, told)| {
            assert!(book.arrived(number), "so that nothing is shed for others");
            entered.push(told);
            number
        });
        check(book);
        place
    };
    let greedy: Vec<u64> = (0..8).map(|_| enter(&mut book, "greedy").unwrap()).collect();
    assert_eq!(enter(&mut book, "greedy"), Err(Refused::OwnRequests));
    let second: Vec<u64> = (0..6).map(|_| enter(&mut book, "second").unwrap()).collect();
    assert_eq!(enter(&mut book, "second"), Err(Refused::Requests), "ten are for all, two for each");
    let reserved: Vec<u64> = (0..2).map(|_| enter(&mut book, "late").unwrap()).collect();
    assert_eq!(enter(&mut book, "late"), Err(Refused::Requests));
    book.receive(greedy[0], 800).unwrap();
    assert_eq!(book.receive(greedy[1], 1), Err(Refused::OwnBytes));
    book.receive(second[0], 400).unwrap();
    assert_eq!(book.receive(second[1], 1), Err(Refused::Bytes));
    book.receive(reserved[0], 100).unwrap();
    check(&book);
    for number in greedy.into_iter().chain(second).chain(reserved) {
        book.leave(number, now);
        book.leave(number, now);
        check(&book);
    }
    assert_eq!((book.requests(), book.bytes()), (0, 0));
}

#[test]
fn what_has_not_arrived_makes_room() {
    let (mut book, now) = (Book::new(bounds()), Instant::now());
    let mut one = connection(HERE);
    let mut idle: Vec<_> = (0..8).map(|_| book.enter(client("idle"), &one.connection, now).unwrap()).collect();
    let slow: Vec<_> = (0..6).map(|_| book.enter(client("slow"), &one.connection, now).unwrap()).collect();
    // The client with the most loses its oldest requests, until it holds no more than the one that asks.
    let late: Vec<_> = (0..5).map(|_| book.enter(client("late"), &one.connection, now).unwrap()).collect();
    assert!(is_ended(&mut idle[0].1) && is_ended(&mut idle[1].1));
    assert!(!is_ended(&mut idle[7].1) && !is_ended(&mut one.ended), "the connection of a client stays");
    check(&book);
    assert_eq!(book.requests(), slow.len() + late.len() + idle.len() - 3);
}

#[test]
fn a_signature_moves_the_request_to_its_signer() {
    let (mut book, now) = (Book::new(bounds()), Instant::now());
    let one = connection(HERE);
    let (number, mut told) = book.enter(Owner::Stranger, &one.connection, now).unwrap();
    book.receive(number, 90).unwrap();
    let name = "signer".parse().unwrap();
    book.recognise(number, &name).unwrap();
    check(&book);
    for _ in 0..100 {
        book.enter(Owner::Stranger, &one.connection, now).unwrap();
    }
    assert!(!is_ended(&mut told));
    assert_eq!(book.usage(&name).bytes, 90);
    book.leave(number, now);
    assert_eq!(book.recognise(number, &name), Err(Refused::Shed));
    check(&book);
}

#[test]
fn bodies_and_answers_that_do_not_move_are_ended() {
    let (mut book, now) = (Book::new(bounds()), Instant::now());
    let at = |seconds| now + Duration::from_secs(seconds);
    let mut one = connection(HERE);
    let (number, _told) = book.enter(client("a"), &one.connection, now).unwrap();
    assert_eq!(book.body_due(number), Some(at(10)));
    book.receive(number, 55).unwrap();
    assert_eq!(book.body_due(number), Some(at(15)), "ten bytes are a second");
    assert!(book.arrived(number));
    assert_eq!(book.body_due(number), None);
    book.patrol(at(1_000));
    assert_eq!((book.requests(), book.bytes()), (1, 55), "an operation has its own deadline");

    book.answered(number, at(1_000));
    assert_eq!(book.bytes(), 0, "what was asked is not held any more");
    book.hold(number, 300).unwrap();
    book.patrol(at(2_000));
    assert_eq!(book.requests(), 1, "a stream that says nothing waits for nobody");
    book.offered(number, at(2_000));
    book.offered(number, at(2_001));
    book.patrol(at(2_029));
    book.taken(number, at(2_029));
    book.patrol(at(2_058));
    assert_eq!(book.requests(), 1);
    book.patrol(at(2_060));
    assert_eq!((book.requests(), book.bytes()), (0, 0));
    assert!(is_ended(&mut one.ended));

    let mut other = connection(HERE);
    book.enter(client("b"), &other.connection, at(0)).unwrap();
    book.patrol(at(13));
    assert!(is_ended(&mut other.ended), "a body that nobody reads is overdue, too");
    check(&book);
}

/// A stranger brings copies of what a client has signed, and takes no answer: the client's own requests end those.
#[test]
fn what_strangers_bring_keeps_no_client_out() {
    let (mut book, now) = (Book::new(bounds()), Instant::now());
    let (here, there) = (connection(HERE), connection(THERE));
    let ann: Name = "ann".parse().unwrap();
    let mut brought = Vec::new();
    for _ in 0..8 {
        let (number, told) = book.enter(Owner::Stranger, &there.connection, now).unwrap();
        book.arrived(number);
        book.recognise(number, &ann).unwrap();
        book.answered(number, now);
        brought.push((number, told));
    }
    check(&book);
    for (number, _) in &brought {
        book.offered(*number, now);
    }
    assert_eq!(
        book.enter(client("ann"), &here.connection, now).unwrap_err(),
        Refused::OwnRequests,
        "they are not late"
    );
    for (number, _) in &brought[1..] {
        book.taken(*number, now);
        book.offered(*number, now.checked_sub(UNTAKEN * 2).unwrap());
    }
    let (own, _told) = book.enter(client("ann"), &here.connection, now).unwrap();
    book.arrived(own);
    assert!(!is_ended(&mut brought[0].1) && is_ended(&mut brought[1].1), "the oldest that is late makes room");
    check(&book);
    // Her own answers that she does not take end nobody's.
    for _ in 0..6 {
        let (number, _told) = book.enter(client("ann"), &here.connection, now).unwrap();
        book.arrived(number);
        book.answered(number, now);
        book.offered(number, now.checked_sub(UNTAKEN * 2).unwrap());
    }
    assert_eq!(book.enter(client("ann"), &here.connection, now).unwrap_err(), Refused::OwnRequests);
    check(&book);
}

/// A stranger's stream on which nothing is to be said may last for ever: it makes room before requests that arrive.
#[test]
fn idle_streams_of_strangers_make_room_first() {
    let (mut book, now) = (Book::new(bounds()), Instant::now());
    let (here, there) = (connection(HERE), connection(THERE));
    let (_arriving, mut told) = book.enter(Owner::Stranger, &here.connection, now).unwrap();
    let mut watches = Vec::new();
    for _ in 0..3 {
        let (number, watch) = book.enter(Owner::Stranger, &there.connection, now).unwrap();
        book.arrived(number);
        book.answered(number, now.checked_sub(IDLE * 2).unwrap());
        watches.push(watch);
    }
    let (_newcomer, _told) = book.enter(Owner::Stranger, &here.connection, now).unwrap();
    assert!(!is_ended(&mut told) && is_ended(&mut watches[0]));
    check(&book);
}
