//! Triples among several parties, and a cheat in each message.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{P256, P256Scalar, Ristretto255, RistrettoScalar, Scalar};
use theta_names::ShareIndex;

use super::{Asked, Fault, Mesh, Messages, Parties, Party, Triples};
use crate::{Misbehaviour, Misuse};

type All<T> = BTreeMap<ShareIndex, T>;

fn index(number: u16) -> ShareIndex {
    ShareIndex::try_from(number).unwrap()
}

/// Hands messages over, after `tamper` has seen those from one party to another.
fn deliver(sent: &All<Messages>, tamper: &mut dyn FnMut(u16, u16, &mut Vec<u8>)) -> All<Messages> {
    let mut received: All<Messages> = sent.keys().map(|party| (*party, Messages::new())).collect();
    for (from, messages) in sent {
        for (to, bytes) in messages {
            let mut bytes = bytes.clone();
            tamper(from.get(), to.get(), &mut bytes);
            received.get_mut(to).unwrap().insert(*from, bytes);
        }
    }
    received
}

/// A round of all parties; the first failure ends it.
fn round<T, U>(
    states: All<T>,
    received: &All<Messages>,
    step: impl Fn(T, &Messages) -> Result<(U, Messages), Fault>,
) -> Result<(All<U>, All<Messages>), (ShareIndex, Fault)> {
    let (mut next, mut sent) = (All::new(), All::new());
    for (party, state) in states {
        let (state, messages) = step(state, &received[&party]).map_err(|fault| (party, fault))?;
        next.insert(party, state);
        sent.insert(party, messages);
    }
    Ok((next, sent))
}

/// What changes messages: round, sender, receiver, bytes. Set-up rounds are numbered from 101.
type Tamper<'a> = &'a mut dyn FnMut(u32, u16, u16, &mut Vec<u8>);

fn set_up(n: u16, seed: u64, tamper: Tamper<'_>) -> Result<All<Party<P256Scalar>>, (ShareIndex, Fault)> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let everybody: BTreeSet<ShareIndex> = (1..=n).map(index).collect();
    let (mut states, mut sent): (All<Asked<P256>>, _) = (All::new(), All::new());
    for me in &everybody {
        let others = everybody.iter().copied().filter(|party| party != me).collect();
        let (state, messages) = Mesh::<P256>::begin(Parties::new([8; 32], *me, others).unwrap(), &mut rng).unwrap();
        states.insert(*me, state);
        sent.insert(*me, messages);
    }
    let rng = core::cell::RefCell::new(rng);
    let received = deliver(&sent, &mut |from, to, bytes| tamper(101, from, to, bytes));
    let (states, sent) = round(states, &received, |state, messages| state.handle(messages, &mut *rng.borrow_mut()))?;
    let received = deliver(&sent, &mut |from, to, bytes| tamper(102, from, to, bytes));
    let (states, sent) = round(states, &received, |state, messages| state.handle(messages))?;
    let received = deliver(&sent, &mut |from, to, bytes| tamper(103, from, to, bytes));
    let (parties, _) = round(states, &received, |state, messages| Ok((state.handle(messages)?, Messages::new())))?;
    Ok(parties)
}

type Made = (All<Party<P256Scalar>>, All<Triples<P256Scalar>>);

fn triples(
    parties: All<Party<P256Scalar>>,
    n: usize,
    seed: u64,
    tamper: Tamper<'_>,
) -> Result<Made, (ShareIndex, Fault)> {
    let rng = core::cell::RefCell::new(ChaCha20Rng::seed_from_u64(seed));
    let mut count = 0;
    let mut deliver = |sent: &All<Messages>| {
        count += 1;
        deliver(sent, &mut |from, to, bytes| tamper(count, from, to, bytes))
    };
    let nothing: All<Messages> = parties.keys().map(|party| (*party, Messages::new())).collect();
    let rng = || rng.borrow_mut();
    let (states, sent) = round(parties, &nothing, |state, _| Ok(state.triples(n, &mut *rng())?))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages, &mut *rng()))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages, &mut *rng()))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages, &mut *rng()))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages, &mut *rng()))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages))?;
    let received = deliver(&sent);
    let (mut parties, mut made) = (All::new(), All::new());
    for (me, state) in states {
        let (party, triples) = state.finish(&received[&me]).map_err(|fault| (me, fault))?;
        parties.insert(me, party);
        made.insert(me, triples);
    }
    Ok((parties, made))
}

fn honest(_: u32, _: u16, _: u16, _: &mut Vec<u8>) {}

#[test]
fn triples_are_products_with_macs() {
    for n in [2, 3, 4] {
        let mut parties = set_up(n, u64::from(n), &mut honest).unwrap();
        let delta = parties.values().map(|party| *party.key().expose()).sum::<P256Scalar>();
        for (batch, count) in [3, 1].into_iter().enumerate() {
            let (next, made) = triples(parties, count, batch as u64, &mut honest).unwrap();
            parties = next;
            for place in 0..count {
                let [a, b, c] = [0, 1, 2].map(|which| {
                    let shares = made.values().map(|triples| triples.expose()[place][which]);
                    let (value, mac) = shares.fold((P256Scalar::ZERO, P256Scalar::ZERO), |(value, mac), share| {
                        (value + share.value, mac + share.mac)
                    });
                    assert_eq!(mac, value * delta, "the MAC of value {which} of triple {place}, {n} parties");
                    value
                });
                assert_eq!(a * b, c, "triple {place}, {n} parties");
                assert_ne!(a, P256Scalar::ZERO);
            }
        }
    }
}

/// What two honest parties say when party 1 changes its message of a round to party 2, from `place` of the message on.
fn changed(n: u16, in_round: u32, place: usize, flip: &[u8]) -> Option<(ShareIndex, Fault)> {
    let mut tamper = |round, from, to, bytes: &mut Vec<u8>| {
        if (round, from, to) == (in_round, 1, 2) {
            bytes[place..].iter_mut().zip(flip).for_each(|(byte, flip)| *byte ^= flip);
        }
    };
    let parties = match set_up(n, 1, &mut tamper) {
        Ok(parties) => parties,
        Err(fault) => return Some(fault),
    };
    triples(parties, 2, 1, &mut tamper).err()
}

fn by_party_one(misbehaviour: Misbehaviour) -> Option<(ShareIndex, Fault)> {
    Some((index(2), Fault::Party { party: index(1), misbehaviour }))
}

#[test]
fn what_one_party_does_to_another_names_it() {
    assert_eq!(changed(2, 1, 40, &[1]), by_party_one(Misbehaviour::Correlation));
    let scalar = |index| by_party_one(Misbehaviour::Scalar { index });
    // After the commitment, 32 bytes a scalar; all ones are no scalar.
    let ones = |place: usize| {
        let mut tamper = |round, from, to, bytes: &mut Vec<u8>| {
            if (round, from, to) == (place as u32, 1, 2) {
                bytes[32 + 64..32 + 96].fill(0xff);
            }
        };
        triples(set_up(2, 1, &mut honest).unwrap(), 2, 1, &mut tamper).err()
    };
    assert_eq!(ones(2), scalar(2));
    assert_eq!(ones(4), scalar(2));
    let opened = changed(2, 6, 32 + 32, &[0xff; 32]);
    assert!(matches!(opened, Some((_, Fault::Party { .. } | Fault::Disagreement(_) | Fault::Macs))), "{opened:?}");
    assert_eq!(changed(2, 3, 32, &[1]), Some((index(2), Fault::Commitment(index(1)))));
    assert_eq!(changed(2, 5, 63, &[1]), Some((index(2), Fault::Commitment(index(1)))));
    assert_eq!(changed(2, 7, 32, &[1]), Some((index(2), Fault::Commitment(index(1)))));
    assert_eq!(changed(2, 9, 70, &[1]), Some((index(2), Fault::Commitment(index(1)))));
    assert!(matches!(changed(2, 101, 0, &[0xff]), Some((_, Fault::Party { .. }))));
    assert!(matches!(changed(2, 102, 0, &[0xff]), Some((_, Fault::Party { .. }))));
    // The check of the last tree.
    assert_eq!(changed(2, 103, 64 * (32 + 6 * 16) / 64 - 1, &[1]).map(|(party, _)| party), Some(index(2)));
}

/// A false correction of a product shifts c, or nothing, by the bit that it belongs to; a false correction of COPEe shifts a MAC
/// likewise. Both fail the check, or are harmless.
#[test]
fn false_corrections_fail_the_check_or_change_nothing() {
    for (in_round, bytes) in [(2, 31), (4, 31)] {
        let (mut seen, mut harmless) = (0, 0);
        for scalar in 0..8 {
            // The lowest bit of a scalar; its correction stays below q.
            match changed(2, in_round, 32 + 32 * (2 * scalar) + bytes, &[1]) {
                Some((_, Fault::Macs)) => seen += 1,
                None => harmless += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(seen > 0, "round {in_round}: {harmless} harmless");
    }
}

#[test]
fn a_false_opening_fails_the_check() {
    // To everybody alike: y, rho, and the last value.
    for place in [0, 1, 2] {
        let mut tamper = |round, from, _, bytes: &mut Vec<u8>| {
            if (round, from) == (6, 1) {
                bytes[32 + 32 * place + 31] ^= 1;
            }
        };
        let fault = triples(set_up(3, 2, &mut honest).unwrap(), 2, 1, &mut tamper).err();
        // Party 1 itself, which has not seen what it sent, disagrees; the others come to the check, unless they hear of that first.
        assert!(matches!(fault, Some((_, Fault::Disagreement(_) | Fault::Macs))), "{fault:?}");
    }
}

/// Different messages to different parties, where all should receive the same.
#[test]
fn different_broadcasts_are_seen() {
    for in_round in [2, 4, 6, 8] {
        let fault = changed(3, in_round, 0, &[1]);
        let Some((_, Fault::Disagreement(_))) = fault else { panic!("round {in_round}: {fault:?}") };
    }
}

#[test]
fn lengths_and_parties_must_fit() {
    for in_round in (101..=103).chain(1..=9) {
        let mut tamper = |round, from, to, bytes: &mut Vec<u8>| {
            if (round, from, to) == (in_round, 1, 2) {
                bytes.push(0);
            }
        };
        let fault = match set_up(2, 1, &mut tamper) {
            Ok(parties) => triples(parties, 2, 1, &mut tamper).err(),
            Err(fault) => Some(fault),
        };
        let Some((_, Fault::Party { party, misbehaviour: Misbehaviour::Length { .. } })) = fault else {
            panic!("round {in_round}: {fault:?}")
        };
        assert_eq!(party, index(1));
    }
    let parties = set_up(2, 1, &mut honest).unwrap();
    let (_, party) = parties.into_iter().next().unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let (state, _) = party.triples(1, &mut rng).unwrap();
    assert_eq!(state.handle(&Messages::new(), &mut rng).err(), Some(Fault::Ours(Misuse::Parties)));
    let alone = Parties::new([1; 32], index(1), BTreeSet::new());
    assert_eq!(alone.err(), Some(Misuse::OneParty));
    assert_eq!(Parties::new([1; 32], index(1), [index(1)].into()).err(), Some(Misuse::OneParty));
}

/// The machines are generic over the group: another one, whose scalars are little-endian.
#[test]
fn another_group_sets_up() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let parties = Parties::new([1; 32], index(1), [index(2)].into()).unwrap();
    let (_, messages) = Mesh::<Ristretto255>::begin(parties, &mut rng).unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!(RistrettoScalar::ENCODED_LEN, 32);
}
