//! The mesh as an application sees it: real sockets, real TLS.

use core::time::Duration;

use crate::support::{Group, id, next, number_of, numbered, quick, send, status, until};
use bytes::Bytes;
use theta_network::{
    PeerState, SendError, Transport,
    mesh::{Listen, Mesh, MeshError, MeshLimits},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_nodes_exchange_ten_thousand_messages_each_in_order() {
    const COUNT: u32 = 10_000;
    let nodes = Group::new(4).start_all(&quick());
    let mut meshes = Vec::new();
    let mut readers = Vec::new();
    for (mesh, mut inbound) in nodes {
        meshes.push(mesh);
        readers.push(tokio::spawn(async move {
            let mut due = [0; 5];
            for _ in 0..3 * COUNT {
                let message = next(&mut inbound).await;
                let due = &mut due[usize::from(message.from.get())];
                assert_eq!(number_of(&message.bytes), *due, "from {}", message.from);
                *due += 1;
            }
            due
        }));
    }
    for number in 0..COUNT {
        for mesh in &meshes {
            assert_eq!(mesh.broadcast(numbered(number, 64)), []);
        }
        if number % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    for (position, reader) in readers.into_iter().enumerate() {
        let mut expected = [0, COUNT, COUNT, COUNT, COUNT];
        expected[position + 1] = 0;
        assert_eq!(reader.await.unwrap(), expected);
    }
    for mesh in &meshes {
        until("all is acknowledged", || mesh.status().iter().all(|peer| peer.queued == 0)).await;
        for peer in mesh.counters().peers() {
            assert_eq!((peer.frames_sent.get(), peer.frames_received.get()), (COUNT.into(), COUNT.into()));
            assert_eq!((peer.frames_resent.get(), peer.frames_dropped.get(), peer.reconnects.get()), (0, 0, 0));
        }
    }
}

#[tokio::test]
async fn large_and_empty_messages_pass_and_larger_ones_are_refused() {
    let mut nodes = Group::new(2).start_all(&MeshLimits { inbound_large_bytes: 4 << 20, ..quick() });
    let (to, mut inbound) = nodes.pop().unwrap();
    let (from, _unread) = nodes.pop().unwrap();
    for number in 1..4 {
        send(&from, 2, numbered(number, 10 << 20)).await;
        send(&from, 2, Bytes::new()).await;
    }
    for number in 1..4 {
        // Each message is larger than the room for large messages, and takes all of it until it is dropped.
        assert_eq!(number_of(&next(&mut inbound).await.bytes), number);
        assert_eq!(next(&mut inbound).await.bytes.len(), 0);
    }
    let limit = MeshLimits::default().message_bytes;
    assert_eq!(from.send(id(2), vec![0; limit + 1].into()), Err(SendError::TooLarge(limit + 1)));
    send(&from, 2, vec![0; limit].into()).await;
    assert_eq!(next(&mut inbound).await.bytes.len(), limit);
    assert_eq!(to.counters().peers()[0].protocol_errors.get(), 0);
}

#[tokio::test]
async fn a_dead_peer_fills_only_its_own_queue() {
    let mut group = Group::new(3);
    let limits = MeshLimits { queue_messages: 100, ..quick() };
    let (sender, _unread) = group.start(1, limits.clone());
    let (_alive, mut inbound) = group.start(2, limits);
    for number in 0..100 {
        sender.send(id(3), numbered(number, 8)).unwrap();
    }
    for number in 0..1000 {
        assert_eq!(sender.send(id(3), numbered(number, 8)), Err(SendError::QueueFull(id(3))));
        send(&sender, 2, numbered(number, 8)).await;
        assert_eq!(number_of(&next(&mut inbound).await.bytes), number);
    }
    let dead = status(&sender, 3);
    assert_eq!((dead.state, dead.queued), (PeerState::Connecting, 100));
    assert_eq!(status(&sender, 2).state, PeerState::Connected);
    assert_eq!(sender.counters().peers()[1].frames_dropped.get(), 1000);
    assert_eq!(sender.send(id(1), Bytes::new()), Err(SendError::UnknownPeer(id(1))));
}

#[tokio::test]
async fn an_application_that_does_not_read_bounds_everyones_memory() {
    for length in [8, 100_000] {
        let mut group = Group::new(2);
        let limits = MeshLimits {
            queue_messages: 64,
            inbound_messages: 16,
            inbound_large_bytes: 1 << 20,
            keepalive: Duration::from_millis(50),
            dead_after: Duration::from_secs(30),
            ..quick()
        };
        let (sender, _unread) = group.start(1, limits.clone());
        let (receiver, mut inbound) = group.start(2, limits);
        let mut accepted = 0;
        for _ in 0..600 {
            while sender.send(id(2), numbered(accepted, length)).is_ok() {
                accepted += 1;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // A message that was not handed over is still in the sender's queue.
        assert!((64..=64 + 16).contains(&accepted), "{accepted} messages of {length} bytes were taken");
        for number in 0..accepted {
            assert_eq!(number_of(&next(&mut inbound).await.bytes), number);
        }
        assert_eq!(sender.counters().peers()[0].reconnects.get(), 0, "a busy peer is not a dead one");
        assert_eq!(receiver.counters().peers()[0].frames_received.get(), accepted.into());
    }
}

#[tokio::test]
async fn a_restarted_node_takes_up_where_it_is() {
    let mut group = Group::new(2);
    let (one, mut inbound_one) = group.start(1, quick());
    let (two, mut inbound_two) = group.start(2, quick());
    for number in 0..500 {
        send(&one, 2, numbered(number, 8)).await;
        send(&two, 1, numbered(number, 8)).await;
        assert_eq!(number_of(&next(&mut inbound_two).await.bytes), number);
        assert_eq!(number_of(&next(&mut inbound_one).await.bytes), number);
    }
    until("all is acknowledged", || status(&one, 2).queued == 0).await;
    two.shutdown();
    two.stopped().await;
    assert_eq!(two.send(id(1), Bytes::new()), Err(SendError::Closed));
    assert!(inbound_two.recv().await.is_none(), "the stream of messages ends with the mesh");
    for number in 500..600 {
        send(&one, 2, numbered(number, 8)).await;
    }
    let (two, mut inbound_two) = group.start(2, quick());
    for number in 500..600 {
        assert_eq!(number_of(&next(&mut inbound_two).await.bytes), number, "sent while the node was away");
    }
    send(&two, 1, numbered(7, 8)).await;
    assert_eq!(number_of(&next(&mut inbound_one).await.bytes), 7, "a new incarnation counts from 1 again");
    assert!(one.counters().peers()[0].reconnects.get() >= 1);
}

#[tokio::test]
async fn a_mesh_refuses_to_start_on_bad_terms() {
    let mut group = Group::new(2);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let mut config = group.config(1, quick());
    config.listen = Listen::Address(address);
    let error = Mesh::start(config).unwrap_err();
    assert!(matches!(error, MeshError::AddressInUse(at) if at == address));
    assert!(error.to_string().contains(&format!("{address} is in use; stop the process")), "{error}");

    let mut config = group.config(1, quick());
    config.listen = Listen::Address("192.0.2.1:7001".parse().unwrap());
    assert!(matches!(Mesh::start(config), Err(MeshError::Listen { address, .. }) if address == "192.0.2.1:7001"));

    let mut config = group.config(2, quick());
    config.local = id(1);
    assert!(matches!(Mesh::start(config), Err(MeshError::DuplicatePeer(peer)) if peer == id(1)));

    let mut config = group.config(1, quick());
    config.peers[0].certificate = config.identity.fingerprint();
    assert!(matches!(Mesh::start(config), Err(MeshError::DuplicateCertificate(peer)) if peer == id(2)));

    let config = group.config(1, MeshLimits { queue_messages: 0, ..quick() });
    assert!(matches!(Mesh::start(config), Err(MeshError::Limit("queue_messages"))));
}

#[test]
fn a_mesh_needs_a_runtime() {
    let config = Group::new(1).config(1, quick());
    assert!(matches!(Mesh::start(config), Err(MeshError::NoRuntime)));
}

/// Nodes that come up one after the other reach each other when the last one is up: whoever dialled it in vain does not wait for its turn,
/// which among many that start together would come seconds later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_comes_is_dialled_at_once() {
    let mut group = Group::new(2);
    let never = Duration::from_secs(86_400);
    let limits = MeshLimits { backoff_min: never, backoff_max: never, ..MeshLimits::default() };
    let absent = group.config(2, limits.clone());
    // Nobody listens there any more until node 2 starts.
    drop(absent);
    let (first, _inbox) = group.start(1, limits.clone());
    until("a dial in vain", || status(&first, 2).last_error.is_some()).await;
    let (second, _other) = group.start(2, limits);
    until("both ways", || {
        [(&first, 2), (&second, 1)].iter().all(|(mesh, peer)| status(mesh, *peer).state == PeerState::Connected)
    })
    .await;
}
