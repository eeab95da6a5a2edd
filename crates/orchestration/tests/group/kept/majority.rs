//! ECDSA keys with a dishonest majority: who cheats is named and left alone until the key has new shares. And those with passive security.

use std::collections::BTreeSet;

use bytes::Bytes;
use theta_names::Delivery;
use theta_orchestration::{InstanceError, Quarantine};
use theta_rounds::Abort;
use theta_schemes::Suite;
use theta_statements::KeyChange;
use theta_wire::peer::INSTANCES;

use super::{
    cluster::Cluster,
    members::{Question, name, party},
};
use crate::wire::{open, seal};

/// The kind of a share of a signature.
const SHARE: u32 = 1;
/// The kind of a message that names the holders of a program.
const PREPARE: u32 = 3;
/// The lowest kind of a message of a program.
const PROGRAM: u32 = 6;
/// The kinds of what holders say of a program that failed.
const GAVE_UP: u32 = 4;
const VIEW: u32 = 5;
/// One of the rounds in which MACs are checked.
const ROUND: u16 = 24;

/// How many presignatures a stock should have: with MASCOT a program makes 8.
const LEVEL: usize = 12;

fn cluster(k: u16, n: u16, seed: u64) -> Cluster {
    delivered(Delivery::DishonestMajority, (k, n), LEVEL, seed)
}

fn delivered(delivery: Delivery, (k, n): (u16, u16), level: usize, seed: u64) -> Cluster {
    Cluster::of_key(Suite::EcdsaP256, delivery, (k, n), level, seed)
}

/// The round in which products are made, with an honest majority.
const PRODUCTS: u16 = 6;

/// Flips a bit of what is sent in one round.
fn lie(bytes: &Bytes) -> Bytes {
    lie_in(ROUND, bytes)
}

/// With an honest majority.
fn lie_in_products(bytes: &Bytes) -> Bytes {
    lie_in(PRODUCTS, bytes)
}

fn lie_in(round: u16, bytes: &Bytes) -> Bytes {
    let mut envelope = open(bytes);
    let mut payload = envelope.payload.to_vec();
    let is_meant = envelope.stream == INSTANCES && (PROGRAM..=u32::from(u16::MAX)).contains(&envelope.kind);
    if is_meant && payload.get(2..4) == Some(&round.to_be_bytes()) {
        *payload.last_mut().unwrap() ^= 1;
        envelope.payload = payload.into();
        return seal(&envelope);
    }
    bytes.clone()
}

fn sign(cluster: &mut Cluster, nodes: &[u16], text: &str) {
    let question = Question::new(&cluster.key(nodes[0]), text);
    let pending: Vec<_> = nodes.iter().map(|node| cluster.submit(*node, &question.request)).collect();
    cluster.until(text, |_| pending.iter().all(|pending| pending.outcome().is_some()));
    pending.iter().for_each(|pending| question.check(&pending.outcome().unwrap().unwrap()));
}

fn refusal(cluster: &mut Cluster, node: u16, text: &str) -> InstanceError {
    let question = Question::new(&cluster.key(node), text);
    let other = cluster.submit(3 - node, &question.request);
    let pending = cluster.submit(node, &question.request);
    cluster.until(text, |_| pending.outcome().is_some());
    drop(other);
    pending.outcome().unwrap().unwrap_err()
}

/// How many messages of programs a node has sent since the log had this length.
fn programs_of(cluster: &Cluster, node: u16, since: usize) -> usize {
    let sent = cluster.log[since..].iter().filter(|(from, ..)| *from == node).map(|(_, _, bytes)| open(bytes));
    let of_program = |kind: u32| (PROGRAM..=u32::from(u16::MAX)).contains(&kind);
    sent.filter(|envelope| envelope.stream == INSTANCES && of_program(envelope.kind)).count()
}

/// The machine of a node loses power, and comes back.
fn restart(cluster: &mut Cluster, node: u16) {
    cluster.kill(node);
    cluster.start(node);
}

#[test]
fn nothing_is_made_in_advance() {
    let mut cluster = cluster(2, 3, 1);
    sign(&mut cluster, &[1, 2, 3], "text");
    cluster.pass(std::time::Duration::from_secs(60));
    (0..400).for_each(|_| cluster.turn());
    assert!([1, 2, 3].iter().all(|node| cluster.key(*node).stock.presignatures_ready() == 0));
}

fn are_full(cluster: &Cluster, nodes: &[u16]) -> bool {
    nodes.iter().all(|node| cluster.key(*node).stock.presignatures_ready() >= LEVEL)
}

/// Signs, and says whether a program ran for it at any node.
fn signs_by_a_program(cluster: &mut Cluster, nodes: &[u16], text: &str) -> bool {
    let question = Question::new(&cluster.key(nodes[0]), text);
    let pending: Vec<_> = nodes.iter().map(|node| cluster.submit(*node, &question.request)).collect();
    cluster.until(text, |_| pending.iter().all(|pending| pending.outcome().is_some()));
    pending.iter().for_each(|pending| question.check(&pending.outcome().unwrap().unwrap()));
    let id = pending[0].id().0;
    let of_it = cluster.log.iter().map(|(_, _, bytes)| open(bytes)).filter(|it| it.instance_id[..] == id[..]);
    of_it.filter(|it| it.stream == INSTANCES).any(|it| it.kind == PREPARE)
}

/// Where all must sign, there is one set and one stock.
#[test]
fn all_of_a_fixed_set_have_presignatures_before_anybody_signs() {
    for nodes in [&[1, 2][..], &[1, 2, 3]] {
        let n = u16::try_from(nodes.len()).unwrap();
        let mut cluster = cluster(n, n, n.into());
        cluster.until("stocks are full", |cluster| are_full(cluster, nodes));
        assert!(!signs_by_a_program(&mut cluster, nodes, "the first"));
        cluster.hold(nodes, KeyChange::Refresh { key: name("key"), version: None });
        cluster.until("stocks of the new epoch are full", |cluster| are_full(cluster, nodes));
        assert!(!signs_by_a_program(&mut cluster, nodes, "refreshed"));
        restart(&mut cluster, 2);
        sign(&mut cluster, nodes, "restarted");
        cluster.until("the restarted node has some", |cluster| are_full(cluster, nodes));
        for node in nodes {
            let key = cluster.key(*node);
            assert_eq!(cluster.engine(*node).stock(&key).map(|stock| stock.level), Some(LEVEL));
            assert!(cluster.engine(*node).culprits().is_empty() && Quarantine::of(&key).is_empty());
        }
    }
}

/// A cheat is found while nobody asks for anything: nothing begins again, until the key has new shares.
#[test]
fn a_cheat_in_a_filling_stops_the_fillings() {
    let mut cluster = cluster(2, 2, 5);
    cluster.liar = Some((1, lie));
    cluster.hold(&[1, 2], KeyChange::Refresh { key: name("key"), version: None });
    cluster.until("node 2 has noticed", |cluster| !Quarantine::of(&cluster.key(2)).is_empty());
    cluster.liar = None;
    // What node 2 has taken part in; it may be asked for what it has sent there.
    let instances = |cluster: &Cluster| -> BTreeSet<Bytes> {
        let sent = cluster.log.iter().filter(|(from, ..)| *from == 2).map(|(_, _, bytes)| open(bytes));
        sent.filter(|it| it.stream == INSTANCES).map(|it| it.instance_id).collect()
    };
    (0..200).for_each(|_| cluster.turn());
    let (before, seen) = (instances(&cluster), Quarantine::of(&cluster.key(2)));
    cluster.pass(std::time::Duration::from_secs(60));
    (0..2_000).for_each(|_| cluster.turn());
    assert_eq!(instances(&cluster), before);
    assert_eq!((Quarantine::of(&cluster.key(2)), cluster.key(2).stock.presignatures_ready()), (seen, 0));
    cluster.hold(&[1, 2], KeyChange::Refresh { key: name("key"), version: None });
    cluster.until("stocks of the new epoch are full", |cluster| are_full(cluster, &[1, 2]));
    assert!(!signs_by_a_program(&mut cluster, &[1, 2], "refreshed"));
}

/// Says nothing in programs from the round in which MACs are checked on: it sends that in an instance which nobody has.
fn fall_silent(bytes: &Bytes) -> Bytes {
    let mut envelope = open(bytes);
    let is_of_program = envelope.stream == INSTANCES && (PROGRAM..=u32::from(u16::MAX)).contains(&envelope.kind);
    if is_of_program && round_of(&envelope.payload) >= ROUND {
        envelope.instance_id = envelope.instance_id.iter().map(|byte| !byte).collect::<Vec<u8>>().into();
        return seal(&envelope);
    }
    bytes.clone()
}

fn round_of(payload: &[u8]) -> u16 {
    payload.get(2..4).and_then(|round| round.try_into().ok()).map_or(0, u16::from_be_bytes)
}

/// Who falls silent when the others have revealed theirs keeps a failed check to itself, and nobody has asked for anything. It gets few tries.
#[test]
fn a_holder_that_falls_silent_in_fillings_gets_few_tries() {
    let mut cluster = cluster(2, 2, 9);
    cluster.liar = Some((1, fall_silent));
    cluster.hold(&[1, 2], KeyChange::Refresh { key: name("key"), version: None });
    // Fillings in which node 2 has used what is hidden.
    let tries = |cluster: &Cluster| -> usize {
        let sent = cluster.log.iter().filter(|(from, ..)| *from == 2).map(|(_, _, bytes)| open(bytes));
        let of_program = |kind: u32| (PROGRAM..=u32::from(u16::MAX)).contains(&kind);
        let used = sent.filter(|it| it.stream == INSTANCES && of_program(it.kind) && round_of(&it.payload) >= ROUND);
        used.map(|it| it.instance_id).collect::<BTreeSet<Bytes>>().len()
    };
    rest(&mut cluster, 660);
    let few = tries(&cluster);
    assert!((2..=12).contains(&few), "{few} tries in eleven minutes");
    assert!(Quarantine::of(&cluster.key(2)).is_empty(), "silence is no proof of a cheat");
    // It is forgiven when it does its part.
    cluster.liar = None;
    cluster.until("stocks are full", |cluster| are_full(cluster, &[1, 2]));
}

/// Lets so many seconds pass without requests.
fn rest(cluster: &mut Cluster, seconds: u32) {
    let mut left = 20 * seconds;
    while left > 0 {
        let before = cluster.log.len();
        cluster.turn();
        left -= u32::from(before == cluster.log.len());
    }
}

#[test]
fn keys_with_passive_security_sign_also_with_new_shares() {
    for (delivery, k, n) in [(Delivery::Passive, 2, 3), (Delivery::PassiveDishonestMajority, 2, 2)] {
        let nodes: Vec<u16> = (1..=n).collect();
        let mut cluster = delivered(delivery, (k, n), LEVEL, 7);
        sign(&mut cluster, &nodes, "made");
        let ready = nodes.iter().map(|node| cluster.key(*node).stock.presignatures_ready()).max();
        assert_eq!(ready > Some(0), delivery == Delivery::Passive, "{delivery}");
        cluster.hold(&nodes, KeyChange::Refresh { key: name("key"), version: None });
        assert!(nodes.iter().all(|node| cluster.key(*node).delivery == delivery), "it belongs to the key");
        sign(&mut cluster, &nodes, "refreshed");
    }
}

/// The same, and what it sends in that round says that its sender has begun anew.
fn lie_anew(bytes: &Bytes) -> Bytes {
    let mut envelope = open(&lie_in_products(bytes));
    if lie_in_products(bytes) == *bytes {
        return bytes.clone();
    }
    envelope.kind ^= 1;
    seal(&envelope)
}

/// The same, and says nothing of programs that failed: it cannot be named.
fn lie_in_silence(bytes: &Bytes) -> Bytes {
    let mut envelope = open(bytes);
    if envelope.stream == INSTANCES && [GAVE_UP, VIEW].contains(&envelope.kind) {
        envelope.instance_id = envelope.instance_id.iter().map(|byte| !byte).collect::<Vec<u8>>().into();
        return seal(&envelope);
    }
    lie_in_products(bytes)
}

/// With an honest majority nobody is left out for a cheat whom messages do not show: signatures come from other holders, and a counter shows who is in all
/// programs that came to nothing.
#[test]
fn a_cheat_among_honest_holders_is_counted_by_node() {
    let mut cluster = delivered(Delivery::All, (2, 4), 0, 4);
    let counted = |cluster: &Cluster, by: u16, node: u16, cause: &str| {
        cluster.metric(by, &format!("theta_failed_programs_total{{node=\"{node}\",cause=\"{cause}\"}}"))
    };
    let of = |cluster: &Cluster, node, cause: &str| (1..=3).map(|by| counted(cluster, by, node, cause)).sum::<f64>();
    let all = |cluster: &Cluster, node| of(cluster, node, "check");
    (0..4).for_each(|number| sign(&mut cluster, &[1, 2, 3, 4], &format!("honest {number}")));
    assert!((1..=4).all(|node| all(&cluster, node) == 0.0));
    cluster.liar = Some((4, lie_in_silence));
    (0..12).for_each(|number| sign(&mut cluster, &[1, 2, 3, 4], &format!("a lie {number}")));
    let counts: Vec<f64> = (1..=4).map(|node| all(&cluster, node)).collect();
    assert!(counts[3] > 0.0 && counts[..3].iter().all(|count| *count < counts[3]), "{counts:?}");
    assert!((1..=3).all(|node| Quarantine::of(&cluster.key(node)).is_empty()));
    assert!((1..=3).all(|node| counted(&cluster, node, node, "check") == 0.0), "nobody counts itself");
    assert!((1..=4).all(|node| of(&cluster, node, "restart") == 0.0));
    // Who begins anew is counted apart, and nobody beside it.
    cluster.liar = Some((4, lie_anew));
    (0..12).for_each(|number| sign(&mut cluster, &[1, 2, 3, 4], &format!("a restart {number}")));
    assert_eq!((1..=4).map(|node| all(&cluster, node)).collect::<Vec<_>>(), counts);
    let restarts: Vec<f64> = (1..=4).map(|node| of(&cluster, node, "restart")).collect();
    assert!(restarts[3] > 0.0 && restarts[..3] == [0.0; 3], "{restarts:?}");
}

/// Flips a bit of shares that are dealt to one of two others: the other one has its own from a seed.
fn lie_to_one(bytes: &Bytes) -> Bytes {
    lie_in(5, bytes)
}

/// Who lies in programs, and by whom it is named for what when so many signatures were made.
fn named(liar: u16, lie: fn(&Bytes) -> Bytes) -> Vec<&'static str> {
    let nodes = [1, 2, 3, 4];
    let mut cluster = delivered(Delivery::All, (2, 4), 0, liar.into());
    cluster.liar = Some((liar, lie));
    let honest: Vec<u16> = nodes.into_iter().filter(|node| *node != liar).collect();
    for number in 0..12 {
        let question = Question::new(&cluster.key(liar), &format!("a lie {number}"));
        // Its own machine follows the protocol, and takes all others for liars.
        let _own = cluster.submit(liar, &question.request);
        let pending: Vec<_> = honest.iter().map(|node| cluster.submit(*node, &question.request)).collect();
        cluster.until("a lie", |_| pending.iter().all(|pending| pending.outcome().is_some()));
        pending.iter().for_each(|pending| question.check(&pending.outcome().unwrap().unwrap()));
    }
    let mut named = Vec::new();
    for by in honest {
        for record in cluster.engine(by).culprits() {
            assert_eq!(record.culprit.party, party(liar), "{record:?}");
            named.push(record.culprit.offence.name());
        }
    }
    named
}

/// Who lies in a program is named by whoever it lied to, when all have thrown the program away and shown what they know of it.
#[test]
fn who_lies_in_programs_is_named_by_opened_views() {
    for liar in 1..=4 {
        let named = named(liar, lie_in_products);
        let directly = named.iter().filter(|name| **name == "false_round").count();
        // Who gives up before it has heard the lie knows that one of two has lied.
        let is_known = |name: &&str| ["false_round", "false_shares"].contains(name);
        assert!(directly >= 6 && named.iter().all(is_known), "liar {liar}: {named:?}");
    }
}

/// Others know that one of two has lied, and which when they have seen it beside another one.
#[test]
fn who_lies_to_one_is_named_by_others_by_elimination() {
    let all: Vec<&str> = (1..=4).flat_map(|liar| named(liar, lie_to_one)).collect();
    for name in ["false_round", "false_shares"] {
        assert!(all.iter().filter(|it| **it == name).count() >= 4, "{all:?}");
    }
    assert!(all.iter().all(|name| ["false_round", "false_shares"].contains(name)), "{all:?}");
}

/// Flips a bit of each share of a signature.
fn false_shares(bytes: &Bytes) -> Bytes {
    let mut envelope = open(bytes);
    let mut payload = envelope.payload.to_vec();
    if envelope.stream == INSTANCES && envelope.kind == SHARE && !payload.is_empty() {
        *payload.last_mut().unwrap() ^= 1;
        envelope.payload = payload.into();
        return seal(&envelope);
    }
    bytes.clone()
}

/// Masks hide whose share of a presignature is false. One of its signers it is, and one of four is in all of these sets.
#[test]
fn who_sends_false_shares_is_named_by_elimination() {
    for liar in 1..=4 {
        let nodes = [1, 2, 3, 4];
        let mut cluster = delivered(Delivery::All, (2, 4), LEVEL, liar.into());
        cluster.until("stocks are full", |cluster| are_full(cluster, &nodes));
        cluster.liar = Some((liar, false_shares));
        (0..16).for_each(|number| sign(&mut cluster, &nodes, &format!("a false share {number}")));
        let honest = nodes.into_iter().filter(|node| *node != liar);
        let said: Vec<Vec<_>> = honest.map(|node| cluster.engine(node).culprits()).collect();
        assert!(said.iter().filter(|said| !said.is_empty()).count() >= 2, "liar {liar}: {said:?}");
        for record in said.iter().flatten() {
            assert_eq!((record.culprit.party, record.culprit.offence.name()), (party(liar), "false_shares"));
        }
        assert!(said.iter().all(|said| said.len() <= 1), "each names it once: {said:?}");
    }
}

#[test]
fn a_cheat_of_two_is_named_and_left_alone_until_the_key_is_refreshed() {
    let mut cluster = delivered(Delivery::DishonestMajority, (2, 2), 0, 2);
    sign(&mut cluster, &[1, 2], "honest");
    cluster.liar = Some((1, lie));
    let error = refusal(&mut cluster, 2, "a lie");
    assert!(matches!(error, InstanceError::Aborted(Abort::Quarantined { .. })), "{error}");
    let seen = Quarantine::of(&cluster.key(2));
    assert_eq!((seen.len(), &seen[0].nodes[..], seen[0].culprit), (1, &[party(1), party(2)][..], Some(party(1))));
    assert!(error.to_string().contains(&seen[0].phase), "{error}");
    // Although it is honest now.
    cluster.liar = None;
    let before = cluster.log.len();
    let error = refusal(&mut cluster, 2, "again");
    assert!(matches!(error, InstanceError::Aborted(Abort::Quarantined { .. })), "{error}");
    assert_eq!(programs_of(&cluster, 2, before), 0, "node 2 computes nothing");
    // Nor does a restart give the other one a further try.
    restart(&mut cluster, 2);
    assert_eq!(Quarantine::of(&cluster.key(2)), seen);
    let before = cluster.log.len();
    let error = refusal(&mut cluster, 2, "after a restart");
    assert!(matches!(error, InstanceError::Aborted(Abort::Quarantined { .. })), "{error}");
    assert_eq!(programs_of(&cluster, 2, before), 0, "node 2 computes nothing");
    cluster.hold(&[1, 2], KeyChange::Refresh { key: name("key"), version: None });
    assert!(Quarantine::of(&cluster.key(2)).is_empty());
    sign(&mut cluster, &[1, 2], "refreshed");
    restart(&mut cluster, 2);
    assert!(Quarantine::of(&cluster.key(2)).is_empty());
    sign(&mut cluster, &[1, 2], "refreshed, and restarted");
}

#[test]
fn of_three_the_honest_sign_and_leave_the_liar_alone() {
    for seed in 3..6 {
        let mut cluster = cluster(2, 3, seed);
        cluster.liar = Some((3, lie));
        for turn in 0..3 {
            sign(&mut cluster, &[1, 2], &format!("text {turn}"));
        }
        for node in [1, 2] {
            for it in Quarantine::of(&cluster.key(node)) {
                assert_eq!((it.culprit, it.nodes.contains(&party(3))), (Some(party(3)), true), "{it:?}");
            }
        }
    }
}
