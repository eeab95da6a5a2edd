//! One member sends too much: what that costs the others, and that it stops nobody.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use theta_ceremonies::{CeremonyId, Kind, Statement, StatementSlot, rewrite};
use theta_custody::{CustodyEffect, CustodyInput};
use theta_schemes::{Delivery, Suite};
use theta_statements::KeyChange;

use crate::lies::{HEAD, liar, plan};
use crate::net::{Net, keys_of, name, party};
use crate::use_keys::check_signature;

/// The tag of a message about the ledger.
const LEDGER: u8 = 9;

/// A message with items of a ceremony.
fn items(id: &CeremonyId, items: &[u8]) -> Bytes {
    [&[1, 1][..], id.as_bytes(), items].concat().into()
}

fn statement_item(statement: &Statement) -> Vec<u8> {
    let StatementSlot { kind, number } = statement.slot();
    let mut item = vec![1];
    item.extend_from_slice(&statement.author().get().to_be_bytes());
    item.push(kind as u8);
    item.extend_from_slice(&number.to_be_bytes());
    item.extend_from_slice(&u32::try_from(statement.body().len()).unwrap().to_be_bytes());
    item.extend_from_slice(statement.body());
    item.extend_from_slice(statement.signature());
    item
}

fn value_item(len: usize) -> Vec<u8> {
    let mut item = vec![3];
    item.extend_from_slice(&u32::try_from(len).unwrap().to_be_bytes());
    item.resize(5 + len, 0xee);
    item
}

/// Entries and bytes that a node has in its journal for a ceremony.
fn journal(net: &Net, node: u16, id: &[u8; 32]) -> (usize, usize) {
    let inputs = net.custodian(node).store().ceremony_inputs(id).unwrap();
    (inputs.len(), inputs.iter().map(|input| input.expose().len()).sum())
}

fn assert_serves(net: &mut Net, nodes: &[u16], key: &str) {
    for node in nodes {
        let failed = |effect: &CustodyEffect| matches!(effect, CustodyEffect::StoreFailed(_));
        assert!(!net.nodes[node].told.iter().any(failed), "the store of node {node} failed");
    }
    let change = KeyChange::Create {
        key: name(key),
        suite: Suite::Cks05Ristretto255.into(),
        delivery: Delivery::All,
        k: 2,
        holders: nodes.to_vec(),
    };
    net.run(nodes.to_vec(), change);
}

/// The attack: true statements, each with five megabytes of padding. The journal kept the new part of the message with
/// all its padding, beyond the journal's bound.
#[test]
fn an_oversized_item_stops_no_node() {
    for len in [5 << 20, 1 << 17] {
        let mut net = Net::new(2, 4, 31);
        let (plan, request) = plan(&mut net, &[1, 2, 3, 4]);
        let (id, ceremony) = (request.digest(), *plan.id());
        let padding = value_item(len);
        net.liars.insert(
            2,
            Box::new(move |_, bytes: Bytes| {
                let ours = bytes.len() > HEAD && bytes[1] == 1 && bytes[2..HEAD] == *ceremony.as_bytes();
                vec![if ours { [&bytes[..], &padding].concat().into() } else { bytes }]
            }),
        );
        net.ask(1..=4, &request);
        let mut most = (0, 0);
        let honest = [1, 3, 4];
        for _ in 0..60 {
            net.drain();
            for node in honest {
                let (entries, bytes) = journal(&net, node, &id);
                most = (most.0.max(entries), most.1.max(bytes));
            }
            net.tick();
        }
        assert!(honest.iter().all(|node| net.state(*node, &id).is_over()));
        assert!(most.1 < 1 << 16, "{most:?}");
        check_signature(&net, &[1, 3], "zone", &net.entry(4, "zone").public);
        assert_serves(&mut net, &honest, "next");
    }
}

/// Thousands of different dealings, all signed by one dealer: one is kept as evidence.
#[test]
fn of_contradictions_one_is_kept() {
    let mut net = Net::new(2, 4, 32);
    let (plan, request) = plan(&mut net, &[1, 2, 3, 4]);
    let (id, ceremony) = (request.digest(), *plan.id());
    net.begin([1, 3, 4], &request);
    net.packets.retain(|(_, to, _)| *to != 2);
    let start = journal(&net, 1, &id);
    let keys = keys_of(2);
    for number in 0..3000_u32 {
        let mut body = vec![0x11; 300];
        body[..4].copy_from_slice(&number.to_be_bytes());
        let statement = Statement::sign(&ceremony, &keys, StatementSlot::new(Kind::Dealing, 0), body);
        let bytes = items(&ceremony, &statement_item(&statement));
        net.step(1, CustodyInput::Message { from: party(2), bytes });
    }
    let (entries, bytes) = journal(&net, 1, &id);
    assert!(entries <= start.0 + 2 && bytes <= start.1 + 1000, "{start:?}, then {entries} entries and {bytes} bytes");
    net.nodes.get_mut(&2).unwrap().custodian = None;
    assert!(net.until(60, |net| [1, 3, 4].iter().all(|node| net.state(*node, &id).is_over())));
    let report = net.custodian(1).report(&id).unwrap();
    assert!(report.evidence.iter().any(|told| told.culprit() == party(2)), "{report:?}");
    assert_serves(&mut net, &[1, 3, 4], "next");
}

/// A node votes in all views at once, so that views are counted up: what is too far ahead is kept as a number, and
/// seldom.
#[test]
fn votes_of_ten_thousand_views_fill_nothing() {
    let mut net = Net::new(2, 4, 33);
    let (plan, request) = plan(&mut net, &[1, 2, 3, 4]);
    let (id, ceremony) = (request.digest(), *plan.id());
    let begun = |net: &Net| net.custodian(1).store().ceremony(&id).unwrap().is_some();
    net.ask([1, 3], &request);
    assert!(net.until(60, begun));
    net.packets.clear();
    let keys = keys_of(2);
    for view in 1..=10_001 {
        let statement = Statement::sign(&ceremony, &keys, StatementSlot::new(Kind::Prevote, view), Vec::new());
        let bytes = items(&ceremony, &statement_item(&statement));
        net.step(1, CustodyInput::Message { from: party(2), bytes });
    }
    let (entries, bytes) = journal(&net, 1, &id);
    assert!(entries <= 700 && bytes <= 100_000, "{entries} entries, {bytes} bytes");
}

/// A ceremony that does not end: all have signed for the outcome, no node receives the others' signatures, nor what they say in the
/// ledger.
#[test]
fn ticks_do_not_fill_the_journal() {
    let mut net = Net::new(2, 4, 34);
    let (plan, request) = plan(&mut net, &[1, 2, 3, 4]);
    let (id, ceremony) = (request.digest(), *plan.id());
    let cut = Rc::new(Cell::new(false));
    for node in 1..=4 {
        let cut = Rc::clone(&cut);
        net.liars.insert(
            node,
            Box::new(move |_, bytes: Bytes| {
                if bytes[1] == LEDGER && cut.get() {
                    return Vec::new();
                }
                if bytes[1] != 1 || bytes[2..HEAD] != *ceremony.as_bytes() {
                    return vec![bytes];
                }
                let kept = rewrite(&bytes[HEAD..], |statement| {
                    if statement.slot().kind == Kind::Activation { Vec::new() } else { vec![statement] }
                });
                vec![[&bytes[..HEAD], &kept.unwrap()].concat().into()]
            }),
        );
    }
    net.begin(1..=4, &request);
    cut.set(true);
    for _ in 0..1500 {
        net.drain();
        net.tick();
    }
    assert!((1..=4).all(|node| !net.state(node, &id).is_over()));
    let before = journal(&net, 1, &id);
    assert!(before.0 < 200, "{before:?}");
    for _ in 0..1000 {
        net.tick();
        net.packets.clear();
    }
    assert!(journal(&net, 1, &id).0 <= before.0 + 1);
    // Counted ticks are replayed: after a crash the node goes on, and ends as the others do when it receives their messages.
    net.kill(1);
    net.start(1);
    net.liars.clear();
    assert!(net.until(200, |net| (1..=4).all(|node| net.state(node, &id).is_over())));
    assert!((2..=4).all(|node| net.state(node, &id) == net.state(1, &id)));
}

/// After its first statement with a false signature, a sender is ignored.
#[test]
fn who_sends_false_signatures_is_named_and_heard_no_more() {
    let mut net = Net::new(2, 4, 35);
    let (plan, request) = plan(&mut net, &[1, 2, 3, 4]);
    let (id, ceremony) = (request.digest(), *plan.id());
    net.begin([1, 3, 4], &request);
    let keys = keys_of(2);
    let mut forged =
        statement_item(&Statement::sign(&ceremony, &keys, StatementSlot::new(Kind::Prevote, 1), Vec::new()));
    *forged.last_mut().unwrap() ^= 1;
    let culprits = |net: &Net| {
        let of_two =
            |effect: &&CustodyEffect| matches!(effect, CustodyEffect::Culprit { node, .. } if *node == party(2));
        net.nodes[&1].told.iter().filter(of_two).count()
    };
    net.step(1, CustodyInput::Message { from: party(2), bytes: items(&ceremony, &forged.repeat(1000)) });
    assert_eq!(culprits(&net), 1);
    let before = journal(&net, 1, &id);
    let right = statement_item(&Statement::sign(&ceremony, &keys, StatementSlot::new(Kind::Prevote, 2), Vec::new()));
    net.step(1, CustodyInput::Message { from: party(2), bytes: items(&ceremony, &right) });
    assert_eq!((culprits(&net), journal(&net, 1, &id)), (1, before));
    // Other nodes may still pass on what node 2 has signed.
    net.step(1, CustodyInput::Message { from: party(3), bytes: items(&ceremony, &right) });
    assert!(journal(&net, 1, &id).0 > before.0);
    net.nodes.get_mut(&2).unwrap().custodian = None;
    assert!(net.until(60, |net| [1, 3, 4].iter().all(|node| net.state(*node, &id).is_over())));
}

/// The same attack with signatures: a liar whose statements are as long as it likes.
#[test]
fn a_statement_beyond_the_plan_is_refused_unread() {
    let mut net = Net::new(2, 4, 38);
    let (plan, request) = plan(&mut net, &[1, 2, 3, 4]);
    let (id, ceremony) = (request.digest(), *plan.id());
    net.liars.insert(2, liar(ceremony, 2, Kind::Key, |_, _| vec![7; 3 << 20]));
    net.ask(1..=4, &request);
    let honest = [1, 3, 4];
    assert!(net.until(60, |net| honest.iter().all(|node| net.state(*node, &id).is_over())));
    // A node that has ended before the lie arrives does not notice it.
    let named = |effect: &CustodyEffect| matches!(effect, CustodyEffect::Culprit { node, .. } if *node == party(2));
    assert!(honest.iter().any(|node| net.nodes[node].told.iter().any(named)));
    assert_serves(&mut net, &honest, "next");
}
