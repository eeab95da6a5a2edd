//! Up to t members do what they like: nobody honest disagrees, everything ends, and who can be named is.

mod chaos;
mod many;
mod schedules;

use std::collections::BTreeMap;

use theta_agreement::{Ballot, MemberKeys, VoteKind};
use theta_groups::Transcript;
use theta_ledger::{Digest, Entry, LedgerId, ReplicaOffence};
use theta_names::NodeId;
use theta_names::codec::{Reader, Writer};

use crate::net::{Liar, Net, keys, node};
use crate::states::{activated, certified, create};

/// A message with votes, taken apart.
pub(crate) struct Votes {
    pub(crate) height: u64,
    pub(crate) votes: Vec<(Ballot, Vec<u8>, [u8; 64])>,
}

pub(crate) fn read_votes(bytes: &[u8]) -> Option<Votes> {
    let mut reader = Reader::new(bytes);
    if (reader.u8().ok()?, reader.u8().ok()?) != (1, 2) {
        return None;
    }
    let height = reader.u64().ok()?;
    if reader.flag().ok()? {
        reader.bytes().ok()?;
        reader.bytes().ok()?;
    }
    let mut votes = Vec::new();
    while !reader.is_empty() {
        let ballot = Ballot::read(&mut reader).ok()?;
        votes.push((ballot, reader.bytes().ok()?.to_vec(), reader.array().ok()?));
    }
    Some(Votes { height, votes })
}

pub(crate) fn write_votes(votes: &Votes) -> Vec<u8> {
    let writer = Writer::new(1).u8(2).u64(votes.height).u8(0);
    votes
        .votes
        .iter()
        .fold(writer, |writer, (ballot, body, signature)| ballot.write(writer).bytes(body).raw(signature))
        .finish()
}

pub(crate) fn sign(
    ledger: &LedgerId,
    (height, previous): (u64, &Digest),
    author: u16,
    ballot: Ballot,
    body: &[u8],
) -> [u8; 64] {
    sign_with(&keys(author), ledger, (height, previous), ballot, body)
}

/// The same with the key of any machine.
pub(crate) fn sign_with(
    keys: &MemberKeys,
    ledger: &LedgerId,
    (height, previous): (u64, &Digest),
    ballot: Ballot,
    body: &[u8],
) -> [u8; 64] {
    let message = Transcript::new("theta/ledger/vote/v1")
        .with("ledger", ledger.as_bytes())
        .with("height", &height.to_be_bytes())
        .with("previous", previous)
        .with("author", &keys.party().get().to_be_bytes())
        .with("ballot", &ballot.write(Writer::default()).finish())
        .with("body", body);
    keys.sign(&message)
}

/// Tells nodes of odd numbers one thing and the others another: in whatever it proposes, and in every vote.
pub(crate) fn two_faced(ledger: LedgerId, author: u16) -> Liar {
    let mut others: BTreeMap<Digest, (Digest, Digest)> = BTreeMap::new();
    Box::new(move |to: NodeId, bytes, _| {
        let Some(mut votes) = read_votes(&bytes) else { return vec![bytes] };
        for (ballot, body, signature) in &mut votes.votes {
            let other = if ballot.kind == VoteKind::Proposal {
                let mut reader = Reader::new(body);
                let value = reader.bytes().unwrap().to_vec();
                let mut entry = Entry::decode(&value).unwrap();
                let digest = entry.digest(&ledger);
                entry.time += 1;
                others.insert(digest, (entry.digest(&ledger), entry.previous));
                Some((Writer::default().bytes(&entry.encode()).finish(), entry.previous))
            } else {
                let digest = Digest::try_from(body.as_slice()).ok();
                digest.and_then(|digest| others.get(&digest)).map(|(other, previous)| (other.to_vec(), *previous))
            };
            if let Some((other, previous)) = other
                && to.get().is_multiple_of(2)
            {
                *signature = sign(&ledger, (votes.height, &previous), author, *ballot, &other);
                *body = other;
            }
        }
        vec![write_votes(&votes)]
    })
}

/// Shows its proposals and votes to one node alone.
pub(crate) fn confiding(to: u16) -> Liar {
    Box::new(move |other, bytes, _| if other.get() == to { vec![bytes] } else { Vec::new() })
}

/// Says nothing.
pub(crate) fn silent() -> Liar {
    Box::new(|_, _, _| Vec::new())
}

/// Sends what is almost right.
pub(crate) fn garbled() -> Liar {
    Box::new(|_, mut bytes, rng| {
        use rand_core::Rng;
        let at = usize::try_from(rng.next_u64()).unwrap_or(0) % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1 << (rng.next_u64() % 8);
        }
        vec![bytes]
    })
}

#[test]
fn a_leader_of_two_faces_divides_nobody_and_is_named_by_whoever_sees_both() {
    let mut seen = 0;
    for seed in 0..20 {
        let mut net = Net::new(4, 2, seed);
        // The leader of height 1 is member number 1 of 0 to 3: node 2.
        let ledger = net.genesis.id();
        net.liars.insert(node(2), two_faced(ledger, 2));
        net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
        assert!(net.run_until(100, |net| net.all_at(1)), "seed {seed}");
        // What it told one of them, another passes on as it stands: now each has both.
        let letters = [3, 4].map(|to| {
            let body = [to; 32];
            let ballot = Ballot::new(VoteKind::Prevote, 0);
            let head = net.nodes[&node(1)].disk.entries[0].entry.digest(&ledger);
            let signature = sign(&ledger, (2, &head), 2, ballot, &body);
            write_votes(&Votes { height: 2, votes: vec![(ballot, body.to_vec(), signature)] })
        });
        for letter in letters {
            net.send(node(2), node(1), letter);
        }
        net.tick();
        net.tick();
        let blamed = net.nodes[&node(1)].blamed.get(&node(2)).cloned().unwrap_or_default();
        assert!(blamed.contains(&ReplicaOffence::Equivocation(2)), "{blamed:?}");
        seen += 1;
    }
    assert_eq!(seen, 20);
}

#[test]
fn false_signatures_and_false_entries_are_their_senders() {
    let mut net = Net::new(4, 2, 5);
    let ledger = net.genesis.id();
    let ballot = Ballot::new(VoteKind::Prevote, 0);
    let forged = write_votes(&Votes { height: 1, votes: vec![(ballot, vec![1; 32], [7; 64])] });
    net.send(node(2), node(1), forged);
    // Two votes where three are a quorum.
    let state = net.nodes[&node(1)].replica.as_ref().unwrap().state().clone();
    let few = certified(&state, create("a", 1, 2, &[1, 2, 3]), &[2, 3]);
    let message = [&[1_u8, 3][..], &few.encode()].concat();
    net.send(node(3), node(1), message);
    net.tick();
    net.tick();
    let blamed = &net.nodes[&node(1)].blamed;
    assert_eq!(blamed[&node(2)], [ReplicaOffence::FalseSignature]);
    assert!(matches!(blamed[&node(3)][..], [ReplicaOffence::FalseEntry(_)]));
    assert!(net.all_at(0));
    // One offence costs its author a height, and nobody else anything.
    net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
    assert!(net.run_until(60, |net| net.all_at(1)));
    assert_eq!(ledger, net.genesis.id());
}

#[test]
fn t_liars_of_any_kind_stop_nothing() {
    for seed in 0..40 {
        let mut net = Net::new(7, 3, seed);
        let ledger = net.genesis.id();
        let liars = [1 + u16::try_from(seed % 7).unwrap(), 1 + u16::try_from((seed + 3) % 7).unwrap()];
        for (at, liar) in liars.into_iter().enumerate() {
            let kind: Liar = match (seed + u64::try_from(at).unwrap()) % 4 {
                0 => two_faced(ledger, liar),
                1 => confiding(1 + liar % 7),
                2 => silent(),
                _ => garbled(),
            };
            net.liars.insert(node(liar), kind);
        }
        net.ask_all(&create("a", 1, 2, &[1, 2, 3]));
        assert!(net.run_until(200, |net| net.all_at(1)), "seed {seed}");
        net.ask_all(&activated(1, 2, 3, 5));
        assert!(net.run_until(200, |net| net.all_at(2)), "seed {seed}");
    }
}

#[test]
fn prevotes_that_nobody_cast_lock_nobody() {
    let mut net = Net::new(4, 2, 6);
    net.tick();
    let state = net.nodes[&node(1)].replica.as_ref().unwrap().state().clone();
    let entry = state.next_entry(create("a", 1, 2, &[1, 2, 3]), Vec::new(), net.now);
    let (digest, ballot) = (entry.digest(state.id()), Ballot::new(VoteKind::Prevote, 0));
    let votes = [2, 3, 4].map(|number| (keys(number).party(), [7; 64])).into_iter().collect();
    let polka = theta_agreement::VoteCertificate::new(ballot, digest, votes);
    let message = Writer::new(1).u8(2).u64(1).u8(1).bytes(&polka.encode()).bytes(&entry.encode()).finish();
    net.send(node(2), node(1), message);
    net.tick();
    net.tick();
    let blamed = &net.nodes[&node(1)].blamed[&node(2)];
    assert!(matches!(blamed[..], [ReplicaOffence::FalsePrevotes]), "{blamed:?}");
    assert!(net.all_at(0));
}
