//! Triples among several parties, and a cheat in each message.

use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{P256Scalar, Scalar};
use theta_names::ShareIndex;

use super::{
    Asked, Combining, Extending, Fault, Made, Masked, Mesh, Messages, Parties, Party, Share, Transfers, Triples,
};
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
    Ok(meshed(n, seed, tamper)?.into_iter().map(|(me, (party, _))| (me, party)).collect())
}

/// Parties, and what their set-up leaves to later runs.
type Meshed = All<(Party<P256Scalar>, Option<Transfers>)>;

fn meshed(n: u16, seed: u64, tamper: Tamper<'_>) -> Result<Meshed, (ShareIndex, Fault)> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let everybody: BTreeSet<ShareIndex> = (1..=n).map(index).collect();
    let (mut states, mut sent): (All<Asked<P256Scalar>>, _) = (All::new(), All::new());
    for me in &everybody {
        let others = everybody.iter().copied().filter(|party| party != me).collect();
        let (state, messages) =
            Mesh::<P256Scalar>::begin(Parties::new([8; 32], *me, others).unwrap(), &mut rng).unwrap();
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

/// What a batch comes to: the parties, and what they have; or who found what.
type Outcome<T> = Result<(All<Party<P256Scalar>>, All<T>), (ShareIndex, Fault)>;

/// What a cheat does to its own state.
struct Cheat {
    /// Before round 4: to its summands of c.
    combining: fn(&mut Combining<P256Scalar>),
    /// After round 6: to what it opens, which is also what it remembers.
    opened: fn(&mut Vec<u8>),
}

const NONE: Cheat = Cheat { combining: |_| (), opened: |_| () };

fn triples(parties: All<Party<P256Scalar>>, n: usize, seed: u64, tamper: Tamper<'_>) -> Outcome<Triples<P256Scalar>> {
    triples_with(parties, n, seed, &NONE, tamper)
}

/// Party 1 cheats.
fn triples_with(
    parties: All<Party<P256Scalar>>,
    n: usize,
    seed: u64,
    cheat: &Cheat,
    tamper: Tamper<'_>,
) -> Outcome<Triples<P256Scalar>> {
    let (parties, made) = batch_with(parties, &|party, rng| party.triples(n, rng), seed, cheat, tamper)?;
    let triples = |(me, made)| if let Made::Triples(triples) = made { (me, triples) } else { panic!("no triples") };
    Ok((parties, made.into_iter().map(triples).collect()))
}

/// What a party begins with.
type Begin<'a> = &'a dyn Fn(Party<P256Scalar>, &mut ChaCha20Rng) -> Result<(Extending<P256Scalar>, Messages), Misuse>;

fn batch_with(
    parties: All<Party<P256Scalar>>,
    begin: Begin<'_>,
    seed: u64,
    cheat: &Cheat,
    tamper: Tamper<'_>,
) -> Outcome<Made<P256Scalar>> {
    let rng = core::cell::RefCell::new(ChaCha20Rng::seed_from_u64(seed));
    let mut count = 0;
    let mut deliver = |sent: &All<Messages>| {
        count += 1;
        deliver(sent, &mut |from, to, bytes| tamper(count, from, to, bytes))
    };
    let nothing: All<Messages> = parties.keys().map(|party| (*party, Messages::new())).collect();
    let rng = || rng.borrow_mut();
    let (states, sent) = round(parties, &nothing, |state, _| Ok(begin(state, &mut rng())?))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages, &mut *rng()))?;
    let (mut states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages))?;
    (cheat.combining)(states.get_mut(&index(1)).unwrap());
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages, &mut *rng()))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages))?;
    let (mut states, mut sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages, &mut *rng()))?;
    (cheat.opened)(&mut states.get_mut(&index(1)).unwrap().message);
    sent.get_mut(&index(1)).unwrap().values_mut().for_each(cheat.opened);
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages, &mut *rng()))?;
    let (states, sent) = round(states, &deliver(&sent), |state, messages| state.handle(messages))?;
    let received = deliver(&sent);
    let (mut parties, mut made) = (All::new(), All::new());
    for (me, state) in states {
        let (party, these) = state.finish(&received[&me]).map_err(|fault| (me, fault))?;
        parties.insert(me, party);
        made.insert(me, these);
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

/// A value and its MAC.
fn sum<'a>(shares: impl Iterator<Item = &'a Share<P256Scalar>>) -> (P256Scalar, P256Scalar) {
    shares.fold(Default::default(), |(value, mac), share| (value + share.value, mac + share.mac))
}

type Values = (Vec<Masked<P256Scalar>>, Vec<Share<P256Scalar>>);

fn masked(
    parties: All<Party<P256Scalar>>,
    (n, spare): (usize, usize),
    seed: u64,
    tamper: Tamper<'_>,
) -> Outcome<Values> {
    let (parties, made) = batch_with(parties, &|party, rng| party.masked(n, spare, rng), seed, &NONE, tamper)?;
    let values = |made| match made {
        Made::Masked(masked, spare) => (masked.expose().clone(), spare.expose().clone()),
        Made::Triples(_) => panic!("no masked products"),
    };
    Ok((parties, made.into_iter().map(|(me, made)| (me, values(made))).collect()))
}

/// a, b and c of each, c being the same at all parties, if their MACs are right.
fn opened(made: &All<Values>, delta: P256Scalar) -> Vec<[P256Scalar; 3]> {
    let (count, spares) = made.values().next().map(|(masked, spare)| (masked.len(), spare.len())).unwrap();
    for place in 0..spares {
        let (value, mac) = sum(made.values().map(|(_, spare)| &spare[place]));
        assert_eq!(mac, value * delta, "random value {place}");
    }
    let value = |place: usize| {
        let (a, mac) = sum(made.values().map(|(masked, _)| &masked[place].factor));
        assert_eq!(mac, a * delta, "value {place}");
        let products: BTreeSet<[u8; 32]> = made.values().map(|(it, _)| it[place].product.encode()).collect();
        assert_eq!(products.len(), 1, "all have opened the same");
        let b = made.values().map(|(masked, _)| masked[place].mask).sum();
        [a, b, made.values().next().unwrap().0[place].product]
    };
    (0..count).map(value).collect()
}

#[test]
fn masked_products_are_opened_and_values_have_macs() {
    for n in [2, 3] {
        let mut parties = set_up(n, 40, &mut honest).unwrap();
        let delta = parties.values().map(|party| *party.key().expose()).sum::<P256Scalar>();
        for (batch, shape) in [(3, 2), (1, 0)].into_iter().enumerate() {
            let (next, made) = masked(parties, shape, batch as u64, &mut honest).unwrap();
            parties = next;
            let values = opened(&made, delta);
            assert_eq!(values.len(), shape.0);
            assert!(made.values().all(|(_, spare)| spare.len() == shape.1));
            assert!(values.iter().all(|[a, b, c]| *a * *b == *c && *a != P256Scalar::ZERO));
        }
        // Triples of the same party.
        let (_, made) = triples(parties, 2, 9, &mut honest).unwrap();
        check(&made, 2, delta);
    }
}

/// Nothing here sees another b for some bits of a: c is a b as often as these bits are zero, and otherwise another number. Whoever uses c has to see that.
#[test]
fn a_masked_product_is_false_unless_bits_were_guessed() {
    const RUNS: u32 = 40;
    // The second a has the bits from 256 on.
    for bits in [&[9][..], &[300], &[5, 456]] {
        let mut right = 0;
        for run in 0..RUNS {
            let mut tamper = |round, from, to, bytes: &mut Vec<u8>| {
                if (round, from, to) == (2, 1, 2) {
                    shift(bits, bytes);
                }
            };
            let parties = set_up(2, u64::from(run), &mut honest).unwrap();
            let delta = parties.values().map(|party| *party.key().expose()).sum::<P256Scalar>();
            let (_, made) = masked(parties, (1, 1), u64::from(run), &mut tamper).unwrap();
            let [a, b, c] = opened(&made, delta)[0];
            right += usize::from(a * b == c);
        }
        let probability = 2_f64.powi(-i32::try_from(bits.len()).unwrap());
        let expected = f64::from(RUNS) * probability;
        let bound = 3.0 * (expected * (1.0 - probability)).sqrt();
        assert!(right > 0 && (right as f64 - expected).abs() <= bound, "{bits:?}: {right} of {RUNS} were right");
    }
}

/// Another input for most digits of the MAC key, a false y, and different c to different parties.
#[test]
fn lies_beside_masked_products_are_seen() {
    let fault = |n: u16, lie: fn(u32, u16, u16, &mut Vec<u8>)| {
        masked(set_up(n, 6, &mut honest).unwrap(), (2, 1), 6, &mut { lie }).err().map(|(_, fault)| fault)
    };
    let other_inputs = |round, from, to, bytes: &mut Vec<u8>| {
        if (round, from, to) == (4, 1, 2) {
            // The corrections of a digit are those of 4 values: two a, one random value and the mask.
            shift(&(0..40).map(|digit| 4 * digit).collect::<Vec<_>>(), bytes);
        }
    };
    let other_spare = |round, from, to, bytes: &mut Vec<u8>| {
        if (round, from, to) == (4, 1, 2) {
            shift(&(0..40).map(|digit| 4 * digit + 2).collect::<Vec<_>>(), bytes);
        }
    };
    let other_c = |round, from, to, bytes: &mut Vec<u8>| {
        if (round, from, to) == (6, 1, 2) {
            bytes[95] ^= 1;
        }
    };
    assert_eq!(fault(2, other_inputs), Some(Fault::Macs));
    assert_eq!(fault(2, other_spare), Some(Fault::Macs));
    for n in [2, 3] {
        let false_y = Cheat { opened: |bytes| bytes[63] ^= 1, ..NONE };
        let parties = set_up(n, 6, &mut honest).unwrap();
        let made = batch_with(parties, &|party, rng| party.masked(2, 1, rng), 6, &false_y, &mut honest);
        assert_eq!(made.err().map(|(_, fault)| fault), Some(Fault::Macs), "{n} parties");
    }
    assert!(matches!(fault(3, other_c), Some(Fault::Disagreement(_))));
    let party = set_up(2, 1, &mut honest).unwrap().into_values().next().unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    assert_eq!(party.masked(1, 1025, &mut rng).err(), Some(Misuse::Count { got: 1025, most: 1024 }));
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
    let ones = |place: u32| {
        let mut tamper = |round, from, to, bytes: &mut Vec<u8>| {
            if (round, from, to) == (place, 1, 2) {
                bytes[32 + 64..32 + 96].fill(0xff);
            }
        };
        triples(set_up(2, 1, &mut honest).unwrap(), 2, 1, &mut tamper).err()
    };
    assert_eq!(ones(2), scalar(2));
    assert_eq!(ones(4), scalar(2));
    let opened = |round, from, to, bytes: &mut Vec<u8>| {
        if (round, from, to) == (6, 1, 2) {
            bytes[96..128].fill(0xff);
        }
    };
    let fault = triples(set_up(2, 1, &mut honest).unwrap(), 2, 1, &mut { opened }).err();
    assert_eq!(fault, scalar(2));
    assert_eq!(changed(2, 3, 32, &[1]), Some((index(2), Fault::Commitment(index(1)))));
    assert_eq!(changed(2, 5, 63, &[1]), Some((index(2), Fault::Commitment(index(1)))));
    assert_eq!(changed(2, 7, 32, &[1]), Some((index(2), Fault::Commitment(index(1)))));
    assert_eq!(changed(2, 9, 70, &[1]), Some((index(2), Fault::Commitment(index(1)))));
    assert!(matches!(changed(2, 101, 0, &[0xff]), Some((_, Fault::Party { .. }))));
    assert!(matches!(changed(2, 102, 0, &[0xff]), Some((_, Fault::Party { .. }))));
    // The check of the first tree.
    assert_eq!(changed(2, 103, 8 * 16 - 1, &[1]), by_party_one(Misbehaviour::Trees));
}

/// Adds one to the corrections of some bits of the first product of party 1 with party 2.
fn shift(bits: &[usize], bytes: &mut [u8]) {
    for bit in bits {
        let place = &mut bytes[32 + 32 * bit..][..32];
        place.copy_from_slice(&(P256Scalar::decode(place).unwrap() + P256Scalar::ONE).encode());
    }
}

fn passes(in_round: u32, bits: &[usize], seed: u64) -> bool {
    let mut tamper = |round, from, to, bytes: &mut Vec<u8>| {
        if (round, from, to) == (in_round, 1, 2) {
            shift(bits, bytes);
        }
    };
    let parties = set_up(2, seed, &mut honest).unwrap();
    match triples(parties, 1, seed, &mut tamper) {
        Ok(_) => true,
        Err((_, fault)) => {
            assert_eq!(fault, Fault::Macs);
            false
        }
    }
}

/// Selective failure: a party that uses another b for i bits of the other's a passes if these bits are zero, with probability 2^-i.
#[test]
fn other_factors_for_some_bits_pass_as_often_as_bits_are_guessed() {
    const RUNS: u32 = 40;
    for bits in [&[9][..], &[5, 200]] {
        let passed = (0..RUNS).filter(|run| passes(2, bits, u64::from(*run))).count();
        let probability = 2_f64.powi(-i32::try_from(bits.len()).unwrap());
        let expected = f64::from(RUNS) * probability;
        // Four standard deviations.
        let bound = 4.0 * (expected * (1.0 - probability)).sqrt();
        assert!((passed as f64 - expected).abs() <= bound, "{bits:?}: {passed} of {RUNS} passed");
    }
}

/// Another b for all bits, towards one party only.
#[test]
fn other_factors_for_other_parties_are_seen() {
    for seed in 0..4 {
        assert!(!passes(2, &(0..256).collect::<Vec<_>>(), seed));
    }
}

/// Another input for most digits of the MAC key.
#[test]
fn other_inputs_for_other_digits_are_seen() {
    for seed in 0..4 {
        // The corrections of a digit are those of 6 values: 5 of the triple and the mask.
        assert!(!passes(4, &(0..40).map(|digit| 6 * digit).collect::<Vec<_>>(), seed));
    }
}

/// Summands of c that belong to no product: authenticated as they are, and seen by the sacrifice.
#[test]
fn a_false_product_is_seen() {
    let cheat = Cheat { combining: |state| state.c.expose_mut()[4] += P256Scalar::ONE, ..NONE };
    for n in [2, 3] {
        let fault = triples_with(set_up(n, 3, &mut honest).unwrap(), 2, 1, &cheat, &mut honest).err();
        assert_eq!(fault.map(|(_, fault)| fault), Some(Fault::Macs), "{n} parties");
    }
}

/// False y, and false summands of either rho, said to everybody alike.
#[test]
fn a_false_opening_is_seen() {
    let false_ones: [fn(&mut Vec<u8>); 3] = [|bytes| bytes[63] ^= 1, |bytes| bytes[95] ^= 1, |bytes| bytes[127] ^= 1];
    for opened in false_ones {
        for n in [2, 3] {
            let cheat = Cheat { opened, ..NONE };
            let fault = triples_with(set_up(n, 2, &mut honest).unwrap(), 2, 1, &cheat, &mut honest).err();
            assert_eq!(fault.map(|(_, fault)| fault), Some(Fault::Macs), "{n} parties");
        }
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
    assert_eq!(state.handle(&Messages::<Vec<u8>>::new(), &mut rng).err(), Some(Fault::Ours(Misuse::Parties)));
    let alone = Parties::new([1; 32], index(1), BTreeSet::new());
    assert_eq!(alone.err(), Some(Misuse::OneParty));
    assert_eq!(Parties::new([1; 32], index(1), [index(1)].into()).err(), Some(Misuse::OneParty));
}

/// Whatever bytes one party sends in a round, the others end with a fault of the other party's, or of the MACs.
#[test]
fn noise_is_refused_in_every_round() {
    for in_round in (101..=103).chain(1..=9) {
        let mut noise = blake3::Hasher::new().update(&[u8::try_from(in_round).unwrap()]).finalize_xof();
        let mut tamper = |round, from, to, bytes: &mut Vec<u8>| {
            if (round, from, to) == (in_round, 1, 2) {
                noise.fill(bytes);
            }
        };
        let fault = match set_up(2, 1, &mut tamper) {
            Ok(parties) => triples(parties, 1, 1, &mut tamper).err(),
            Err(fault) => Some(fault),
        };
        let Some((_, fault)) = fault else { panic!("round {in_round} passed") };
        assert!(!matches!(fault, Fault::Ours(_)), "round {in_round}: {fault:?}");
    }
}

/// What a set-up of these parties leaves.
fn left(n: u16, seed: u64) -> All<Transfers> {
    meshed(n, seed, &mut honest).unwrap().into_iter().map(|(me, (_, left))| (me, left.unwrap())).collect()
}

/// The parties of a run that begins on it. Its rounds are numbered from 201.
fn keyed(
    left: &All<Transfers>,
    run: impl Fn(u16) -> [u8; 32],
    tamper: Tamper<'_>,
) -> Result<All<Party<P256Scalar>>, (ShareIndex, Fault)> {
    let mut rng = ChaCha20Rng::seed_from_u64(77);
    let (mut states, mut sent) = (All::new(), All::new());
    for (me, transfers) in left {
        let (state, messages) = transfers.key::<P256Scalar>(run(me.get()), &mut rng).unwrap();
        states.insert(*me, state);
        sent.insert(*me, messages);
    }
    let received = deliver(&sent, &mut |from, to, bytes| tamper(201, from, to, bytes));
    let (states, sent) = round(states, &received, |state, messages| state.handle(messages))?;
    let received = deliver(&sent, &mut |from, to, bytes| tamper(202, from, to, bytes));
    let (parties, _) = round(states, &received, |state, messages| {
        let (party, left) = state.handle(messages)?;
        assert!(left.is_none(), "a run leaves nothing of its own");
        Ok((party, Messages::new()))
    })?;
    Ok(parties)
}

#[test]
fn runs_of_one_set_up_have_seeds_and_keys_of_their_own() {
    for n in [2, 3] {
        let left = left(n, 9);
        let (mut sent, mut deltas) = (BTreeSet::new(), Vec::new());
        for run in 1..=3 {
            // The parties draw the same in each run: what differs comes of the seeds.
            let mut spy = |round, from, to, bytes: &mut Vec<u8>| {
                if [1, 4, 201].contains(&round) && (from, to) == (1, 2) {
                    assert!(sent.insert(bytes[bytes.len() - 64..].to_vec()), "run {run}, round {round}");
                }
            };
            let parties = keyed(&left, |_| [run; 32], &mut spy).unwrap();
            let delta = parties.values().map(|party| *party.key().expose()).sum::<P256Scalar>();
            deltas.push(delta);
            let (_, made) = triples(parties, 2, 1, &mut spy).unwrap();
            check(&made, 2, delta);
        }
        assert_eq!(sent.len(), 9);
        // With other randomness the keys differ; here all draw the same, and none is the set-up's.
        let first = meshed(n, 9, &mut honest).unwrap();
        let first = first.values().map(|(party, _)| *party.key().expose()).sum::<P256Scalar>();
        assert!(!deltas.contains(&first));
    }
}

/// Triples and their MACs.
fn check(made: &All<Triples<P256Scalar>>, count: usize, delta: P256Scalar) {
    for place in 0..count {
        let [a, b, c] = [0, 1, 2].map(|which| {
            let (value, mac) = sum(made.values().map(|triples| &triples.expose()[place][which]));
            assert_eq!(mac, value * delta);
            value
        });
        assert_eq!(a * b, c);
    }
}

/// What was made in one run is of no use in another one.
#[test]
fn a_party_of_another_run_is_seen() {
    let fault = keyed(&left(2, 9), |me| [u8::try_from(me).unwrap(); 32], &mut honest).err();
    let Some((_, Fault::Party { misbehaviour: Misbehaviour::Correlation, .. })) = fault else { panic!("{fault:?}") };
}

/// A guess at bits of a factor passes as rarely in a run as in the set-up, and false messages of its beginning name who sent them.
#[test]
fn lies_in_a_run_are_seen() {
    for seed in 0..4 {
        let mut tamper = |round, from, to, bytes: &mut Vec<u8>| {
            if (round, from, to) == (2, 1, 2) {
                shift(&(0..256).collect::<Vec<_>>(), bytes);
            }
        };
        let parties = keyed(&left(2, seed), |_| [7; 32], &mut honest).unwrap();
        assert_eq!(triples(parties, 1, seed, &mut tamper).err().map(|(_, fault)| fault), Some(Fault::Macs));
    }
    for (in_round, seen) in [(201, Misbehaviour::Correlation), (202, Misbehaviour::Trees)] {
        let mut tamper = |round, from, to, bytes: &mut Vec<u8>| {
            if (round, from, to) == (in_round, 1, 2) {
                // In the first message a correction; in the second the check of the first tree.
                bytes[if in_round == 201 { 40 } else { 8 * 16 - 1 }] ^= 1;
            }
        };
        assert_eq!(keyed(&left(2, 1), |_| [7; 32], &mut tamper).err(), by_party_one(seen), "round {in_round}");
    }
}

/// Who makes a check of MACs fail learns from the other's summand of it the whole of its MAC key: no other run may have that key.
#[test]
fn a_check_that_fails_shows_the_key_of_its_run_alone() {
    let left = left(2, 5);
    let parties = keyed(&left, |_| [1; 32], &mut honest).unwrap();
    let keys: Vec<P256Scalar> = parties.values().map(|party| *party.key().expose()).collect();
    let sigma = core::cell::Cell::new([0; 32]);
    let mut spy = |round, from, _, bytes: &mut Vec<u8>| {
        if (round, from) == (9, 2) {
            sigma.set(bytes[32..64].try_into().unwrap());
        }
    };
    let cheat = Cheat { opened: |bytes| bytes[63] ^= 1, ..NONE };
    let fault = triples_with(parties, 1, 1, &cheat, &mut spy).err();
    assert_eq!(fault.map(|(_, fault)| fault), Some(Fault::Macs));
    assert_ne!(sigma.get(), [0; 32], "the honest summand was shown");
    let mut other = ChaCha20Rng::seed_from_u64(78);
    let (state, _) = left[&index(2)].key::<P256Scalar>([2; 32], &mut other).unwrap();
    assert!(!keys.contains(state.delta.expose()), "another run has another key");
}
