//! Slot certificates: certifiers of whole groups over a network that the test controls.

mod group;
mod liars;
mod races;

use std::collections::BTreeSet;
use std::sync::Arc;

use rand_chacha::rand_core::Rng;
use theta_custody::{Certifier, Equivocation, Roster, SlotClaim, SlotRefusal, SlotStanding, Subject};
use theta_names::SlotOrder;
use theta_policy::MemorySlots;
use theta_statements::Digest;

use group::{DEADLINE, Group, keys, party, rng};

const A: Digest = Digest([0xa; 32]);
const B: Digest = Digest([0xb; 32]);
const C: Digest = Digest([0xc; 32]);

/// The attack: any two of four sign; A goes to nodes 1 and 2, B to nodes 3 and 4.
#[test]
fn two_and_two_make_the_slot_void_and_every_request_says_so() {
    for seed in 0..10 {
        let (mut group, mut rng) = (Group::new(2, 4), rng(seed));
        let tickets = [(1, A), (2, A), (3, B), (4, B)].map(|(node, digest)| (node, group.ask(node, digest)));
        group.settle(&mut rng);
        for (node, ticket) in tickets {
            let Some(Err(refusal @ SlotRefusal::Void { split, n: 4, need: 3, .. })) = group.verdict(node, ticket)
            else {
                panic!("{:?}", group.verdict(node, ticket));
            };
            assert_eq!((split.as_str(), refusal.code()), ("2 : 2", "slot-void"));
            assert!(refusal.to_string().contains("go on with another slot"));
        }
        assert!(group.nodes.values().all(|node| node.lies.is_empty() && node.culprits.is_empty()));
        // Nobody gets a certificate any more, whatever is asked.
        let late = group.ask(1, C);
        group.settle(&mut rng);
        assert!(matches!(group.verdict(1, late), Some(Err(SlotRefusal::Void { .. }))));
    }
}

/// Both messages go to all nodes, in any order: at most one is certified, and every request ends: certified, refused or
/// void.
#[test]
fn raced_to_all_nodes_one_message_at_most_is_certified() {
    let (mut void, mut won) = (0, 0);
    for seed in 0..200 {
        for (k, n) in [(2, 4), (2, 3), (2, 5), (3, 5), (3, 7), (4, 7)] {
            let (mut group, mut rng) = (Group::new(k, n), rng(seed));
            let mut asked = Vec::new();
            let mut asks: Vec<(u16, Digest)> = (1..=n).flat_map(|node| [(node, A), (node, B)]).collect();
            while !asks.is_empty() {
                let place = usize::try_from(rng.next_u64() % asks.len() as u64).unwrap();
                let (node, digest) = asks.swap_remove(place);
                asked.push((node, digest, group.ask(node, digest)));
                if rng.next_u64() % 3 == 0 {
                    group.settle(&mut rng);
                }
            }
            group.settle(&mut rng);
            let certified: BTreeSet<Digest> = asked
                .iter()
                .filter(|(node, _, ticket)| matches!(group.verdict(*node, *ticket), Some(Ok(()))))
                .map(|(_, digest, _)| *digest)
                .collect();
            assert!(certified.len() <= 1, "{k} of {n}, seed {seed}");
            for (node, digest, ticket) in asked {
                match group.verdict(node, ticket) {
                    Some(Ok(())) => won += 1,
                    Some(Err(SlotRefusal::Taken { .. })) => assert!(!certified.contains(&digest)),
                    Some(Err(SlotRefusal::Void { .. })) => void += u32::from(certified.is_empty()),
                    other => panic!("{k} of {n}, seed {seed}: {other:?}"),
                }
            }
        }
    }
    assert!(void > 100 && won > 100, "{void} void, {won} won");
}

/// Three of four nodes promise A. The fourth, which promised B, makes its share of A when it sees the certificate.
#[test]
fn a_certified_message_wins_and_is_completed_by_who_promised_another() {
    let (mut group, mut rng) = (Group::new(2, 4), rng(1));
    let for_b = group.ask(4, B);
    group.settle(&mut rng);
    let for_a = [1, 2, 3].map(|node| group.ask(node, A));
    group.settle(&mut rng);
    assert!([1, 2, 3].into_iter().zip(for_a).all(|(node, ticket)| group.verdict(node, ticket) == Some(&Ok(()))));
    assert!(matches!(group.verdict(4, for_b), Some(Err(SlotRefusal::Taken { slot: 7, .. }))));
    let follows = group.ask(4, A);
    assert_eq!(group.verdict(4, follows), Some(&Ok(())), "no round trip: it has the certificate");
    // A node that has lost its memory of the slot asks once.
    let memory = Arc::clone(&group.nodes[&4].memory);
    group.start(4, memory);
    let follows = group.ask(4, A);
    assert_eq!(group.verdict(4, follows), None);
    group.settle(&mut rng);
    assert_eq!(group.verdict(4, follows), Some(&Ok(())));
    assert!(group.nodes.values().all(|node| node.lies.is_empty()));
}

#[test]
fn what_is_certified_costs_one_round_trip_once() {
    let (mut group, mut rng) = (Group::new(2, 4), rng(1));
    let tickets: Vec<_> = (1..=4).map(|node| (node, group.ask(node, A))).collect();
    group.settle(&mut rng);
    assert!(tickets.iter().all(|(node, ticket)| group.verdict(*node, *ticket) == Some(&Ok(()))));
    assert_eq!(group.messages, 12, "each promise to each other node, and nothing else");
    for node in 1..=4 {
        let again = group.ask(node, A);
        assert_eq!(group.verdict(node, again), Some(&Ok(())));
    }
    assert!(group.wire.is_empty(), "asked again, nothing travels");
}

/// Node 4 is away and the others are split two and one: node 4 decides whether A can be certified, and the request says
/// so.
#[test]
fn what_cannot_be_decided_ends_in_time_and_names_who_is_missing() {
    let (mut group, mut rng) = (Group::new(2, 4), rng(1));
    group.away.insert(4);
    let tickets = [(1, A), (2, A), (3, B)].map(|(node, digest)| (node, group.ask(node, digest)));
    group.pass(DEADLINE - 50, &mut rng);
    assert!(tickets.iter().all(|(node, ticket)| group.verdict(*node, *ticket).is_none()));
    group.pass(100, &mut rng);
    let Some(Err(SlotRefusal::Undecided(text))) = group.verdict(1, tickets[0].1) else { panic!("not undecided") };
    for part in ["2 of 4 nodes (nodes 1, 2)", "takes 3", "another message has that of node 3", "no promise by node 4"] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    // Node 4 comes back and is asked for A: A is certified.
    group.away.clear();
    group.ask(4, A);
    group.settle(&mut rng);
    let again = group.ask(3, A);
    group.pass(1_000, &mut rng);
    assert_eq!(group.verdict(3, again), Some(&Ok(())));
}

/// A node without the rule makes no promise; the three others do.
#[test]
fn a_node_that_lacks_the_rule_counts_as_one_that_may_lie() {
    let (mut group, mut rng) = (Group::new(2, 4), rng(1));
    let tickets = [1, 2, 3].map(|node| (node, group.ask(node, A)));
    group.settle(&mut rng);
    assert!(tickets.iter().all(|(node, ticket)| group.verdict(*node, *ticket) == Some(&Ok(()))));
    // If another node has the rule under another name, nothing is certified, and the request says why.
    let (mut group, mut other) = (Group::new(2, 4), rng.clone());
    let ticket = group.ask(1, A);
    group.ask(2, A);
    group.ask_by(3, A, "levels", SlotOrder::Any);
    group.settle(&mut other);
    // Promises under another rule are kept like other early messages, while the others ask again and again.
    group.pass(9_000, &mut other);
    let claim = SlotClaim {
        key: "chain".to_owned(),
        rule: "heights".parse().unwrap(),
        slot: 7,
        digest: A,
        standing: SlotStanding::Taken,
    };
    let text = group.nodes[&1].certifier.standing(2, &[claim]).unwrap().to_string();
    assert!(text.contains("node 3 promises it by a rule named levels"), "{text}");
    assert!(text.contains("no promise by node 4"), "{text}");
    assert_eq!(group.verdict(1, ticket), None);
}

/// Nodes stop between promise and share: their memory has the promises, and peers that ask get them.
#[test]
fn promises_outlive_restarts() {
    let (mut group, mut rng) = (Group::new(2, 4), rng(1));
    for node in [1, 2, 3] {
        group.ask(node, A);
    }
    group.wire.clear();
    for node in 1..=4 {
        let memory = Arc::clone(&group.nodes[&node].memory);
        group.start(node, memory);
    }
    // Only node 4 is asked now, for B: it learns that A has three promises.
    let ticket = group.ask(4, B);
    group.settle(&mut rng);
    group.pass(1_000, &mut rng);
    assert!(matches!(group.verdict(4, ticket), Some(Err(SlotRefusal::Taken { .. }))));
    assert!(group.nodes.values().all(|node| node.lies.is_empty() && node.culprits.is_empty()));
}

/// Slots go upwards only: a lower one gets no promise, but a certified one is completed.
#[test]
fn certified_slots_below_wait_for_nobody() {
    let (mut group, mut rng) = (Group::new(2, 4), rng(1));
    for node in [1, 2, 3] {
        group.ask_by(node, A, "heights", SlotOrder::Increasing);
    }
    group.settle(&mut rng);
    // Node 4 has gone on without a request for slot 7, and so have the others.
    for node in 1..=4 {
        group.ask_slot(node, B, "heights", SlotOrder::Increasing, 9);
    }
    group.settle(&mut rng);
    let (certified, other) =
        (group.ask_by(4, A, "heights", SlotOrder::Increasing), group.ask_by(4, B, "heights", SlotOrder::Increasing));
    group.pass(2_000, &mut rng);
    assert_eq!(group.verdict(4, certified), Some(&Ok(())));
    assert!(matches!(group.verdict(4, other), Some(Err(SlotRefusal::Taken { .. }))));
    let never = group.ask_slot(4, A, "heights", SlotOrder::Increasing, 5);
    group.settle(&mut rng);
    assert!(
        matches!(group.verdict(4, never), Some(Err(SlotRefusal::Over { mark: 8, .. }))),
        "as soon as all were heard"
    );
}

/// The quorum says when slots stop.
#[test]
fn nodes_without_an_identity_certify_nothing() {
    let mut group = Group::new(2, 4);
    let roster = Roster {
        name: "group".to_owned(),
        nodes: (1..=4).map(party).collect(),
        members: Vec::new(),
        k: 2,
        founding: None,
    };
    let memory = Box::<MemorySlots>::default();
    group.nodes.get_mut(&1).unwrap().certifier = Certifier::new(roster, party(1), Some(Arc::new(keys(1))), memory);
    let ticket = group.ask(1, A);
    assert_eq!(group.verdict(1, ticket), Some(&Err(SlotRefusal::NoIdentity)));
    assert!(group.wire.is_empty());
    let quorum = |k, n, key_k| Group::new(k, n).nodes[&1].certifier.quorum(key_k, "key");
    assert_eq!((quorum(2, 4, 2).need(), quorum(2, 4, 2).warning()), (3, None));
    assert_eq!((quorum(2, 4, 3).need(), quorum(2, 4, 3).spare()), (4, 0));
    assert_eq!(quorum(3, 5, 2), quorum(3, 5, 3), "a key with a smaller k has no fewer liars around it");
}

/// Promises that the second implementation signed, and the proof that their node lies.
#[test]
fn known_answers() {
    let file: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../vectors/slots/promise.json")).unwrap();
    let text = |name: &str| file[name].as_str().unwrap().to_owned();
    let key = hex::decode(text("verifying_key")).unwrap();
    let member = [&[0, 4], &*key].concat();
    let member = theta_ceremonies::CeremonyMember::decode(&member).unwrap();
    let bytes = hex::decode(text("equivocation")).unwrap();
    let lie = Equivocation::decode(&bytes).unwrap();
    assert_eq!(lie.encode(), bytes);
    let subject = Subject { key: text("key"), slot: file["slot"].as_u64().unwrap(), rule: text("rule") };
    assert_eq!(lie.subject, subject);
    assert!(lie.vartime_proves(&text("group"), &member));
    for (promise, known) in [&lie.first, &lie.second].into_iter().zip(file["promises"].as_array().unwrap()) {
        assert_eq!((promise.node, promise.digest.to_string().as_str()), (party(4), known["digest"].as_str().unwrap()));
        assert_eq!(hex::encode(promise.signature), known["signature"].as_str().unwrap());
        // As policies decide: a digest of the operation's code and the message.
        let mut decided = vec![u8::try_from(known["operation"].as_u64().unwrap()).unwrap()];
        let message = hex::decode(known["message"].as_str().unwrap()).unwrap();
        decided.extend_from_slice(&Digest::of(&message).0);
        assert_eq!(promise.digest, Digest::of(&[b"theta/slot/v1\0", decided.as_slice()].concat()));
    }
    assert!(Equivocation::decode(&bytes[..bytes.len() - 1]).is_err());
}
