//! What a transport promises: each message once, in order, from whom it is, whether there is a connection or not.

use std::collections::BTreeMap;

use theta_names::Channel;
use theta_network::{GroupTransport as _, PeerState, SendError, Transport as _};

use crate::support::{Group, Running, connected, id, next, number_of, numbered, send, until};

/// Takes as many messages as were sent, and checks that each sender's came once and in order.
async fn all_came(running: &mut Running, each: u32, senders: usize) {
    let mut came: BTreeMap<_, u32> = BTreeMap::new();
    for _ in 0..usize::try_from(each).unwrap() * senders {
        let message = next(&mut running.1).await;
        assert_eq!(message.channel, Channel::Private, "what came sealed was private");
        let expected = came.entry(message.from).or_default();
        // The sender's number stands in the message as well: nobody's message comes in another's name.
        assert_eq!(number_of(&message.bytes), u32::from(message.from.get()) * 100_000 + *expected);
        *expected += 1;
    }
    assert_eq!(came.len(), senders);
    assert!(came.values().all(|count| *count == each), "{came:?}");
    assert!(running.1.try_recv().is_err(), "nothing comes twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_ring_of_seven_everybody_hears_everybody_once_and_in_order() {
    let mut group = Group::new(7);
    let mut nodes = group.start_ring().await;
    connected(&nodes.iter().collect::<Vec<_>>()).await;
    let counts: Vec<_> = nodes.iter().map(|(node, _)| node.counts()).collect();
    assert!(counts.iter().all(|counts| counts.neighbours == 2), "nobody has more than two neighbours: {counts:?}");

    let each = 60;
    for number in 0..each {
        for (at, (node, _)) in nodes.iter().enumerate() {
            let tagged = u32::try_from(at + 1).unwrap() * 100_000 + number;
            let message = numbered(tagged, if number % 20 == 7 { 40_000 } else { 200 });
            if number % 2 == 0 {
                assert!(node.broadcast(message).is_empty());
            } else {
                for to in (1..=7).filter(|to| *to != at + 1) {
                    send(node, to, message.clone()).await;
                }
            }
        }
        tokio::time::sleep(core::time::Duration::from_millis(5)).await;
    }
    for running in &mut nodes {
        all_came(running, each, 6).await;
    }
    for (node, _) in &nodes {
        let (counts, peers) = (node.counts(), node.peer_counters());
        assert_eq!((counts.forged, counts.strange, counts.banned), (0, 0, 0), "{counts:?}");
        // The first frame of a session may overtake the end of its handshake.
        assert!(peers.iter().all(|peer| peer.false_frames.get() <= 4 && peer.protocol_errors.get() == 0));
        assert!(
            node.status().iter().all(|peer| peer.state == PeerState::Connected && peer.address == "through gossip")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_small_group_all_are_neighbours_and_a_broadcast_is_one_message() {
    let mut group = Group::new(4);
    let mut nodes = Vec::new();
    for number in 1..=4 {
        nodes.push(group.start(number, &[]).await);
    }
    connected(&nodes.iter().collect::<Vec<_>>()).await;
    until("everybody is everybody's neighbour", || nodes.iter().all(|(node, _)| node.counts().in_mesh == 3)).await;
    let before = nodes[0].0.counts().sent;
    let rounds = 20;
    for number in 0..rounds {
        assert!(nodes[0].0.broadcast(numbered(100_000 + number, 300)).is_empty());
        for running in &mut nodes[1..] {
            assert_eq!(number_of(&next(&mut running.1).await.bytes), 100_000 + number);
        }
    }
    // A broadcast leaves in one message, as a rule. Some are cut in two, and signs of life and acknowledgements leave as well.
    let sent = nodes[0].0.counts().sent - before;
    assert!(sent < u64::from(rounds) * 2, "{sent} messages for {rounds} broadcasts to three peers each");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_message_waits_for_the_mesh() {
    let mut group = Group::new(2);
    let mut first = group.start(1, &[]).await;
    assert!(first.0.broadcast(numbered(1, 100)).is_empty());
    tokio::time::sleep(core::time::Duration::from_secs(1)).await;
    assert_eq!(first.0.counts().sent, 0, "nobody is there to hear it");
    assert!(first.0.status()[0].last_error.as_deref().is_some_and(|why| why.contains("no neighbour")));
    let mut second = group.start(2, &[]).await;
    let message = next(&mut second.1).await;
    assert_eq!((message.from, number_of(&message.bytes)), (id(1), 1));
    send(&second.0, 1, numbered(2, 100)).await;
    assert_eq!(number_of(&next(&mut first.1).await.bytes), 2);
    assert_eq!(first.0.send(id(9), numbered(3, 10)), Err(SendError::UnknownPeer(id(9))));
    first.0.shutdown();
    first.0.stopped().await;
    assert_eq!(first.0.send(id(2), numbered(3, 10)), Err(SendError::Closed));
}
