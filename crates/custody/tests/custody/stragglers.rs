//! A node that stays connected to k honest others ends every ceremony, whatever liars do.

use std::collections::VecDeque;
use std::mem::take;

use bytes::Bytes;
use theta_ceremonies::{CeremonyId, Kind, Statement, rewrite};
use theta_custody::{CeremonyState, CustodyInput};
use theta_schemes::{Delivery, Suite};
use theta_statements::KeyChange;

use crate::lies::{HEAD, liar, plan};
use crate::net::{Liar, Net, keys_of, name, party};
use crate::use_keys::{check_coin, check_signature};

const COIN: Suite = Suite::Cks05Ristretto255;
const ITEMS: u8 = 1;
const SUMMARY: u8 = 2;
const GREETING: u8 = 3;

/// A liar that claims of every store that it is an old copy, and sends nothing in ceremonies.
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

/// One peer's claim that a store is an old copy takes no vote away; otherwise one liar could prevent a quorum.
#[test]
fn one_peer_alone_takes_nobodys_vote_away() {
    let mut net = Net::new(2, 4, 1);
    net.drain();
    net.liars.insert(2, slanderer());
    net.until(9, |_| false);
    // Nor does it end the nodes' trust in their own stores.
    assert!([1, 3, 4].iter().all(|node| net.custodian(*node).is_trusted()));
    let change = KeyChange::Create {
        key: name("zone"),
        suite: COIN.into(),
        delivery: Delivery::All,
        k: 2,
        holders: vec![1, 2, 3, 4],
    };
    let request = net.request(change);
    // The later ones know the ceremony before they are asked.
    let mut id = [0; 32];
    for node in [1, 3, 4] {
        id = net.ask([node], &request);
        net.drain();
    }
    let activated = |net: &Net, node| matches!(net.state(node, &id), CeremonyState::Activated { .. });
    assert!(net.until(60, |net| [1, 3, 4].iter().all(|node| activated(net, *node))));
    check_coin(&net, &[1, 4], "zone");
}

/// The honest nodes decide without the one with a false dealing. When it comes, all have ended and destroyed what could
/// help it. It ends as a holder without a share, names the liar, and recovers its share.
#[test]
fn who_was_dealt_falsely_may_come_when_all_others_are_done() {
    let honest = [1, 3, 4, 5];
    let mut net = Net::new(2, 6, 1);
    let (plan, request) = plan(&mut net, &[1, 2, 3, 4, 5, 6]);
    let spoil = |_, mut body: Vec<u8>| {
        // The last bytes are for the last member.
        let at = body.len() - 5;
        body[at] ^= 1;
        body
    };
    net.liars.insert(2, liar(*plan.id(), 2, Kind::Dealing, spoil));
    // It sends its encryption key, and receives nothing.
    let id = net.begin(1..=6, &request);
    net.kill(6);
    assert!(net.until(60, |net| honest.iter().all(|node| net.state(*node, &id).is_over())));
    // Only what is on the disks is left, and the liar does not help.
    net.kill(2);
    for node in honest {
        net.kill(node);
        net.start(node);
    }
    net.start(6);
    net.connect();
    assert!(net.until(60, |net| matches!(net.state(6, &id), CeremonyState::Activated { .. })));
    let report = net.custodian(6).report(&id).unwrap();
    assert!(report.evidence.iter().all(|told| told.culprit() == party(2)) && !report.evidence.is_empty());
    net.recovers(6, "zone", 0);
    check_signature(&net, &[3, 6], "zone", &net.entry(1, "zone").public);
}

/// A peer that asks until nobody answers it any more.
fn asker(id: [u8; 32]) -> Liar {
    // A summary that knows nothing, wants nothing, has nothing, and asks for the statements of all authors.
    let question = Bytes::from([&[1, SUMMARY][..], &id, &[0; 9], &[1], &[0; 4]].concat());
    Box::new(move |_, bytes: Bytes| {
        let mut all = vec![bytes];
        all.extend(vec![question.clone(); 80]);
        all
    })
}

/// Questions of one peer do not reduce what is kept for other latecomers.
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

/// Every message takes `late` ticks.
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

/// The more attempts have failed, the longer helpers wait for each other's masks.
#[test]
fn a_share_is_recovered_over_a_slow_network() {
    let (mut net, id) = about_to_recover(4);
    assert!(slowly(&mut net, 3, 600, |net| recovered(net, &id)), "{:?}", net.state(4, &id));
    net.drain();
    check_coin(&net, &[2, 4], "zone");
}

/// A helper that claims that another's masks are wrong, so that the owner asks this helper instead, and then does not
/// answer.
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
                    // Drops the last.
                    body.truncate(body.len().saturating_sub(34));
                    vec![Statement::sign(&ceremony, &keys_of(node), slot, body)]
                }
                _ => vec![statement],
            }
        });
        vec![Bytes::from([&bytes[..HEAD], &forged.unwrap()].concat())]
    })
}

/// A helper that was asked and did not answer is left out of the next attempt, if possible.
#[test]
fn a_share_is_recovered_beside_one_that_only_pretends_to_help() {
    for node in [1, 2] {
        let (mut net, id) = about_to_recover(4 + u64::from(node));
        net.liars.insert(node, spoiler(id, node));
        // It has sent this before it became a liar.
        net.packets.retain(|(from, ..)| *from != node);
        assert!(net.until(100, |net| recovered(net, &id)), "{:?}", net.state(4, &id));
        check_coin(&net, &[3, 4], "zone");
    }
}
