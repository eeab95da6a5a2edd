//! Nodes that stop at any moment, and disks that are not what they were.

use theta_ledger::Input;

use crate::net::{Net, node};
use crate::states::{activated, create, set};
use theta_names::KeyState;

#[test]
fn killed_between_any_two_effects_nobody_says_two_things() {
    for seed in 0..60 {
        let mut net = Net::new(4, 2, seed);
        let action = create("a", 1, 2, &[1, 2, 3]);
        net.ask_all(&action);
        for round in 0..80 {
            let victim = node(u16::try_from(1 + net.below(4)).unwrap());
            let (now, after) = (net.now, net.below(3));
            net.feed_until(
                victim,
                &|replica, disk| replica.handle(Input::Tick(now), disk),
                Some(usize::try_from(after).unwrap()),
            );
            net.tick();
            if round % 3 == 0 || net.nodes[&victim].replica.is_none() {
                net.start(victim);
                let granted = action.clone();
                net.ask([victim.get()], &granted);
            }
        }
        assert!(net.run_until(100, |net| net.all_at(1)), "seed {seed}");
        // Whoever had said something else after a restart would have been seen to contradict itself.
        assert!(net.nodes.values().all(|node| node.blamed.is_empty()), "seed {seed}");
    }
}

/// Takes away what a node has on its disk, and starts it as one that knows that.
fn lose(net: &mut Net, number: u16) {
    let disk = &mut net.nodes.get_mut(&node(number)).unwrap().disk;
    disk.entries.clear();
    disk.said.clear();
    disk.lacks = true;
    net.start(node(number));
}

fn toggle(net: &mut Net, generation: u64, running: &[u16]) -> bool {
    let state = if generation % 2 == 1 { KeyState::Disabled } else { KeyState::Active };
    net.ask(running.to_vec(), &set("a", None, state, generation));
    net.run_until(200, |net| net.all_at(2 + generation))
}

fn signed(net: &Net, number: u16, height: usize) -> bool {
    let certificate = &net.nodes[&node(2)].disk.entries[height - 1].certificate;
    certificate.signatures().keys().any(|party| party.get() == number)
}

#[test]
fn who_lost_its_store_votes_again_two_heights_later() {
    // Five are a quorum of seven of which two may lie. Node 1 claims a height that nobody has, which must not keep node 7 from voting for ever.
    let mut net = Net::new(7, 3, 9);
    let claim = [&[1_u8, 1][..], &u64::MAX.to_be_bytes(), &[0; 9]].concat();
    net.liars.insert(node(1), Box::new(move |_, _, _| vec![claim.clone()]));
    let all = [2, 3, 4, 5, 6, 7];
    net.ask(all, &create("a", 1, 2, &[2, 3, 4]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    lose(&mut net, 7);
    assert!(net.run_until(60, |net| net.all_at(1)));
    // Its peers hear what it has drawn at its start, and tell their heights with that.
    net.run_until(20, |_| false);
    net.ask(all, &activated(1, 2, 3, 7));
    assert!(net.run_until(200, |net| net.all_at(2)));
    assert!(toggle(&mut net, 1, &all));
    // It may have spoken at height 2 before.
    assert!(!signed(&net, 7, 2));
    // From now on it takes node 7 for a quorum.
    net.stop(node(6));
    assert!(toggle(&mut net, 2, &[2, 3, 4, 5, 7]));
    assert!(signed(&net, 7, 4));
    assert!(net.honest().all(|(_, node)| node.blamed.is_empty()));
}

#[test]
fn without_a_quorum_of_others_who_lost_its_store_does_not_vote() {
    // Of three, all are a quorum: nothing is decided any more without the memory of one of them.
    let mut net = Net::new(3, 2, 10);
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    lose(&mut net, 3);
    net.ask_all(&activated(1, 2, 3, 7));
    assert!(!net.run_until(200, |net| net.all_at(2)));
    assert!(net.all_at(1));
}
