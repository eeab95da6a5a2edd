//! Nodes and connections that go, and come again.

use theta_gossip::{Gossip, GossipConfig, GossipError};
use theta_network::{GroupTransport as _, Transport as _};

use crate::support::{Group, connected, id, next, number_of, numbered, send, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ring_loses_a_node_and_the_others_go_on() {
    let mut group = Group::new(7);
    let mut nodes = group.start_ring().await;
    connected(&nodes.iter().collect::<Vec<_>>()).await;
    let (gone, inbound) = nodes.remove(3);
    gone.shutdown();
    drop((gone, inbound));
    until("the neighbours notice", || [2, 3].iter().all(|place: &usize| nodes[*place].0.counts().neighbours == 1))
        .await;
    // Nodes 3 and 5 were joined by node 4, and are at the ends of a line now.
    send(&nodes[2].0, 5, numbered(7, 5_000)).await;
    let message = next(&mut nodes[3].1).await;
    assert_eq!((message.from, number_of(&message.bytes)), (id(3), 7));
    // It comes back at its address, and is heard by all again.
    nodes.insert(3, group.start(4, &[5]).await);
    connected(&nodes.iter().collect::<Vec<_>>()).await;
    assert!(nodes[3].0.broadcast(numbered(8, 100)).is_empty());
    for place in [0, 1, 2, 4, 5, 6] {
        let message = next(&mut nodes[place].1).await;
        assert_eq!((message.from, number_of(&message.bytes)), (id(4), 8));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_while_the_only_way_is_cut_comes_when_it_is_mended() {
    let mut group = Group::new(3);
    let one = group.start(1, &[2]).await;
    let middle = group.start(2, &[1]).await;
    let mut three = group.start(3, &[2]).await;
    connected(&[&one, &middle, &three]).await;
    middle.0.shutdown();
    drop(middle);
    until("node 1 is alone", || one.0.counts().neighbours == 0).await;
    for number in 0..50 {
        send(&one.0, 3, numbered(number, 100)).await;
    }
    let _middle = group.start(2, &[1]).await;
    for number in 0..50 {
        assert_eq!(number_of(&next(&mut three.1).await.bytes), number);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_come_and_go_while_the_others_gossip() {
    let mut group = Group::new(4);
    let all = group.peers.clone();
    let without = |gone: &[usize]| {
        all.iter().filter(|peer| gone.iter().all(|number| peer.id != id(*number))).cloned().collect::<Vec<_>>()
    };
    let mut nodes = Vec::new();
    for number in 1..=4 {
        let config = GossipConfig { peers: without(&[number, 4]), ..group.config(number, &[]) };
        if number == 4 {
            // Nobody knows it yet.
            nodes.push(Gossip::start(GossipConfig { peers: without(&[4]), ..config }).unwrap());
        } else {
            nodes.push(Gossip::start(config).unwrap());
        }
    }
    connected(&nodes[..3].iter().collect::<Vec<_>>()).await;
    until("the stranger was refused", || nodes[..3].iter().any(|(node, _)| node.refused().strangers > 0)).await;
    assert_eq!(nodes[3].0.counts().neighbours, 0);
    for (at, (node, _)) in nodes[..3].iter().enumerate() {
        node.set_peers(without(&[at + 1])).unwrap();
    }
    connected(&nodes.iter().collect::<Vec<_>>()).await;
    send(&nodes[3].0, 1, numbered(5, 100)).await;
    assert_eq!(number_of(&next(&mut nodes[0].1).await.bytes), 5);
    // It goes again: nobody has a connection with it then.
    for (at, (node, _)) in nodes[..3].iter().enumerate() {
        node.set_peers(without(&[at + 1, 4])).unwrap();
    }
    until("it is left by all", || nodes[3].0.counts().neighbours == 0).await;
    send(&nodes[0].0, 2, numbered(6, 100)).await;
    assert_eq!(number_of(&next(&mut nodes[1].1).await.bytes), 6);
}

#[tokio::test]
async fn what_cannot_be_is_refused_in_one_line() {
    let mut group = Group::new(2);
    let refused = |config: GossipConfig| match Gossip::start(config) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it starts"),
    };
    let config = group.config(1, &[7]);
    assert_eq!(refused(config), "node 7 cannot be a neighbour: the group has no such other node");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = theta_network::mesh::Listen::Address(listener.local_addr().unwrap());
    let text = refused(GossipConfig { listen: taken, ..group.config(2, &[]) });
    assert!(text.contains("in use"), "{text}");
    let mut config = group.config(2, &[]);
    config.limits.bundle_bytes = 7;
    assert!(matches!(Gossip::start(config), Err(GossipError::Limit("bundle_bytes"))));
}
