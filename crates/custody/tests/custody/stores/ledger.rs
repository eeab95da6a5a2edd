//! The ledger in the nodes that keep it.

use theta_ledger::LedgerState;
use theta_names::{Delivery, Epoch, Version};
use theta_schemes::Suite;
use theta_schemes::keys::AnyPublicKey;
use theta_statements::KeyChange;

use super::overrule;
use crate::net::{Net, name};

fn ledger(net: &Net, node: u16) -> &LedgerState {
    net.custodian(node).ledger().unwrap()
}

/// The version and epoch of a key that serve, as the ledger of a node has it.
fn serving(net: &Net, node: u16, key: &str) -> Option<(Version, Epoch)> {
    let line = ledger(net, node).keys().get(&name(key))?;
    let version = line.primary()?;
    Some((version, line.versions[&version].serving()?.epoch))
}

fn all_have(net: &mut Net, nodes: &[u16], key: &str, wanted: (Version, Epoch)) -> bool {
    net.until(80, |net| nodes.iter().all(|node| serving(net, *node, key) == Some(wanted)))
}

#[test]
fn keys_and_their_new_shares_come_into_it() {
    let mut net = Net::new(2, 4, 31);
    net.create("a", Suite::FrostEd25519, 2, &[1, 2, 3, 4]);
    net.create("b", Suite::FrostEd25519, 2, &[1, 2, 3]);
    let first = (Version::FIRST, Epoch::FIRST);
    assert!(all_have(&mut net, &[1, 2, 3, 4], "a", first));
    net.run(1..=4, KeyChange::Refresh { key: name("a"), version: None });
    assert!(all_have(&mut net, &[1, 2, 3, 4], "a", (Version::FIRST, Epoch::FIRST.next().unwrap())));
    net.run(1..=4, KeyChange::Rotate { key: name("a") });
    assert!(all_have(&mut net, &[1, 2, 3, 4], "a", (Version::new(2).unwrap(), Epoch::FIRST)));
    // What a quorum holds and one more node does not know: that one takes what was certified.
    let heads: Vec<_> = (1..=4).map(|node| *ledger(&net, node).head()).collect();
    assert!(heads.windows(2).all(|pair| pair[0] == pair[1]));
    // The public part is there in binary, of the sharing before and of the present one.
    let history = &ledger(&net, 1).keys()[&name("a")].versions[&Version::FIRST];
    let (present, before) = (net.entry(1, "a@1").public.clone(), &history.epochs[0].public);
    assert_eq!(history.epochs.len(), 2);
    assert_eq!(history.epochs[1].public, present.to_bytes());
    assert_eq!(AnyPublicKey::from_bytes(before).unwrap().key_id(), present.key_id());
}

#[test]
fn a_key_that_few_hold_is_known_to_all() {
    let mut net = Net::new(2, 4, 32);
    net.create("few", Suite::FrostEd25519, 2, &[1, 2]);
    assert!(all_have(&mut net, &[1, 2, 3, 4], "few", (Version::FIRST, Epoch::FIRST)));
    assert!(net.custodian(3).keys().get("few").is_none(), "it holds nothing of it");
    // Begun and ended, and nothing else.
    assert_eq!(ledger(&net, 3).height(), 2);
}

#[test]
fn killed_nodes_go_on_where_they_were() {
    let mut net = Net::new(2, 4, 33);
    net.create("a", Suite::FrostEd25519, 2, &[1, 2, 3, 4]);
    assert!(all_have(&mut net, &[1, 2, 3, 4], "a", (Version::FIRST, Epoch::FIRST)));
    net.kill(4);
    net.run(1..=3, KeyChange::Refresh { key: name("a"), version: None });
    let renewed = (Version::FIRST, Epoch::FIRST.next().unwrap());
    assert!(all_have(&mut net, &[1, 2, 3], "a", renewed));
    for node in 1..=3 {
        net.kill(node);
    }
    for node in 1..=4 {
        net.start(node);
    }
    net.connect();
    assert!(all_have(&mut net, &[1, 2, 3, 4], "a", renewed));
}

#[test]
fn a_node_with_an_empty_disk_reads_it_and_votes_later() {
    let mut net = Net::new(2, 5, 34);
    net.create("a", Suite::FrostEd25519, 2, &[1, 2, 3, 4, 5]);
    let all = [1, 2, 3, 4, 5];
    assert!(all_have(&mut net, &all, "a", (Version::FIRST, Epoch::FIRST)));
    net.kill(5);
    net.lose_everything(5);
    net.connect();
    // It reads what was decided, and its store notes that it lacks what its node has said.
    let lacks = |net: &Net| net.custodian(5).store().lacks_ledger_votes().unwrap();
    assert!(net.until(60, |net| ledger(net, 5).height() == ledger(net, 1).height() && lacks(net)));
    // As long as its peers remember more of it, it does not vote; its operator says that the store is meant.
    overrule(&mut net, 5);
    net.connect();
    assert!(lacks(&net));
    // Three heights later it cannot have spoken, and votes again.
    for (at, key) in ["b", "c", "d", "e"].into_iter().enumerate() {
        net.create(key, Suite::FrostEd25519, 2, &[1, 2, 3, 4, 5]);
        assert!(all_have(&mut net, &all, key, (Version::FIRST, Epoch::FIRST)), "{at}");
    }
    assert!(!lacks(&net));
}

#[test]
fn without_an_identity_of_each_node_there_is_none() {
    let mut net = Net::new(2, 3, 35);
    for node in 1..=3 {
        net.kill(node);
    }
    net.roster.members.retain(|member| member.node().get() != 3);
    for node in 1..=3 {
        net.start(node);
    }
    assert!(net.custodian(1).ledger().is_none());
}

/// A certificate is for points. Who passes it on writes another suite on the same curve beside them, in whatever carries no signature.
#[test]
fn what_a_liar_writes_beside_a_certificate_is_not_decided() {
    for seed in 36..40 {
        let mut net = Net::new(2, 4, seed);
        let rewrite = |bytes: bytes::Bytes| {
            // The suite's name with k and n behind it stands in public parts alone.
            let (from, to) = (b"frost-ed25519\0\x02\0\x04", b"cks05-ed25519\0\x02\0\x04");
            let mut bytes = bytes.to_vec();
            if let Some(at) = bytes.windows(from.len()).position(|window| window == from) {
                bytes[at..at + to.len()].copy_from_slice(to);
            }
            bytes::Bytes::from(bytes)
        };
        net.liars.insert(2, Box::new(move |_, bytes| if bytes[1] == 9 { vec![rewrite(bytes)] } else { vec![bytes] }));
        let request = net.request(KeyChange::Create {
            key: name("zone"),
            suite: Suite::FrostEd25519.into(),
            delivery: Delivery::All,
            k: 2,
            holders: vec![1, 2, 3, 4],
        });
        let id = net.ask(1..=4, &request);
        assert!(net.until(80, |net| [1, 3, 4].iter().all(|node| net.state(*node, &id).is_over())));
        let public = net.entry(1, "zone").public.to_bytes();
        for node in [1, 3, 4] {
            let line = &ledger(&net, node).keys()[&name("zone")];
            assert_eq!(line.versions[&Version::FIRST].epochs[0].public, public, "seed {seed}, node {node}");
        }
    }
}
