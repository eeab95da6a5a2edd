//! Whoever stays connected to k honest others gets to a ceremony's end, whatever liars do.

use std::collections::VecDeque;
use std::mem::take;

use bytes::Bytes;
use theta_ceremonies::{CeremonyId, Kind, Statement, rewrite};
use theta_custody::{CeremonyState, CustodyInput};
use theta_schemes::Suite;
use theta_statements::KeyChange;

use crate::lies::{HEAD, liar, plan};
use crate::net::{Liar, Net, keys_of, name, party};
use crate::use_keys::{check_coin, check_signature};

const COIN: Suite = Suite::Cks05Ristretto255;
const ITEMS: u8 = 1;
const SUMMARY: u8 = 2;
const GREETING: u8 = 3;

/// Says of every store that it is an old copy, and nothing in ceremonies.
fn slanderer() -> Liar {
    Box::new(|_, bytes: Bytes| {
        let mut bytes = bytes.to_vec();
        // Format, tag, incarnation, whether it remembers one, and that one.
        let remembers = 2 + 88;
        match bytes[1] {
            GREETING if bytes[remembers] == 1 => bytes[remembers + 1] ^= 1,
            ITEMS | SUMMARY => return Vec::new(),
            _ => {}
        }
        vec![bytes.into()]
    })
}

/// Otherwise one liar could keep the others from a quorum: whoever is told that its store is an old copy does not vote.
#[test]
fn one_peer_alone_takes_nobodys_vote_away() {
    let mut net = Net::new(2, 4, 1);
    net.drain();
    net.liars.insert(2, slanderer());
    net.until(9, |_| false);
    // Nor its trust in its own store.
    assert!([1, 3, 4].iter().all(|node| net.custodian(*node).is_trusted()));
    let change = KeyChange::Create { key: name("zone"), suite: COIN.into(), k: 2, holders: vec![1, 2, 3, 4] };
    let request = net.request(change);
    // The later ones have heard of it before they are asked.
    let mut id = [0; 32];
    for node in [1, 3, 4] {
        id = net.ask([node], &request);
        net.drain();
    }
    let activated = |net: &Net, node| matches!(net.state(node, &id), CeremonyState::Activated { .. });
    assert!(net.until(60, |net| [1, 3, 4].iter().all(|node| activated(net, *node))));
    check_coin(&net, &[1, 4], "zone");
}

/// The honest ones decide without the one that was dealt falsely; when it comes, all are done and have destroyed what would help
/// it. It ends as a holder without a share, names the liar, and gets its share back.
#[test]
fn who_was_dealt_falsely_may_come_when_all_others_are_done() {
    let honest = [1, 3, 4, 5];
    let mut net = Net::new(2, 6, 2);
    let (plan, request) = plan(&mut net, &[1, 2, 3, 4, 5, 6]);
    let spoil = |_, mut body: Vec<u8>| {
        // The last bytes are what the last member is sent.
        let at = body.len() - 5;
        body[at] ^= 1;
        body
    };
    net.liars.insert(2, liar(*plan.id(), 2, Kind::Dealing, spoil));
    // It says what to encrypt to, and hears nothing.
    let id = net.ask(1..=6, &request);
    net.kill(6);
    assert!(net.until(60, |net| honest.iter().all(|node| net.state(*node, &id).is_over())));
    // Nothing is left but what is on the disks, and the liar does not help.
    net.kill(2);
    for node in honest {
        net.kill(node);
        net.start(node);
    }
    net.start(6);
    net.connect();
    assert!(net.until(60, |net| matches!(net.state(6, &id), CeremonyState::Activated { .. })));
    let report = net.custodian(6).report(&id).unwrap();
    assert!(report.evidence.iter().all(|told| told.node == 2) && !report.evidence.is_empty());
    net.recovers(6, "zone", 0);
    check_signature(&net, &[3, 6], "zone", &net.entry(1, "zone").public);
}

/// Asks and asks, until nobody has an answer left for it.
fn asker(id: [u8; 32]) -> Liar {
    // Knows nothing, wants nothing, has nothing, and asks for the statements of all: of each number that leaves 0 when divided by 1.
    let question = Bytes::from([&[1, SUMMARY][..], &id, &[0; 9], &[1], &[0; 4]].concat());
    Box::new(move |_, bytes: Bytes| {
        let mut all = vec![bytes];
        all.extend(vec![question.clone(); 80]);
        all
    })
}

/// What is kept for those who come late does not depend on what a peer has asked for before.
#[test]
fn who_asks_too_often_leaves_latecomers_nothing_less() {
    let mut net = Net::new(2, 4, 3);
    let (plan, request) = plan(&mut net, &[1, 2, 3, 4]);
    net.liars.insert(1, asker(*plan.id().as_bytes()));
    net.kill(4);
    let id = net.ask(1..=3, &request);
    assert!(net.until(60, |net| (1..=3).all(|node| net.state(node, &id).is_over())));
    net.kill(1);
    net.start(4);
    net.connect();
    assert!(net.until(60, |net| matches!(net.state(4, &id), CeremonyState::Activated { .. })));
}

/// Every message takes so many ticks.
fn slowly(net: &mut Net, late: usize, ticks: u32, so: impl Fn(&Net) -> bool) -> bool {
    let mut on_their_way = VecDeque::from([take(&mut net.packets)]);
    for _ in 0..ticks {
        net.tick();
        on_their_way.push_back(take(&mut net.packets));
        if on_their_way.len() > late {
            for (from, to, bytes) in on_their_way.pop_front().unwrap() {
                net.step(to, CustodyInput::Message { from: party(from), bytes });
            }
        }
        if so(net) {
            return true;
        }
    }
    false
}

/// A group in which node 4 is about to get back its share.
fn about_to_recover(seed: u64) -> (Net, [u8; 32]) {
    let mut net = Net::new(2, 4, seed);
    net.create("zone", COIN, 2, &[1, 2, 3, 4]);
    net.lose_everything(4);
    net.connect();
    let request = net.request(KeyChange::Recover { key: name("zone"), version: None, node: 4 });
    let id = net.ask(1..=3, &request);
    (net, id)
}

fn recovered(net: &Net, id: &[u8; 32]) -> bool {
    net.state(4, id) == CeremonyState::Recovered
}

/// Helpers wait for each other's masks the longer, the more attempts have failed.
#[test]
fn a_share_is_recovered_over_a_slow_network() {
    let (mut net, id) = about_to_recover(4);
    assert!(slowly(&mut net, 3, 600, |net| recovered(net, &id)), "{:?}", net.state(4, &id));
    net.drain();
    check_coin(&net, &[2, 4], "zone");
}

/// Finds one helper's masks wrong, so that the owner asks itself instead, and does not answer.
fn spoiler(id: [u8; 32], node: u16) -> Liar {
    let ceremony = CeremonyId::from_bytes(id);
    Box::new(move |_, bytes: Bytes| {
        if bytes[1] != ITEMS || bytes[2..HEAD] != id {
            return vec![bytes];
        }
        let forged = rewrite(&bytes[HEAD..], |statement| {
            let (slot, mut body) = (statement.slot(), statement.body().to_vec());
            match slot.kind {
                _ if statement.author().node() != party(node) => vec![statement],
                Kind::Answer => Vec::new(),
                Kind::Checked => {
                    // All but the last.
                    body.truncate(body.len().saturating_sub(34));
                    vec![Statement::sign(&ceremony, &keys_of(node), slot, body)]
                }
                _ => vec![statement],
            }
        });
        vec![Bytes::from([&bytes[..HEAD], &forged.unwrap()].concat())]
    })
}

/// Whoever was asked and did not answer is left out of the next attempt, as far as can be.
#[test]
fn a_share_is_recovered_beside_one_that_only_pretends_to_help() {
    for node in [1, 2] {
        let (mut net, id) = about_to_recover(4 + u64::from(node));
        net.liars.insert(node, spoiler(id, node));
        // What it has said before it was a liar.
        net.packets.retain(|(from, ..)| *from != node);
        assert!(net.until(100, |net| recovered(net, &id)), "{:?}", net.state(4, &id));
        check_coin(&net, &[3, 4], "zone");
    }
}
