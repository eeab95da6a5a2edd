//! More adversaries, larger groups, clocks apart.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rand_core::Rng;
use theta_agreement::{Ballot, VoteKind};
use theta_ledger::{Digest, Entry, LedgerId};
use theta_names::codec::{Reader, Writer};

use crate::liars::{Votes, read_votes, sign, write_votes};
use crate::net::{Liar, Net, node};
use crate::runs::{forget, heal, liar, stir};

/// Shows each vote to some, drawn anew for each ballot.
fn fickle(percent: u64) -> Liar {
    let mut shown: BTreeMap<(u16, u64, Ballot), bool> = BTreeMap::new();
    Box::new(move |to, bytes, rng| {
        let Some(Votes { height, votes }) = read_votes(&bytes) else { return vec![bytes] };
        let votes: Vec<_> = votes
            .into_iter()
            .filter(|(ballot, _, _)| {
                *shown.entry((to.get(), height, *ballot)).or_insert_with(|| rng.next_u64() % 100 < percent)
            })
            .collect();
        if votes.is_empty() { Vec::new() } else { vec![write_votes(&Votes { height, votes })] }
    })
}

/// Never precommits.
fn reluctant() -> Liar {
    Box::new(move |_, bytes, _| {
        let Some(Votes { height, votes }) = read_votes(&bytes) else { return vec![bytes] };
        let votes: Vec<_> = votes.into_iter().filter(|(ballot, _, _)| ballot.kind != VoteKind::Precommit).collect();
        vec![write_votes(&Votes { height, votes })]
    })
}

/// Says again what it said before, whenever.
fn replaying() -> Liar {
    let mut old: Vec<Vec<u8>> = Vec::new();
    Box::new(move |_, bytes, rng| {
        old.push(bytes.clone());
        let len = u64::try_from(old.len()).unwrap();
        let mut out = vec![bytes];
        for _ in 0..rng.next_u64() % 3 {
            out.push(old[usize::try_from(rng.next_u64() % len).unwrap()].clone());
        }
        if old.len() > 400 {
            old.remove(0);
        }
        out
    })
}

/// Lies about heights.
fn boastful() -> Liar {
    Box::new(move |_, bytes, rng| {
        let height = match rng.next_u64() % 3 {
            0 => u64::MAX,
            1 => 0,
            _ => rng.next_u64() % 12,
        };
        let status = [&[1_u8, 1][..], &height.to_be_bytes()].concat();
        let want = [&[1_u8, 4][..], &height.to_be_bytes()].concat();
        vec![status, bytes, want]
    })
}

/// Proposes late: holds back its proposals for some messages.
fn late() -> Liar {
    let mut held: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    Box::new(move |to, bytes, rng| {
        let proposal = read_votes(&bytes).is_some_and(|v| v.votes.iter().any(|(b, _, _)| b.kind == VoteKind::Proposal));
        let held = held.entry(to.get()).or_default();
        if proposal {
            held.push(bytes);
            return Vec::new();
        }
        let mut out = vec![bytes];
        if rng.next_u64() % 4 == 0 {
            out.append(held);
        }
        out
    })
}

/// Proposes without the polka, for a time of its own; votes nil to some.
fn stripping(ledger: LedgerId, author: u16) -> Liar {
    let mut heads: BTreeMap<u64, Digest> = BTreeMap::new();
    let mut chosen: BTreeMap<(u16, u64, Ballot), bool> = BTreeMap::new();
    Box::new(move |to, bytes, rng| {
        let Some(mut votes) = read_votes(&bytes) else { return vec![bytes] };
        for (ballot, body, signature) in &mut votes.votes {
            if ballot.kind == VoteKind::Proposal {
                let mut reader = Reader::new(body);
                let value = reader.bytes().unwrap().to_vec();
                let mut entry = Entry::decode(&value).unwrap();
                heads.insert(votes.height, entry.previous);
                entry.time += 500;
                *body = Writer::default().bytes(&entry.encode()).finish();
                *signature = sign(&ledger, (votes.height, &entry.previous), author, *ballot, body);
            } else if let Some(head) = heads.get(&votes.height)
                && *chosen.entry((to.get(), votes.height, *ballot)).or_insert_with(|| rng.next_u64() % 2 == 0)
            {
                body.clear();
                *signature = sign(&ledger, (votes.height, head), author, *ballot, body);
            }
        }
        vec![write_votes(&votes)]
    })
}

fn any(net: &mut Net, number: u16) -> Liar {
    match net.below(10) {
        0 | 1 => fickle(30),
        2 => fickle(60),
        3 => reluctant(),
        4 => replaying(),
        5 => boastful(),
        6 => late(),
        7 => stripping(net.genesis.id(), number),
        _ => liar(net, number),
    }
}

fn run(seed: u64) {
    let (n, k) = [(4, 2), (5, 2), (7, 3), (8, 3), (10, 4), (6, 2), (3, 1), (4, 2)][usize::try_from(seed % 8).unwrap()];
    let mut net = Net::new(n, k, seed);
    for number in 1..=n {
        let off = i64::try_from(net.below(400)).unwrap() - 200;
        net.skew.insert(node(number), off);
    }
    let mut forgetful = None;
    for at in 0..k - 1 {
        let number = 1 + u16::try_from((seed / 8 + u64::from(at) * 3) % u64::from(n)).unwrap();
        if at == 0 && seed / 8 % 3 == 1 {
            forgetful = Some(number);
            continue;
        }
        let kind = any(&mut net, number);
        net.liars.insert(node(number), kind);
    }
    let mut asked = 0;
    let when = net.below(60);
    for step in 0..80 {
        stir(&mut net, n, &mut asked);
        if let Some(number) = forgetful.filter(|_| step == when) {
            forget(&mut net, number);
        }
    }
    heal(&mut net, n, seed);
    for (id, honest) in net.honest() {
        assert!(
            honest.blamed.keys().all(|culprit| net.liars.contains_key(culprit)),
            "seed {seed}: {id:?}: {:?}",
            honest.blamed
        );
    }
}

#[test]
fn chaos() {
    let number = |name: &str, or: u64| std::env::var(name).ok().map_or(or, |seeds| seeds.parse().unwrap());
    let (first, seeds) = (number("THETA_LEDGER_FIRST", 0), number("THETA_LEDGER_SEEDS", 100));
    let mut failed = Vec::new();
    for seed in first..first + seeds {
        if let Err(error) = catch_unwind(AssertUnwindSafe(|| run(seed))) {
            let text = error.downcast_ref::<String>().cloned().unwrap_or_default();
            failed.push((seed, text.lines().next().unwrap_or_default().to_owned()));
        }
    }
    assert!(failed.is_empty(), "{} of {seeds} failed: {:?}", failed.len(), &failed[..failed.len().min(10)]);
}
