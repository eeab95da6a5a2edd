//! Slot certificates: certifiers of whole groups over a network that the test controls.

mod races;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use theta_ceremonies::CeremonyKeys;
use theta_custody::{
    Certifier, CertifierEffect, Equivocation, Promise, Roster, SlotClaim, SlotRefusal, SlotStanding, Subject, Ticket,
    To, encode_promises, promises_of,
};
use theta_groups::Secret;
use theta_names::{NodeId, SlotOrder};
use theta_policy::{MemorySlots, SlotDecision, SlotScope, SlotState};
use theta_statements::Digest;

const A: Digest = Digest([0xa; 32]);
const B: Digest = Digest([0xb; 32]);
const C: Digest = Digest([0xc; 32]);
const DEADLINE: u64 = 60_000;

fn party(node: u16) -> NodeId {
    NodeId::try_from(node).unwrap()
}

fn keys(node: u16) -> CeremonyKeys {
    CeremonyKeys::new(party(node), Secret::new([u8::try_from(node).unwrap(); 32]))
}

fn subject() -> Subject {
    Subject { key: "chain".to_owned(), slot: 7, rule: "heights".to_owned() }
}

fn promise(node: u16, digest: Digest) -> Promise {
    Promise::sign("group", &keys(node), &subject(), digest)
}

/// A group of n nodes with threshold k.
struct Group {
    k: u16,
    n: u16,
    now: u64,
    nodes: BTreeMap<u16, Node>,
    wire: Vec<(u16, u16, Bytes)>,
    /// Nodes that neither receive nor send.
    away: BTreeSet<u16>,
    messages: usize,
}

struct Node {
    certifier: Certifier,
    memory: Arc<MemorySlots>,
    verdicts: BTreeMap<Ticket, Result<(), SlotRefusal>>,
    culprits: Vec<(u16, String)>,
    lies: Vec<Equivocation>,
}

impl Group {
    fn new(k: u16, n: u16) -> Self {
        let mut group =
            Self { k, n, now: 0, nodes: BTreeMap::new(), wire: Vec::new(), away: BTreeSet::new(), messages: 0 };
        (1..=n).for_each(|node| group.start(node, Arc::default()));
        group
    }

    fn start(&mut self, node: u16, memory: Arc<MemorySlots>) {
        let roster = Roster {
            name: "group".to_owned(),
            nodes: (1..=self.n).map(party).collect(),
            members: (1..=self.n).map(|node| keys(node).member().clone()).collect(),
            k: self.k,
            founding: None,
        };
        let kept = Box::new(Arc::clone(&memory));
        let certifier = Certifier::new(roster, party(node), Some(Arc::new(keys(node))), kept);
        let node_of = Node { certifier, memory, verdicts: BTreeMap::new(), culprits: Vec::new(), lies: Vec::new() };
        self.nodes.insert(node, node_of);
    }

    /// A client's request at a node: the node's memory decides, then the request waits for the certificate.
    fn ask(&mut self, node: u16, digest: Digest) -> Ticket {
        self.ask_by(node, digest, "heights", SlotOrder::Any)
    }

    fn ask_by(&mut self, node: u16, digest: Digest, rule: &str, order: SlotOrder) -> Ticket {
        self.ask_slot(node, digest, rule, order, 7)
    }

    fn ask_slot(&mut self, node: u16, digest: Digest, rule: &str, order: SlotOrder, slot: u64) -> Ticket {
        let at = self.nodes.get_mut(&node).unwrap();
        let scope = SlotScope { key: "chain", rule };
        let standing = match at.memory.decide(scope, slot, digest, order).unwrap() {
            SlotDecision::Allowed | SlotDecision::Same => SlotStanding::Taken,
            SlotDecision::Conflict { previous } => SlotStanding::Contested { previous: Digest(previous) },
            SlotDecision::Below { mark } => SlotStanding::Over { mark },
        };
        let rule = rule.parse().unwrap();
        let claim = SlotClaim { key: "chain".to_owned(), rule, slot, digest, standing };
        let mut effects = Vec::new();
        let ticket = at.certifier.claim(self.now, self.k, &[claim], self.now + DEADLINE, &mut effects);
        self.carry(node, effects);
        ticket
    }

    fn carry(&mut self, node: u16, effects: Vec<CertifierEffect>) {
        for effect in effects {
            let at = self.nodes.get_mut(&node).unwrap();
            match effect {
                CertifierEffect::Send { to: To::All, bytes } => {
                    let others = (1..=self.n).filter(|to| *to != node);
                    self.wire.extend(others.map(|to| (node, to, bytes.clone())));
                }
                CertifierEffect::Send { to: To::One(to), bytes } => self.wire.push((node, to.get(), bytes)),
                CertifierEffect::Decided { ticket, verdict } => {
                    assert!(at.verdicts.insert(ticket, verdict).is_none(), "decided once");
                }
                CertifierEffect::Culprit { node, offence } => at.culprits.push((node.get(), offence.to_string())),
                CertifierEffect::Equivocation(lie) => at.lies.push(*lie),
            }
        }
    }

    fn receive(&mut self, from: u16, to: u16, bytes: &Bytes) {
        self.messages += 1;
        let mut effects = Vec::new();
        let node = self.nodes.get_mut(&to).unwrap();
        node.certifier.receive(self.now, party(from), bytes, &mut effects);
        self.carry(to, effects);
    }

    /// Delivers all messages in a seeded order.
    fn settle(&mut self, rng: &mut ChaCha8Rng) {
        while !self.wire.is_empty() {
            let place = usize::try_from(rng.next_u64() % self.wire.len() as u64).unwrap();
            let (from, to, bytes) = self.wire.swap_remove(place);
            if !self.away.contains(&from) && !self.away.contains(&to) {
                self.receive(from, to, &bytes);
            }
        }
    }

    fn pass(&mut self, millis: u64, rng: &mut ChaCha8Rng) {
        let end = self.now + millis;
        while self.now < end {
            self.now += 50;
            for node in 1..=self.n {
                let mut effects = Vec::new();
                self.nodes.get_mut(&node).unwrap().certifier.tick(self.now, &mut effects);
                self.carry(node, effects);
            }
            self.settle(rng);
        }
    }

    fn verdict(&self, node: u16, ticket: Ticket) -> Option<&Result<(), SlotRefusal>> {
        self.nodes[&node].verdicts.get(&ticket)
    }
}

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

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
