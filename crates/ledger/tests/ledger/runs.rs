//! Many groups in much trouble, each from its seed: whatever happens nobody honest disagrees, and when a quorum is connected again
//! everything ends.

mod crash;

use theta_ledger::Input;
use theta_names::KeyState;

use crate::liars::{confiding, garbled, silent, two_faced};
use crate::net::{Liar, Net, node};
use crate::states::{activated, create, set};

/// How many seeds are tried, unless `THETA_LEDGER_SEEDS` says otherwise.
const SEEDS: u64 = 300;

pub(crate) fn liar(net: &mut Net, number: u16) -> Liar {
    match net.below(4) {
        0 => two_faced(net.genesis.id(), number),
        1 => confiding(1 + number % 3),
        2 => silent(),
        _ => garbled(),
    }
}

/// Something goes wrong, or is asked for.
pub(crate) fn stir(net: &mut Net, n: u16, asked: &mut u8) {
    let some = 1 + u16::try_from(net.below(u64::from(n))).unwrap();
    match net.below(8) {
        0 => net.cut = (1..=some).map(node).collect(),
        1 => net.cut.clear(),
        2 => net.stop(node(some)),
        3 if net.nodes[&node(some)].replica.is_none() => net.start(node(some)),
        4 => {
            let (now, after) = (net.now, usize::try_from(net.below(4)).unwrap());
            net.feed_until(node(some), &|replica, disk| replica.handle(Input::Tick(now), disk), Some(after));
        }
        5 => {
            *asked += 1;
            let name = ["a", "b", "c"][usize::from(*asked % 3)];
            let action = create(name, *asked, 2, &[1, 2, 3]);
            net.grant(1..=n, &action);
            // More than may lie, so that it may be decided.
            let asked: Vec<u16> = (0..=net.genesis.k()).map(|place| 1 + (some - 1 + place) % n).collect();
            net.ask(asked, &action);
        }
        6 => {
            net.loss = u32::try_from(net.below(60)).unwrap();
            net.delay = net.below(6);
        }
        _ => {}
    }
    net.tick();
}

/// Sets a node's disk back to some height, or to nothing, and starts it as one that knows that.
pub(crate) fn forget(net: &mut Net, number: u16) {
    let len = net.nodes[&node(number)].disk.entries.len();
    let back = usize::try_from(net.below(u64::try_from(len).unwrap() + 1)).unwrap();
    let disk = &mut net.nodes.get_mut(&node(number)).unwrap().disk;
    disk.entries.truncate(back);
    disk.said.clear();
    disk.lacks = true;
    net.start(node(number));
}

/// Everything is well again: what is asked now is decided.
pub(crate) fn heal(net: &mut Net, n: u16, seed: u64) {
    net.cut.clear();
    (net.loss, net.delay) = (0, 1);
    for number in 1..=n {
        if net.nodes[&node(number)].replica.is_none() {
            net.start(node(number));
        }
    }
    let heights = |net: &Net| -> Vec<u64> {
        net.honest().map(|(_, node)| node.replica.as_ref().unwrap().state().height()).collect()
    };
    let level = |net: &Net| {
        let heights = heights(net);
        heights.iter().all(|height| *height == heights[0])
    };
    assert!(net.run_until(600, level), "seed {seed}: not all are at one height: {:?}", heights(net));
    let number = heights(net)[0] + 1;
    net.ask_all(&create("last", 255, 2, &[1, 2, 3]));
    let decided = |net: &Net| {
        net.honest().all(|(_, node)| {
            node.replica.as_ref().unwrap().state().running().values().any(|begun| begun.request.nonce == [255; 32])
        })
    };
    assert!(net.run_until(600, decided), "seed {seed}: nothing was decided from height {number} on");
    let state = net.honest().next().unwrap().1.replica.as_ref().unwrap().state().clone();
    let begun = *state.running().iter().find(|(_, begun)| begun.request.nonce == [255; 32]).unwrap().0;
    net.ask_all(&activated(begun, 2, 3, 9));
    let there = |net: &Net| {
        let has = |state: &theta_ledger::LedgerState| state.keys().contains_key(&"last".parse().unwrap());
        net.honest().all(|(_, node)| has(node.replica.as_ref().unwrap().state()))
    };
    assert!(net.run_until(600, there), "seed {seed}: ceremony {begun} has no end");
    net.ask_all(&set("last", None, KeyState::Destroyed, 1));
    let gone = |net: &Net| {
        let key = |state: &theta_ledger::LedgerState| state.keys()[&"last".parse().unwrap()].state;
        net.honest().all(|(_, node)| key(node.replica.as_ref().unwrap().state()) == KeyState::Destroyed)
    };
    assert!(net.run_until(600, gone), "seed {seed}");
}

/// A group of n that any k control after a run with k - 1 liars, one of which is a node that loses its memory if this is wanted, and after all
/// has been settled.
pub(super) fn troubled(seed: u64, (n, k): (u16, u16), forgets: bool) -> Net {
    let mut net = Net::new(n, k, seed);
    let mut forgetful = None;
    for at in 0..k - 1 {
        let number = 1 + u16::try_from((seed / 4 + u64::from(at) * 3) % u64::from(n)).unwrap();
        if at == 0 && forgets {
            forgetful = Some(number);
            continue;
        }
        let kind = liar(&mut net, number);
        net.liars.insert(node(number), kind);
    }
    let mut asked = 0;
    for step in 0..60 {
        stir(&mut net, n, &mut asked);
        if let Some(number) = forgetful.filter(|_| step == 30) {
            forget(&mut net, number);
        }
    }
    heal(&mut net, n, seed);
    // Nobody honest is named, whatever it went through.
    for (id, honest) in net.honest() {
        assert!(honest.blamed.keys().all(|culprit| net.liars.contains_key(culprit)), "seed {seed}: {id:?}");
    }
    net
}

#[test]
fn nobody_disagrees_and_everything_ends() {
    let seeds = std::env::var("THETA_LEDGER_SEEDS").ok().map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let mut entries = 0;
    let first = std::env::var("THETA_LEDGER_FIRST").ok().map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + seeds {
        let (n, k) = [(4, 2), (5, 2), (7, 3), (3, 1)][usize::try_from(seed % 4).unwrap()];
        // Every other group has, in the place of one liar, a node whose store is lost or set back.
        let net = troubled(seed, (n, k), seed / 4 % 2 == 1);
        entries += net.honest().map(|(_, node)| node.disk.entries.len()).max().unwrap();
    }
    println!("{seeds} seeds, {entries} entries");
    assert!(entries >= 3 * usize::try_from(seeds).unwrap());
}
