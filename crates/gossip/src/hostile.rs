//! A member that attacks: it has a key that the group has pinned, real connections to honest nodes, and says what it likes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "tests fail by panicking, in their helpers too"
)]

use core::time::Duration;
use std::{net::TcpListener, sync::Arc, time::Instant};

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use libp2p_core::{Multiaddr, Transport as _, multiaddr::Protocol};
use libp2p_gossipsub::{Event, IdentTopic};
use libp2p_swarm::{Swarm, SwarmEvent, dial_opts::DialOpts};
use theta_names::NodeId;
use theta_network::{
    GroupTransport as _, Identity, Inbound, Transport as _,
    carrier::{Carried, CarrierLimits, Vouched},
    mesh::{Listen, MeshPeer},
};
use tokio::{sync::mpsc, time::timeout};

use crate::{
    Gossip, GossipConfig, GossipLimits,
    bundle::{Outgoing, context, number},
    connection::{Socket, Strangers, Traffic},
    members::{Members, peer_id},
    mesh::{self, Mesh},
};

const GROUP: &str = "attacked";
/// Honest nodes 1 to 4; the attacker is node 5.
const HONEST: usize = 4;

type Running = (Arc<Gossip>, mpsc::Receiver<Inbound>);

fn id(number: usize) -> NodeId {
    NodeId::try_from(u16::try_from(number).unwrap()).unwrap()
}

fn new_identity() -> Identity {
    let made = Identity::generate("node").unwrap();
    Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap()
}

struct Attacker {
    identity: Identity,
    peers: Vec<MeshPeer>,
    swarm: Swarm<Mesh>,
    topic: IdentTopic,
    /// Messages that it has heard.
    heard: Vec<Bytes>,
}

impl Attacker {
    /// It takes messages of any length.
    fn new(identity: Identity, peers: Vec<MeshPeer>) -> Self {
        let members = Arc::new(Members::default());
        members.replace(peers.clone());
        let limits = GossipLimits { bundle_bytes: 1 << 20, ..GossipLimits::default() };
        let listener = tokio::net::TcpListener::from_std({
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        })
        .unwrap();
        let address = listener.local_addr().unwrap();
        let sources = (&Arc::<Traffic>::default(), &Arc::<Strangers>::default());
        let (socket, _) = Socket::new((listener, address), &identity, &members, sources, &limits).unwrap();
        let topic = mesh::topic(GROUP);
        let mesh = mesh::join(&topic, 5, &limits, 1 << 20).unwrap();
        let run = |future| drop(tokio::spawn(future));
        let settings = libp2p_swarm::Config::with_executor(run);
        let own = peer_id(&identity.fingerprint()).unwrap();
        let swarm = Swarm::new(socket.boxed(), mesh, own, settings);
        Self { identity, peers, swarm, topic, heard: Vec::new() }
    }

    /// Connects to these nodes, and waits until they take part in its mesh.
    async fn join(&mut self, nodes: &[usize]) {
        for number in nodes {
            let peer = peer_id(&self.peers[number - 1].certificate).unwrap();
            let place = Multiaddr::empty().with(Protocol::P2p(peer));
            self.swarm.dial(DialOpts::peer_id(peer).addresses(vec![place]).build()).unwrap();
        }
        self.until("it is taken into the mesh", |attacker| {
            attacker.swarm.behaviour().mesh_peers(&attacker.topic.hash()).count() >= nodes.len()
        })
        .await;
    }

    /// Goes on until something holds.
    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
            self.run(Duration::from_millis(20)).await;
        }
    }

    /// Lets the library work for a while, which passes nothing on.
    async fn run(&mut self, time: Duration) {
        let deadline = tokio::time::Instant::now() + time;
        while let Ok(event) = tokio::time::timeout_at(deadline, self.swarm.select_next_some()).await {
            self.note(event);
        }
    }

    fn note(&mut self, event: SwarmEvent<Event>) {
        if let SwarmEvent::Behaviour(Event::Message { message, .. }) = event {
            self.heard.push(message.data.into());
        }
    }

    /// Says this to its neighbours, as long as there are any. Says whether it could.
    fn say(&mut self, message: impl Into<Vec<u8>>) -> bool {
        let said = self.swarm.behaviour_mut().publish(self.topic.hash(), message.into()).is_ok();
        while let Some(event) = self.swarm.next().now_or_never().flatten() {
            self.note(event);
        }
        said
    }

    fn bundle(number: u64, frame: &Bytes) -> Outgoing {
        let mut bundle = Outgoing::new(number);
        for to in 1..=HONEST {
            bundle.put(&Carried { node: id(to), frame: frame.clone() });
        }
        bundle
    }
}

/// Four honest nodes that know the attacker as node 5, with the attacker's connections to nodes 1 and 2.
async fn attacked(limits: &GossipLimits) -> (Vec<Running>, Attacker) {
    let identities: Vec<_> = (0..=HONEST).map(|_| new_identity()).collect();
    let listeners: Vec<_> = (0..=HONEST).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let peers: Vec<_> = identities
        .iter()
        .zip(&listeners)
        .zip(1..)
        .map(|((identity, listener), number)| MeshPeer {
            id: id(number),
            address: listener.local_addr().unwrap().to_string(),
            certificate: identity.fingerprint(),
        })
        .collect();
    let mut nodes = Vec::new();
    for (number, listener) in (1..=HONEST).zip(listeners) {
        let others = peers.iter().filter(|peer| peer.id != id(number)).cloned().collect();
        let config = GossipConfig {
            group: GROUP.to_owned(),
            local: id(number),
            identity: identities[number - 1].clone(),
            listen: Listen::Bound(listener),
            peers: others,
            // They do not call the attacker: nobody listens there.
            neighbours: (1..=HONEST).filter(|other| *other != number).map(id).collect(),
            carrier: CarrierLimits::default(),
            limits: limits.clone(),
        };
        nodes.push(Gossip::start(config).unwrap());
    }
    let mut attacker = Attacker::new(identities[HONEST].clone(), peers);
    attacker.join(&[1, 2]).await;
    let begin = Instant::now();
    while !nodes.iter().all(|(node, _)| node.unreached().len() == 1) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the honest nodes do not reach each other");
        attacker.run(Duration::from_millis(50)).await;
    }
    (nodes, attacker)
}

/// All honest nodes hear each other, while the attacker goes on by `attack`.
async fn all_hear(nodes: &mut [Running], tag: u8, mut attack: impl FnMut()) {
    for at in 0..nodes.len() {
        let refused = nodes[at].0.broadcast(Bytes::from(vec![tag, u8::try_from(at).unwrap()]));
        assert!(refused.is_empty(), "{refused:?}");
        attack();
        for (other, (_, inbound)) in nodes.iter_mut().enumerate() {
            if other != at {
                let came = timeout(Duration::from_secs(30), inbound.recv()).await.unwrap().unwrap();
                assert_eq!((came.from, &came.bytes[..]), (id(at + 1), &[tag, u8::try_from(at).unwrap()][..]));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_forges_is_left_and_nobody_takes_what_it_forged() {
    let limits = GossipLimits::default();
    let (mut nodes, mut attacker) = attacked(&limits).await;
    all_hear(&mut nodes, 1, || {}).await;
    // In node 3's name, as far as somebody can who has not its key.
    let theirs = attacker.heard.iter().map(|message| Vouched::read(message.clone()).unwrap());
    let victim = attacker.peers[2].certificate;
    let (read, recorded) = theirs.zip(&attacker.heard).find(|(read, _)| read.author() == victim).unwrap();
    let (number_at, recorded) = (recorded.len() - read.body().len() + 1, recorded.clone());
    let mut said = 0;
    let begin = Instant::now();
    while nodes[..2].iter().any(|(node, _)| node.counts().banned == 0) {
        assert!(begin.elapsed() < Duration::from_secs(60), "it is not left: {:?}", nodes[0].0.counts());
        let mut forged = recorded.to_vec();
        forged[number_at..number_at + 8].copy_from_slice(&u64::to_be_bytes((1 << 60) + said));
        attacker.say(forged);
        said += 1;
        attacker.run(Duration::from_millis(10)).await;
    }
    all_hear(&mut nodes, 2, || {}).await;
    for (node, _) in &nodes[..2] {
        let counts = node.counts();
        // Those that it lost its neighbours by, and those that were under way.
        assert!((1..=u64::from(limits.false_messages) * 4).contains(&counts.forged), "{counts:?}");
    }
    for (node, _) in &nodes[2..] {
        let counts = node.counts();
        assert_eq!((counts.forged, counts.banned), (0, 0), "honest nodes pass nothing false on: {counts:?}");
    }
    // It is not let in again.
    let is_left = |_: &Attacker| nodes[..2].iter().all(|(node, _)| node.counts().neighbours <= 3);
    attacker.until("it is left", is_left).await;
    let peer = peer_id(&attacker.peers[0].certificate).unwrap();
    let place = Multiaddr::empty().with(Protocol::P2p(peer));
    let refused = nodes[0].0.refused().strangers;
    let _ = attacker.swarm.dial(DialOpts::peer_id(peer).addresses(vec![place]).build());
    attacker.until("it is refused", |_| nodes[0].0.refused().strangers > refused).await;
}

/// The other signature that is right with an ECDSA signature on P-256: s and the order less s. Anybody can make it.
fn other_signature(message: &[u8]) -> Option<Vec<u8>> {
    const ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let order: Vec<u8> =
        (0..32).map(|place| u8::from_str_radix(&ORDER[2 * place..2 * place + 2], 16).unwrap()).collect();
    let key = usize::from(u16::from_be_bytes(message[..2].try_into().unwrap()));
    let at = 2 + key + 2;
    let length = usize::from(u16::from_be_bytes(message[at..at + 2].try_into().unwrap()));
    let (before, der, after) = (&message[..at], &message[at + 2..at + 2 + length], &message[at + 2 + length..]);
    let r_end = 4 + usize::from(der[3]);
    let s = &der[r_end + 2..];
    let mut wide = [0; 32];
    let digits = &s[s.len().saturating_sub(32)..];
    wide[32 - digits.len()..].copy_from_slice(digits);
    let (mut turned, mut borrow) = ([0; 32], 0);
    for place in (0..32).rev() {
        let digit = i32::from(order[place]) - i32::from(wide[place]) - borrow;
        borrow = i32::from(digit < 0);
        turned[place] = u8::try_from(digit.rem_euclid(256)).unwrap();
    }
    let mut minimal: Vec<u8> = turned.into_iter().skip_while(|byte| *byte == 0).collect();
    if *minimal.first()? >= 0x80 {
        minimal.insert(0, 0);
    }
    let body = [&der[2..r_end], &[2, u8::try_from(minimal.len()).unwrap()], &minimal].concat();
    let der = [&[0x30, u8::try_from(body.len()).unwrap()], &body[..]].concat();
    Some([before, &u16::try_from(der.len()).unwrap().to_be_bytes(), &der, after].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_before_is_heard_once_however_it_is_dressed() {
    let (mut nodes, mut attacker) = attacked(&GossipLimits::default()).await;
    all_hear(&mut nodes, 1, || {}).await;
    attacker.run(Duration::from_millis(300)).await;
    let false_frames = |nodes: &[Running]| -> u64 {
        let peers = nodes.iter().flat_map(|(node, _)| node.peer_counters());
        peers.map(|peer| peer.false_frames.get()).sum()
    };
    let before = false_frames(&nodes);
    let heard = attacker.heard.clone();
    assert!(heard.len() > 10, "{}", heard.len());
    let mut replayed = 0_u64;
    for message in &heard {
        // gossipsub knows it by its content, and this is other content; the signature is right.
        let other = other_signature(message).unwrap();
        let read = Vouched::read(Bytes::from(other.clone())).unwrap();
        assert!(read.is_right(&context(GROUP)) && number(read.body()).is_some());
        replayed += u64::from(attacker.say(other));
        attacker.run(Duration::from_millis(2)).await;
    }
    assert!(replayed > 10);
    all_hear(&mut nodes, 2, || {}).await;
    let counts = nodes[0].0.counts();
    assert!(counts.replayed >= replayed / 2, "{replayed} were said again: {counts:?}");
    assert_eq!((counts.forged, counts.banned), (0, 0), "they are not false");
    let behind = nodes[3].0.counts();
    assert_eq!(behind.replayed, 0, "they are not passed on: {behind:?}");
    assert_eq!(false_frames(&nodes), before, "no session has seen a frame twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_says_too_much_is_heard_up_to_its_share_and_the_others_as_before() {
    let limits = GossipLimits { messages_per_second: 500, ..GossipLimits::default() };
    let (mut nodes, mut attacker) = attacked(&limits).await;
    let begin = Instant::now();
    let before = nodes[3].0.counts().received;
    let mut next = 1_u64 << 60;
    let mut said = 0_u64;
    for round in 0..5 {
        // Signed by itself, each with noise for everybody in it: a hundred a second are its share.
        for _ in 0..400 {
            let noise = Bytes::from(next.to_be_bytes().repeat(20));
            let message = Attacker::bundle(next, &noise).sign(&attacker.identity, &context(GROUP)).unwrap();
            next += 1;
            said += u64::from(attacker.say(message));
        }
        attacker.run(Duration::from_millis(20)).await;
        all_hear(&mut nodes, 10 + round, || {}).await;
    }
    assert!(said > 1_000, "{said}");
    let share = 100.0 * (begin.elapsed() + limits.burst).as_secs_f64() + 10.0;
    let counts = nodes[0].0.counts();
    assert!(counts.excessive > 0, "{counts:?}");
    let frames = |place: usize| {
        let peers = nodes[place].0.peer_counters();
        let attacker = peers.iter().find(|peer| peer.peer == id(HONEST + 1)).unwrap().clone();
        attacker.false_frames.get() + attacker.frames_overrun.get()
    };
    // What it says has no session: nobody takes a frame of it, and behind its neighbours no more comes than its share.
    for (place, (node, _)) in nodes.iter().enumerate() {
        assert!((frames(place) as f64) <= share, "{} of {share}", frames(place));
        assert_eq!(node.counts().banned, 0, "{place}");
    }
    let passed_on = nodes[3].0.counts().received - before;
    assert!(passed_on > 0, "the honest ones were heard");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversize_messages_and_noise_end_at_the_neighbour() {
    let (mut nodes, mut attacker) = attacked(&GossipLimits::default()).await;
    for number in 0..20_u64 {
        let long = Attacker::bundle((1 << 60) + number, &Bytes::from(vec![7; 200_000]));
        let long = long.sign(&attacker.identity, &context(GROUP)).unwrap();
        attacker.say(long);
        attacker.say(vec![u8::try_from(number).unwrap(); 100]);
        attacker.run(Duration::from_millis(20)).await;
    }
    all_hear(&mut nodes, 1, || {}).await;
    for (node, _) in &nodes[2..] {
        assert_eq!(node.counts().forged, 0, "noise is not passed on");
    }
    for (node, _) in &nodes {
        let peers = node.peer_counters();
        let attacker = peers.iter().find(|peer| peer.peer == id(HONEST + 1)).unwrap();
        assert_eq!(attacker.false_frames.get(), 0, "a message that is too long does not come");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_passes_on_more_than_all_may_say_is_left() {
    let limits = GossipLimits { messages_per_second: 100, ..GossipLimits::default() };
    let (mut nodes, mut attacker) = attacked(&limits).await;
    let (stranger, begin) = (new_identity(), Instant::now());
    let mut number = 1_u64;
    // Signed by somebody whom the group does not know (yet): no honest node passes that on, and it is not false either.
    while nodes[..2].iter().any(|(node, _)| node.counts().banned == 0) {
        assert!(begin.elapsed() < Duration::from_secs(60), "it is not left: {:?}", nodes[0].0.counts());
        for _ in 0..50 {
            let noise = Attacker::bundle(number, &Bytes::from_static(b"noise"));
            attacker.say(noise.sign(&stranger, &context(GROUP)).unwrap());
            number += 1;
        }
        attacker.run(Duration::from_millis(10)).await;
    }
    all_hear(&mut nodes, 1, || {}).await;
    for (node, _) in &nodes[2..] {
        let counts = node.counts();
        assert_eq!((counts.strange, counts.banned), (0, 0), "nothing of it is passed on: {counts:?}");
    }
    let counts = nodes[0].0.counts();
    assert!(counts.strange > 0 && counts.forged == 0, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_not_let_in_however_many_come() {
    let (mut nodes, attacker) = attacked(&GossipLimits { handshakes: 8, ..GossipLimits::default() }).await;
    let address = attacker.peers[0].address.clone();
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }
    let mut stranger = Attacker::new(new_identity(), attacker.peers.clone());
    let peer = peer_id(&attacker.peers[0].certificate).unwrap();
    let place = Multiaddr::empty().with(Protocol::P2p(peer));
    stranger.swarm.dial(DialOpts::peer_id(peer).addresses(vec![place]).build()).unwrap();
    stranger.until("it is refused", |_| nodes[0].0.refused().strangers > 0).await;
    stranger.run(Duration::from_secs(1)).await;
    assert!(stranger.heard.is_empty());
    assert_eq!(stranger.swarm.behaviour().mesh_peers(&stranger.topic.hash()).count(), 0);
    all_hear(&mut nodes, 1, || {}).await;
    let refused = nodes[0].0.refused();
    assert!(refused.strangers > 0 && refused.shed >= 40, "{refused:?}");
    drop(silent);
}
