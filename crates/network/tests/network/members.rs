//! Peers that come, go and change while a mesh runs: real sockets, real TLS.

use std::{net::TcpListener, sync::Arc};

use theta_network::{
    Identity, PeerState, SendError, Transport,
    mesh::{Listen, Mesh, MeshConfig, MeshError, MeshPeer},
};

use crate::support::{Group, Running, id, new_identity, next, number_of, numbered, quick, send, status, until};

/// All but one of these.
fn others(peers: &[MeshPeer], local: usize) -> Vec<MeshPeer> {
    peers.iter().filter(|peer| peer.id != id(local)).cloned().collect()
}

/// A machine with keys and an address of its own, that knows these peers.
fn machine(number: usize, peers: &[MeshPeer], identity: &Identity) -> (Running, MeshPeer) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let peer = MeshPeer { id: id(number), address, certificate: identity.fingerprint() };
    let config = MeshConfig {
        local: id(number),
        identity: identity.clone(),
        listen: Listen::Bound(listener),
        peers: others(peers, number),
        limits: quick(),
    };
    (Mesh::start(config).unwrap(), peer)
}

async fn connected(mesh: &Mesh, peer: usize) {
    until("the peer is connected", || status(mesh, peer).state == PeerState::Connected).await;
}

async fn all_connected(mesh: &Mesh) {
    until("all are connected", || mesh.status().iter().all(|peer| peer.state == PeerState::Connected)).await;
}

/// A message each way arrives.
async fn exchange(one: &mut Running, other: &mut Running, number: u32) {
    let (from, to) = (one.0.local(), other.0.local());
    send(&one.0, to.get().into(), numbered(number, 40)).await;
    let got = next(&mut other.1).await;
    assert_eq!((got.from, number_of(&got.bytes)), (from, number));
    send(&other.0, from.get().into(), numbered(number, 40)).await;
    let got = next(&mut one.1).await;
    assert_eq!((got.from, number_of(&got.bytes)), (to, number));
}

fn undisturbed(mesh: &Mesh, peers: &[usize]) {
    for peer in mesh.counters().peers().iter().filter(|peer| peers.iter().any(|number| id(*number) == peer.peer)) {
        assert_eq!((peer.reconnects.get(), peer.frames_resent.get()), (0, 0), "node {}", peer.peer);
    }
}

#[tokio::test]
async fn a_peer_joins_and_leaves_a_running_mesh() {
    let mut group = Group::new(3);
    let mut nodes = group.start_all(&quick());
    for (mesh, _) in &nodes {
        all_connected(mesh).await;
    }
    let (mut fourth, card) = machine(4, &group.peers, &new_identity());
    // Nobody lets it in on its own word.
    until("it is refused", || nodes[0].0.counters().handshake_failures.get() > 0).await;
    assert_eq!(nodes[0].0.send(id(4), numbered(1, 4)), Err(SendError::UnknownPeer(id(4))));
    let four = [&group.peers[..], &[card]].concat();
    for (number, (mesh, _)) in (1..).zip(&nodes) {
        mesh.set_peers(others(&four, number)).unwrap();
        assert_eq!(mesh.peers().len(), 3);
    }
    for node in &mut nodes {
        exchange(node, &mut fourth, 7).await;
    }
    // What was not acknowledged would come again later.
    until("all is acknowledged", || fourth.0.status().iter().all(|peer| peer.queued == 0)).await;
    // It leaves at two of them: neither sends to it, nor takes anything from it.
    for (number, (mesh, _)) in (1..).zip(&nodes[..2]) {
        mesh.set_peers(others(&group.peers, number)).unwrap();
        assert_eq!(mesh.send(id(4), numbered(1, 4)), Err(SendError::UnknownPeer(id(4))));
    }
    until("it is out", || {
        [1, 2].iter().all(|number| status(&fourth.0, *number).state == PeerState::Connecting)
            && [1, 2].iter().all(|number| status(&fourth.0, *number).last_error.is_some())
    })
    .await;
    let _ = fourth.0.broadcast(numbered(9, 4));
    let (mesh, inbound) = &mut nodes[2];
    let got = next(inbound).await;
    assert_eq!((got.from, number_of(&got.bytes)), (id(4), 9), "the third still knows it");
    connected(mesh, 4).await;
    let (first, rest) = nodes.split_at_mut(1);
    exchange(&mut first[0], &mut rest[0], 11).await;
    nodes.iter().for_each(|(mesh, _)| undisturbed(mesh, &[1, 2, 3]));
    // It comes back, and messages begin anew.
    nodes[0].0.set_peers(others(&four, 1)).unwrap();
    assert_eq!(number_of(&next(&mut nodes[0].1).await.bytes), 9, "what it had for the first was waiting");
    exchange(&mut nodes[0], &mut fourth, 12).await;
}

#[tokio::test]
async fn another_machine_takes_a_place_and_the_one_before_is_out() {
    let mut group = Group::new(3);
    let mut nodes = group.start_all(&quick());
    for (mesh, _) in &nodes {
        all_connected(mesh).await;
    }
    // The same number, other keys and another address. The old machine lives, in a thief's hands.
    let old = nodes.remove(1);
    let (mut new, card) = machine(2, &group.peers, &new_identity());
    let changed = [group.peers[0].clone(), card, group.peers[2].clone()];
    for (number, (mesh, _)) in [1, 3].into_iter().zip(&nodes) {
        mesh.set_peers(others(&changed, number)).unwrap();
    }
    for node in &mut nodes {
        exchange(node, &mut new, 3).await;
    }
    until("the old machine is refused", || {
        old.0.status().iter().all(|peer| peer.state == PeerState::Connecting && peer.last_error.is_some())
    })
    .await;
    assert_eq!(old.0.broadcast(numbered(66, 4)), []);
    let (first, rest) = nodes.split_at_mut(1);
    exchange(&mut first[0], &mut rest[0], 5).await;
    exchange(&mut first[0], &mut new, 6).await;
    nodes.iter().for_each(|(mesh, _)| undisturbed(mesh, &[1, 3]));
}

#[tokio::test]
async fn a_peer_that_moves_gets_what_waits_for_it_in_order() {
    let mut group = Group::new(2);
    let (one, _unread) = group.start(1, quick());
    let (two, mut inbound) = group.start(2, quick());
    for number in 0..10 {
        send(&one, 2, numbered(number, 40)).await;
        assert_eq!(number_of(&next(&mut inbound).await.bytes), number);
    }
    until("all is acknowledged", || status(&one, 2).queued == 0).await;
    two.shutdown();
    two.stopped().await;
    drop((two, inbound));
    for number in 10..20 {
        send(&one, 2, numbered(number, 40)).await;
    }
    // The same keys, elsewhere.
    let ((moved, mut inbound), card) = machine(2, &group.peers, &group.identities[1]);
    one.set_peers(vec![card.clone()]).unwrap();
    for number in 10..20 {
        assert_eq!(number_of(&next(&mut inbound).await.bytes), number);
    }
    assert_eq!(status(&one, 2).address, card.address);
    // The same once more changes nothing.
    connected(&one, 2).await;
    let reconnects = one.counters().peers()[0].reconnects.get();
    one.set_peers(vec![card]).unwrap();
    send(&one, 2, numbered(20, 40)).await;
    assert_eq!(number_of(&next(&mut inbound).await.bytes), 20);
    assert_eq!(one.counters().peers()[0].reconnects.get(), reconnects);
    drop(moved);
}

/// While it is open which of two machines is a member's, both are heard as that member, and both hear what it is told.
#[tokio::test]
async fn two_machines_may_speak_for_one_peer() {
    let mut group = Group::new(2);
    let mut nodes = group.start_all(&quick());
    for (mesh, _) in &nodes {
        all_connected(mesh).await;
    }
    let (mut other, card) = machine(2, &group.peers, &new_identity());
    let both = vec![group.peers[1].clone(), card.clone()];
    let mesh = Arc::clone(&nodes[0].0);
    mesh.set_peers(both).unwrap();
    assert_eq!((mesh.peers(), mesh.status().len(), mesh.counters().peers().len()), (vec![id(2)], 1, 1));
    until("the other one lets it in", || other.0.status().iter().all(|peer| peer.state == PeerState::Connected)).await;
    send(&other.0, 1, numbered(1, 40)).await;
    send(&nodes[1].0, 1, numbered(2, 40)).await;
    let mut got = [next(&mut nodes[0].1).await, next(&mut nodes[0].1).await];
    got.sort_by_key(|inbound| number_of(&inbound.bytes));
    assert!(got.iter().all(|inbound| inbound.from == id(2)));
    assert_eq!((number_of(&got[0].bytes), number_of(&got[1].bytes)), (1, 2));
    send(&mesh, 2, numbered(3, 40)).await;
    assert_eq!(number_of(&next(&mut other.1).await.bytes), 3);
    assert_eq!(number_of(&next(&mut nodes[1].1).await.bytes), 3);
    // The one that was there has not lost its connection.
    undisturbed(&nodes[1].0, &[1]);
    // It is decided: the other one is in, and the first is out.
    mesh.set_peers(vec![card]).unwrap();
    until("it is out", || status(&nodes[1].0, 1).last_error.is_some()).await;
    send(&other.0, 1, numbered(4, 40)).await;
    assert_eq!(number_of(&next(&mut nodes[0].1).await.bytes), 4);
}

#[tokio::test]
async fn what_cannot_be_changes_nothing() {
    let mut group = Group::new(3);
    let nodes = group.start_all(&quick());
    all_connected(&nodes[0].0).await;
    let mesh = Arc::clone(&nodes[0].0);
    let twice = vec![group.peers[1].clone(), group.peers[1].clone()];
    assert!(matches!(mesh.set_peers(twice), Err(MeshError::DuplicateCertificate(node)) if node == id(2)));
    assert!(matches!(mesh.set_peers(group.peers.clone()), Err(MeshError::DuplicatePeer(node)) if node == id(1)));
    let mut own = others(&group.peers, 1);
    own[1].certificate = group.identities[0].fingerprint();
    assert!(matches!(mesh.set_peers(own), Err(MeshError::DuplicateCertificate(node)) if node == id(3)));
    assert_eq!(mesh.peers(), [id(2), id(3)]);
    all_connected(&mesh).await;
    undisturbed(&mesh, &[2, 3]);
    // A mesh that has stopped takes peers, and starts nothing.
    mesh.shutdown();
    mesh.stopped().await;
    mesh.set_peers(vec![group.peers[1].clone()]).unwrap();
    mesh.stopped().await;
    assert_eq!(mesh.send(id(2), numbered(1, 4)), Err(SendError::Closed));
}
