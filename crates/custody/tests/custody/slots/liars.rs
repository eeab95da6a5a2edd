//! Members that promise what they must not, and what it costs whom.

use bytes::Bytes;
use theta_custody::{Equivocation, Promise, SlotRefusal, Subject, encode_promises, promises_of};
use theta_statements::Digest;

use super::group::{Group, keys, party, rng};
use super::{A, B, C};

fn subject() -> Subject {
    Subject { key: "chain".to_owned(), slot: 7, rule: "heights".to_owned() }
}

fn promise(node: u16, digest: Digest) -> Promise {
    Promise::sign("group", &keys(node), &subject(), digest)
}

/// Node 4 promises the slot to both: there is no second certificate, and every node that sees both names it with proof.
#[test]
fn a_liar_that_promises_twice_is_named_with_proof_and_gains_nothing() {
    for seed in 0..50 {
        let (mut group, mut rng) = (Group::new(2, 4), rng(seed));
        let tickets = [(1, A), (2, A), (3, B)].map(|(node, digest)| (node, digest, group.ask(node, digest)));
        for to in 1..=3 {
            for digest in [A, B, C] {
                group.wire.push((4, to, encode_promises(&subject(), vec![promise(4, digest)])));
            }
        }
        group.wire.retain(|(from, to, _)| *from == 4 || *to != 4);
        group.settle(&mut rng);
        group.pass(1_000, &mut rng);
        for (node, digest, ticket) in tickets {
            match group.verdict(node, ticket) {
                Some(Ok(())) => assert_eq!(digest, A, "seed {seed}"),
                Some(Err(SlotRefusal::Taken { .. })) => assert_eq!(digest, B, "seed {seed}"),
                // It saw two promises for each before it saw the lie.
                Some(Err(SlotRefusal::Void { .. })) => {}
                other => panic!("seed {seed}: {other:?}"),
            }
            let lies = &group.nodes[&node].lies;
            let [lie] = lies.as_slice() else { panic!("seed {seed}: {} lies at node {node}", lies.len()) };
            let read = Equivocation::decode(&lie.encode()).unwrap();
            assert!(read.first.node == party(4) && read.vartime_proves("group", keys(4).member()));
            assert!(!read.vartime_proves("group", keys(3).member()) && !read.vartime_proves("other", keys(4).member()));
            assert!(group.nodes[&node].culprits.is_empty(), "who passes a lie on has not lied");
        }
    }
    // With the liar's promises they are two, one and one: void, and the liar is named.
    let (mut group, mut rng) = (Group::new(2, 4), rng(1));
    let tickets = [(1, A), (2, B), (3, C)].map(|(node, digest)| (node, group.ask(node, digest)));
    group.wire.push((4, 1, encode_promises(&subject(), vec![promise(4, A), promise(4, B)])));
    group.settle(&mut rng);
    group.pass(1_000, &mut rng);
    for (node, ticket) in tickets {
        assert!(matches!(group.verdict(node, ticket), Some(Err(SlotRefusal::Void { .. }))), "node {node}");
    }
    assert_eq!(group.nodes[&1].lies.len(), 1);
    // A certified message wins over a void slot; that needs a liar, who is named.
    let (mut group, mut rng) = (Group::new(2, 4), self::rng(1));
    let asked = [(1, A), (2, A), (3, B)].map(|(node, digest)| (node, group.ask(node, digest)));
    group.wire.push((4, 3, encode_promises(&subject(), vec![promise(4, B)])));
    group.settle(&mut rng);
    assert!(matches!(group.verdict(3, asked[2].1), Some(Err(SlotRefusal::Void { .. }))));
    group.wire.push((4, 3, encode_promises(&subject(), vec![promise(4, A)])));
    group.settle(&mut rng);
    let follows = group.ask(3, A);
    assert_eq!(group.verdict(3, follows), Some(&Ok(())));
    assert_eq!(group.nodes[&3].lies.len(), 1);
}

/// False promises cost only their sender, which is ignored for a while.
#[test]
fn false_promises_are_their_senders_fault() {
    let (mut group, mut rng) = (Group::new(2, 4), rng(1));
    let ticket = group.ask(1, A);
    let mut forged = promise(2, A);
    forged.signature[40] ^= 1;
    let stolen = Promise { node: party(3), ..promise(4, A) };
    let another_slot = Promise::sign("group", &keys(2), &Subject { slot: 8, ..subject() }, A);
    let another_group = Promise::sign("other", &keys(2), &subject(), A);
    for (number, promise) in [forged, stolen, another_slot, another_group].into_iter().enumerate() {
        group.receive(4, 1, &encode_promises(&subject(), vec![promise]));
        let culprits = &group.nodes[&1].culprits;
        assert_eq!(culprits.len(), number + 1);
        assert!(culprits[number].0 == 4 && culprits[number].1.contains("false promise"), "{culprits:?}");
        // Now it sends nothing false, but is still ignored.
        group.receive(4, 1, &encode_promises(&subject(), vec![promise_of_four()]));
        assert_eq!(group.nodes[&1].culprits.len(), number + 1);
        group.now += 64_000;
    }
    group.receive(4, 1, &Bytes::from_static(&[9; 100]));
    assert!(group.nodes[&1].culprits[4].1.contains("malformed"));
    group.wire.clear();
    group.now += 64_000;
    for node in [2, 3] {
        group.ask(node, A);
    }
    group.settle(&mut rng);
    assert_eq!(group.verdict(1, ticket), Some(&Ok(())));
}

fn promise_of_four() -> Promise {
    Promise { signature: [0; 64], ..promise(4, A) }
}

/// However much a member sends, what is kept of it is bounded, and other members' promises are not dropped for it.
#[test]
fn a_member_that_promises_everything_fills_its_own_place_alone() {
    let (mut group, mut rng) = (Group::new(2, 4), rng(1));
    for node in [2, 3] {
        group.receive(node, 1, &encode_promises(&subject(), vec![promise(node, A)]));
    }
    for slot in 0..5_000 {
        let promises = vec![Promise { digest: B, ..promise_of_four() }];
        group.receive(4, 1, &encode_promises(&Subject { slot, ..subject() }, promises));
    }
    assert_eq!(group.nodes[&1].certifier.load(), (0, 0), "nothing was verified or remembered for nobody");
    let ticket = group.ask(1, A);
    assert_eq!(group.verdict(1, ticket), Some(&Ok(())), "what the others said is still there");
    group.settle(&mut rng);
    assert!(promises_of(b"noise").is_none());
}
