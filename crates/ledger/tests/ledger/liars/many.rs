//! Among more than twelve, a few gather the votes: fewer messages, and nobody depends on them.

use theta_agreement::{Ballot, VoteKind};
use theta_ledger::{Input, ReplicaOffence};
use theta_names::codec::Writer;

use crate::liars::{Votes, confiding, garbled, sign, silent, two_faced, write_votes};
use crate::net::{Net, node};
use crate::runs::troubled;
use crate::states::{activated, create};

/// How many seeds are tried, unless `THETA_LEDGER_SEEDS` says otherwise.
const SEEDS: u64 = 12;

fn holders(n: u16) -> Vec<u16> {
    (1..=n).collect()
}

#[test]
fn votes_are_gathered() {
    // Three tables of all to all would be 3 n (n - 1) letters for each entry. Which members gather follows from the entries before, and with them by how much less it is.
    for (n, most) in [(13, 300), (31, 900), (64, 1700)] {
        let mut net = Net::new(n, n.div_ceil(3), u64::from(n));
        net.tick();
        for (height, action) in [(1, create("a", 1, 1, &holders(n))), (2, activated(1, 1, n, 5))] {
            let before = net.letters;
            net.grant(1..=n, &action);
            net.ask(1..=n, &action);
            assert!(net.run_until(3, |net| net.all_at(height)), "{n} nodes, height {height}");
            let sent = net.letters - before;
            assert!(sent <= most * usize::from(4 - u16::try_from(height).unwrap()), "{n} nodes sent {sent}");
        }
    }
}

/// Whoever gathers the votes of the first views lies, in each of the ways that there are: each view that they spoil takes some ticks more.
#[test]
fn collectors_that_lie_keep_nobody() {
    let (n, k) = (16, 6);
    for seed in 0..24_u64 {
        let mut net = Net::new(n, k, seed);
        // The leader of the first view is honest, for all others to have something to vote for; the next ones may not be.
        let first = [3, 6, 9, 12, 15].map(|number| u16::try_from((number + seed) % 16).unwrap() + 1);
        for number in first {
            let kind = match seed % 4 {
                0 => silent(),
                1 => confiding(1 + (number + 1) % n),
                2 => garbled(),
                _ => two_faced(net.genesis.id(), number),
            };
            net.liars.insert(node(number), kind);
        }
        net.tick();
        net.ask_all(&create("a", 1, 6, &holders(n)));
        assert!(net.run_until(200, |net| net.all_at(1)), "seed {seed}");
        net.ask_all(&activated(1, 6, n, 5));
        assert!(net.run_until(200, |net| net.all_at(2)), "seed {seed}");
        for (id, honest) in net.honest() {
            assert!(honest.blamed.keys().all(|culprit| net.liars.contains_key(culprit)), "seed {seed}: {id:?}");
        }
    }
}

/// What follows from what members have, they come to at different times. Those who gather votes tell the leader at once, for the others' time runs.
#[test]
fn a_leader_that_would_come_to_it_late_is_told() {
    let n = 31;
    let mut net = Net::new(n, 11, 8);
    net.delay = 0;
    net.tick();
    net.ask_all(&create("a", 1, 11, &holders(n)));
    assert!(net.run_until(1, |net| net.all_at(1)));
    let ended = activated(1, 11, n, 5);
    net.grant(1..=n, &ended);
    // The leader of view v at height h is at place h + v.
    let leader = node(3);
    for id in (1..=n).map(node).filter(|id| *id != leader) {
        net.feed(id, &|replica, disk| replica.handle(Input::Expect(ended.clone()), disk));
    }
    assert!(net.run_until(0, |net| net.all_at(2)), "it takes a tick");
}

/// What waits is told to those who propose next. If these are gone, collectors tell everybody, so that time runs for all.
#[test]
fn leaders_that_are_gone_cost_some_ticks() {
    let n = 31;
    for gone in 1..=4 {
        let mut net = Net::new(n, 11, u64::from(gone));
        // The leader of view v at height h is at place h + v.
        (0..gone).for_each(|view| net.stop(node(2 + view)));
        net.tick();
        net.ask_all(&create("a", 1, 11, &holders(n)));
        // Later leaders are waited for longer.
        let most = (12 + 2 * u32::from(gone)) * u32::from(gone);
        assert!(net.run_until(most, |net| net.all_at(1)), "{gone} gone");
        println!("{gone} gone: {} ticks", net.now - 1_000_001);
    }
}

/// A quorum of one entry's votes cannot be passed off as another's, nor one of fewer as a quorum; who shows it is named.
#[test]
fn false_quorums_are_named_and_change_nothing() {
    let n = 13;
    for cut in [false, true] {
        let mut net = Net::new(n, 5, 3);
        net.tick();
        net.ask_all(&create("a", 1, 5, &holders(n)));
        assert!(net.run_until(6, |net| net.all_at(1)));
        let certificate = net.nodes[&node(1)].disk.entries[0].certificate.clone();
        let certificate = if cut {
            let some = certificate.signatures().iter().take(4).map(|(party, signature)| (*party, *signature));
            let prevotes = Ballot::new(VoteKind::Prevote, 0);
            theta_agreement::VoteCertificate::new(prevotes, *certificate.digest(), some.collect())
        } else {
            certificate
        };
        let bytes = Writer::new(1).u8(7).u64(2).bytes(&certificate.encode()).finish();
        net.send(node(2), node(1), bytes);
        net.deliver();
        let blamed = &net.nodes[&node(1)].blamed;
        assert_eq!(blamed.get(&node(2)), Some(&vec![ReplicaOffence::FalsePrevotes]), "{cut}");
        assert!(net.all_at(1));
        // The others go on, and the one that was shown it with them.
        net.ask_all(&activated(1, 5, n, 5));
        assert!(net.run_until(60, |net| net.all_at(2)));
    }
}

/// One that signs two votes is named by whoever meets the second one in a quorum that somebody shows.
#[test]
fn who_votes_twice_is_named_by_what_collectors_show() {
    let n = 13;
    let mut net = Net::new(n, 5, 5);
    let (id, away) = (net.genesis.id(), node(13));
    net.stop(away);
    net.tick();
    net.ask(1..=12, &create("a", 1, 5, &holders(n)));
    assert!(net.run_until(20, |net| net.all_at(1)));
    let certificate = net.nodes[&node(1)].disk.entries[0].certificate.clone();
    let author = certificate.signatures().keys().next().unwrap().node();
    let other = [7; 32];
    let signature = sign(&id, (1, id.as_bytes()), author.get(), certificate.ballot(), &other);
    let votes = vec![(certificate.ballot(), other.to_vec(), signature)];
    net.start(away);
    net.delay = 0;
    net.send(author, away, write_votes(&Votes { height: 1, votes }));
    net.deliver();
    net.send(author, away, Writer::new(1).u8(7).u64(1).bytes(&certificate.encode()).finish());
    net.deliver();
    let named = net.nodes[&away].blamed.get(&author);
    assert_eq!(named, Some(&vec![ReplicaOffence::Equivocation(1)]));
    assert!(net.run_until(20, |net| net.all_at(1)), "and it reads what was decided");
}

/// A node that was away when everything was said hears of it from some in turn, and asks few: which ones, and how many answer before it
/// has all, is chance. Nobody else has to send what half of the group could.
#[test]
fn who_was_away_among_many_asks_a_few() {
    const SEEDS: usize = 20;
    let n = 31;
    let sent = (0..).take(SEEDS).map(|seed| entries_for_one_who_was_away(n, seed)).collect::<Vec<_>>();
    assert!(sent.iter().sum::<usize>() <= 6 * SEEDS && sent.iter().all(|sent| *sent <= 15), "{sent:?}");
}

/// How many entries the others send to a node that missed two.
fn entries_for_one_who_was_away(n: u16, seed: u64) -> usize {
    let mut net = Net::new(n, 11, seed);
    net.stop(node(7));
    net.tick();
    net.ask_all(&create("a", 1, 3, &holders(n)));
    assert!(net.run_until(60, |net| net.all_at(1)));
    net.ask_all(&activated(1, 3, n, 5));
    assert!(net.run_until(60, |net| net.all_at(2)));
    net.start(node(7));
    let before = net.entries;
    for other in 1..=n {
        net.feed(node(other), &|replica, disk| replica.handle(Input::Connected(node(7)), disk));
    }
    assert!(net.run_until(6, |net| net.all_at(2)), "seed {seed}");
    net.entries - before
}

#[test]
fn nobody_among_many_disagrees_and_everything_ends() {
    let seeds = std::env::var("THETA_LEDGER_SEEDS").ok().map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let first = std::env::var("THETA_LEDGER_FIRST").ok().map_or(0, |seed| seed.parse().unwrap());
    for seed in first..first + seeds {
        let (n, k) = [(13, 5), (16, 6)][usize::try_from(seed % 2).unwrap()];
        troubled(seed, (n, k), seed / 2 % 2 == 1);
    }
    println!("{seeds} seeds");
}
