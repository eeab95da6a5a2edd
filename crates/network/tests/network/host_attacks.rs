//! What a host can do at the moments when little is agreed: while a node restarts, while a session is called for, while one is renewed.

use core::time::Duration;
use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use bytes::Bytes;
use theta_network::{
    HostStatus, Identity,
    carrier::{Budget, Carried, Carrier, CarrierLimits, Link, Local, Outbox, Relayed},
    mesh::{MeshPeer, PeerCounters},
};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use crate::{
    hostile::{Malice, Seeded, World, limits, seeds},
    support::{Lcg, id, new_identity, until},
};

/// Half a message is no message: the life before has acknowledged some of its pieces, and the new one has none of them.
#[test]
fn a_node_that_restarts_in_the_middle_of_a_message_hears_it_whole() {
    for seed in seeds(30) {
        let mut world = World::new(2, seed, Malice { loses: 20, delay: 40, ..Malice::default() });
        for _ in 0..10 {
            world.send(0, 1, 60_000);
        }
        let some = 1 + usize::try_from(seed % 7).unwrap();
        assert!(world.run(60, |world| world.end(1, 0).got.len() >= some), "seed {seed}");
        let later = world.now + 1_000 * (seed % 50);
        world.run(1, |world| world.now >= later);
        world.boot(1, 0);
        world.ends.get_mut(&(1, 0)).unwrap().got.clear();
        assert!(world.run(100, |world| world.end(0, 1).outbox.is_empty()), "seed {seed}: it is stuck");
        let got = &world.end(1, 0).got;
        assert!(got.windows(2).all(|pair| pair[1] == pair[0] + 1), "seed {seed}: {got:?}");
        assert_eq!(got.last(), Some(&9), "seed {seed}");
    }
}

/// How long its frames are is each node's own affair.
#[test]
fn nodes_whose_frames_have_different_lengths_hear_each_other() {
    let each = [1_200, 32 << 10, 1 << 20].map(|frame_bytes| CarrierLimits { frame_bytes, ..limits() });
    let mut world = World::among(&each, 13, Malice { distance: 5, ..Malice::default() });
    for _ in 0..3 {
        for (node, peer) in [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)] {
            world.send(node, peer, 300);
            world.send(node, peer, 900_000);
        }
    }
    assert!(world.run(60, World::all_has_come), "somebody is not heard");
    world.assert_order();
    assert!(world.ends.values().all(|end| end.counters.false_frames.get() == 0), "honest frames count as false");
}

/// Frames are on their way when a session is renewed. That they come late is nobody's invention.
#[test]
fn frames_of_the_session_before_do_not_count_as_false() {
    let limits = CarrierLimits {
        keepalive: Duration::from_millis(100),
        dead_after: Duration::from_secs(1),
        renew_after: Duration::from_secs(2),
        ..limits()
    };
    let mut world = World::with(2, 14, Malice { distance: 20, ..Malice::default() }, &limits);
    for _ in 0..2_000 {
        world.send(0, 1, 300);
        world.send(1, 0, 300);
        let later = world.now + 5_000;
        world.run(1, |world| world.now >= later);
    }
    assert!(world.run(20, World::all_has_come));
    world.assert_order();
    for end in world.ends.values() {
        assert!(end.counters.reconnects.get() >= 3, "{}", end.counters.reconnects.get());
        assert_eq!(end.counters.false_frames.get(), 0);
    }
}

/// What a node has heard of a peer, in all its lives.
#[derive(Default)]
struct Heard {
    /// The number that comes next at most.
    next: u32,
    /// How many of the present life's messages were looked at.
    seen: usize,
    last: Option<u32>,
    /// The first numbers of the peer's lives: what the one before had not said yet is lost with it.
    lives: Vec<u32>,
}

impl Heard {
    fn look(&mut self, got: &[u32], what: &str) {
        for number in &got[self.seen..] {
            let begins = self.lives.contains(number) && *number > self.next;
            assert!(*number <= self.next || begins, "{what}: {number} came where {} was due", self.next);
            let follows = self.last.is_none_or(|last| *number == last + 1) || begins;
            assert!(follows, "{what}: {number} came after {:?}", self.last);
            (self.next, self.last) = (self.next.max(number + 1), Some(*number));
        }
        self.seen = got.len();
    }
}

/// Nodes that restart at any time, under a host that does everything it can: nothing false, nothing twice in one life, nothing left out.
#[test]
fn whoever_restarts_and_whatever_the_host_does_nothing_is_left_out() {
    for seed in seeds(40) {
        let mut draw = Lcg(seed ^ 0xbeef);
        let malice = Malice {
            loses: draw.below(30),
            doubles: draw.below(30),
            bends: draw.below(50),
            replays: draw.below(60),
            swaps: draw.below(30),
            invents: draw.below(20),
            delay: draw.below(200),
            distance: draw.below(50),
        };
        let mut world = World::new(2, seed, malice);
        let mut heard = [Heard::default(), Heard::default()];
        for _ in 0..60 {
            for node in 0..2 {
                let length = [8, 300, 5_000, 30_000][draw.below(4)];
                world.send(node, 1 - node, length);
            }
            let until = world.now + 1_000 * u64::try_from(draw.below(400)).unwrap();
            world.run(1, |world| world.now >= until);
            for (node, heard) in heard.iter_mut().enumerate() {
                heard.look(&world.end(node, 1 - node).got, &format!("seed {seed}, node {node}"));
            }
            if draw.below(8) == 0 {
                let node = draw.below(2);
                world.boot(node, 1 - node);
                let end = world.ends.get_mut(&(node, 1 - node)).unwrap();
                end.got.clear();
                (heard[node].seen, heard[node].last) = (0, None);
                heard[1 - node].lives.push(end.sent);
            }
        }
        for node in 0..2 {
            world.send(node, 1 - node, 8);
        }
        let done = |world: &World| world.ends.values().all(|end| end.outbox.is_empty());
        assert!(world.run(200, done), "seed {seed}: something never comes");
        for (node, heard) in heard.iter_mut().enumerate() {
            heard.look(&world.end(node, 1 - node).got, &format!("seed {seed}, node {node}"));
            assert_eq!(heard.next, world.end(1 - node, node).sent, "seed {seed}, node {node}");
            assert_eq!(world.end(node, 1 - node).counters.protocol_errors.get(), 0, "seed {seed}: nobody is blamed");
        }
    }
}

/// What a node has acknowledged before it restarts reaches its peer when the peer has said already, to the new life, where it goes on.
#[test]
fn what_the_life_before_has_acknowledged_is_believed_at_any_time() {
    let mut world = World::new(2, 3, Malice::default());
    world.send(0, 1, 8);
    assert!(world.run(10, World::all_has_come));
    // The host keeps the acknowledgements of ten messages.
    world.keeps = |from, _, frame| from == 1 && frame[1] == 4;
    for _ in 0..10 {
        world.send(0, 1, 300);
    }
    assert!(world.run(1, |world| world.end(1, 0).got.len() == 11));
    let later = world.now + 100_000;
    world.run(1, |world| world.now >= later);
    assert!(!world.kept.is_empty() && world.end(0, 1).outbox.len() == 10);
    world.boot(1, 0);
    // It shows them when the end of the new handshake is on its way.
    world.keeps = |from, _, frame| from == 0 && frame[1] == 3;
    let acknowledgements = core::mem::take(&mut world.kept);
    assert!(world.run(20, |world| !world.kept.is_empty()), "no new session is called for");
    world.keeps = |_, _, _| false;
    for (from, to, frame) in acknowledgements {
        world.deliver(from, to, frame, true);
    }
    assert!(world.run(1, |world| world.end(0, 1).outbox.is_empty()), "they are believed");
    for (from, to, frame) in core::mem::take(&mut world.kept) {
        world.deliver(from, to, frame, false);
    }
    for _ in 0..10 {
        world.send(0, 1, 300);
    }
    assert!(world.run(10, World::all_has_come), "what is said after it does not come: {:?}", world.end(1, 0).got);
    world.assert_order();
}

/// False ends of handshakes, in the names of all peers, do not take the checks that calls and answers need.
#[test]
fn false_ends_leave_calls_their_checks() {
    let peers = [new_identity(), new_identity()];
    let limits = CarrierLimits { handshakes_per_second: 4, ..limits() };
    let own = new_identity();
    let budget = Budget::new(limits.handshakes_per_second);
    budget.among(2);
    let local =
        Arc::new(Local { identity: own.clone(), budget, limits, random: Box::new(Seeded(Mutex::new([7; 32]))) });
    let begin = Instant::now();
    let link = |number: usize| {
        let outbox = Arc::new(Outbox::new(1, 1));
        let counters = Arc::new(PeerCounters::new(id(number + 1)));
        Link::new(Arc::clone(&local), peers[number].fingerprint(), [1; 16], outbox, counters, begin).unwrap()
    };
    let mut links = [link(0), link(1)];
    let frame = |number: usize, kind: u8, filling: u64| {
        let mut frame = vec![1, kind];
        frame.extend_from_slice(&own.fingerprint().as_bytes()[..8]);
        frame.extend_from_slice(&peers[number].fingerprint().as_bytes()[..8]);
        frame.resize(18 + 16 + 32 + if kind == 3 { 40 } else { 0 }, 9);
        frame[20..28].copy_from_slice(&filling.to_be_bytes());
        Bytes::from(frame)
    };
    // All that may be computed at once has been when the call comes.
    let mut answered = None;
    for millis in 0..40_000 {
        let now = begin + Duration::from_millis(millis);
        for (number, link) in links.iter_mut().enumerate() {
            link.receive(frame(number, 3, millis), now);
            if (number, millis) == (1, 20_000) {
                link.receive(frame(number, 1, 0), now);
            }
            link.drive(now);
            while let Some(made) = link.next_frame() {
                if made[1] == 2 {
                    answered.get_or_insert(millis);
                }
            }
        }
    }
    let answered = answered.expect("the call is never answered");
    assert!(answered < 24_000, "the call of 20,000 ms is answered at {answered} ms");
}

#[test]
fn a_host_that_is_slow_but_sure_is_spoken_through() {
    let mut world = World::new(2, 8, Malice { distance: 2_500, ..Malice::default() });
    world.send(0, 1, 300);
    world.send(1, 0, 300);
    assert!(world.run(60, World::all_has_come), "five seconds there and back, and no session within a minute");
    world.assert_order();
    let settled = world.now;
    let calls = |world: &World| world.end(0, 1).counters.reconnects.get() + world.end(1, 0).counters.reconnects.get();
    let before = calls(&world);
    world.run(60, |world| world.now > settled + 50_000_000);
    assert_eq!(calls(&world), before, "sessions that stand are not called for again and again");
}

/// Whoever keeps a session from being renewed does not get to keep one key in use for ever.
#[test]
fn a_host_that_lets_no_session_be_renewed_ends_it() {
    let limits = CarrierLimits {
        keepalive: Duration::from_millis(100),
        dead_after: Duration::from_millis(500),
        renew_after: Duration::from_secs(1),
        ..limits()
    };
    let mut world = World::with(2, 9, Malice { delay: 2, ..Malice::default() }, &limits);
    world.send(0, 1, 8);
    assert!(world.run(10, World::all_has_come));
    world.keeps = |_, _, frame| frame[1] < 4;
    let until = world.now + 200_000_000;
    assert!(
        !world.run(200, |world| world.now >= until || !world.end(0, 1).link.is_connected(world.at()))
            || world.now < until,
        "it stands for ever"
    );
    world.send(0, 1, 8);
    world.run(5, |_| false);
    assert_eq!(world.end(1, 0).got.len(), 1, "nothing is said in it any more");
    world.keeps = |_, _, _| false;
    assert!(world.run(20, World::all_has_come));
    world.assert_order();
}

/// An honest host says whose frames it brings. What another member sends in somebody's name takes none of that one's room and checks.
#[tokio::test]
async fn frames_in_the_name_of_another_than_the_host_says_are_nobodys() {
    let (own, peer, other) = (new_identity(), new_identity(), new_identity());
    let member = |number: usize, identity: &Identity| MeshPeer {
        id: id(number),
        address: "nowhere:1".to_owned(),
        certificate: identity.fingerprint(),
    };
    let ((frames, mut sent), (bring, arrivals)) = (mpsc::channel(64), mpsc::channel(64));
    let (_told, status) = watch::channel(HostStatus::default());
    let peers = vec![member(2, &peer), member(3, &other)];
    let carrier = Carrier { frames, arrivals, status };
    let (relayed, _inbound) = Relayed::start((id(1), own.clone()), peers, carrier, CarrierLimits::default()).unwrap();
    let call = |by: u8| {
        let mut call = vec![1, 1];
        call.extend_from_slice(&own.fingerprint().as_bytes()[..8]);
        call.extend_from_slice(&peer.fingerprint().as_bytes()[..8]);
        call.resize(18 + 48, by);
        Bytes::from(call)
    };
    bring.send(Carried { node: id(3), frame: call(9) }).await.unwrap();
    until("the false call is seen", || relayed.strange_frames() == 1).await;
    bring.send(Carried { node: id(2), frame: call(5) }).await.unwrap();
    let answer = timeout(Duration::from_secs(20), async {
        loop {
            let Carried { node, frame } = sent.recv().await.unwrap();
            if frame[1] == 2 {
                return (node, frame[18]);
            }
        }
    });
    assert_eq!(answer.await.unwrap(), (id(2), 5), "the true one is answered, the false one was not");
}

/// A call of 66 bytes costs a signature. With an RSA key that is some tens as much as with others, and no more a second in all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_cost_a_node_with_an_expensive_key_no_more_than_others() {
    let key = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_3072).unwrap();
    let shown = rcgen::CertificateParams::new(vec!["node".to_owned()]).unwrap().self_signed(&key).unwrap();
    let own = Identity::from_pem(&shown.pem(), &key.serialize_pem()).unwrap();
    let peer = new_identity();
    let ((frames, mut sent), (bring, arrivals)) = (mpsc::channel(64), mpsc::channel(64));
    let (_told, status) = watch::channel(HostStatus::default());
    let target = MeshPeer { id: id(2), address: "nowhere:1".to_owned(), certificate: peer.fingerprint() };
    let carrier = Carrier { frames, arrivals, status };
    let (_relayed, _inbound) =
        Relayed::start((id(1), own.clone()), vec![target], carrier, CarrierLimits::default()).unwrap();
    let mut call = vec![1, 1];
    call.extend_from_slice(&own.fingerprint().as_bytes()[..8]);
    call.extend_from_slice(&peer.fingerprint().as_bytes()[..8]);
    call.resize(18 + 48, 9);
    let call = Bytes::from(call);
    let (begin, mut answers) = (Instant::now(), 0_u32);
    while begin.elapsed() < Duration::from_secs(2) || (answers < 60 && begin.elapsed() < Duration::from_secs(60)) {
        bring.send(Carried { node: id(2), frame: call.clone() }).await.unwrap();
        while let Ok(Carried { frame, .. }) = sent.try_recv() {
            answers += u32::from(frame[1] == 2);
        }
    }
    // Both bursts, and a ninth of 1,000 for each second.
    let most = 180.0 + 112.0 * begin.elapsed().as_secs_f64();
    assert!(
        answers >= 60 && f64::from(answers) <= most,
        "{answers} signatures for strangers, and not more than {most}"
    );
}
