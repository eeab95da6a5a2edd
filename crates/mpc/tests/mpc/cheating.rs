//! Parties that lie, in each message of each phase: nobody gets a tuple that is not right, and nobody a wrong signature.
//!
//! What a liar sends when it is honest is recorded first. Then every message is changed in every way, one run for each, so
//! that a message which is added to a protocol is tested without anybody thinking of it.

mod dealings;
mod false_shares;
mod replays;

use bytes::Bytes;
use theta_groups::{Group, P256};
use theta_mpc::ecdsa::{Curve, bind, generate, prepare_nonces};
use theta_mpc::{Active, Misbehaviour, Passive, Rep3, Shamir};
use theta_names::Epoch;
use theta_rounds::simulator::{Adversary, Report, SimRng, Tamper};
use theta_rounds::{Abort, Offence, PartyId, Slot};

use crate::ecdsa::{Material, request, sign_in};
use crate::group::{GroupOf, Made, Recorder, Sent, party, same};

/// Tuples for each run: two, so that messages have several fields.
pub(crate) const TUPLES: usize = 2;

/// Makes key and tuples, in a group with liars.
pub(crate) fn prepare<B: Made<Group: Curve>>(group: GroupOf) -> Report<Material<B>, Misbehaviour> {
    group.run(same(|party| async move {
        let black_box = B::make(&party).await?;
        let key = generate(&black_box, Epoch::FIRST).await?;
        let nonces = prepare_nonces(&black_box, Epoch::FIRST, TUPLES).await?;
        let tuples = bind(&black_box, nonces, &key).await?;
        Ok((key.into(), tuples))
    }))
}

/// What party `liar` sends if it is honest.
pub(crate) fn recorded<B: Made<Group: Curve>>(n: u16, t: u16, liar: u16) -> Vec<(u16, u16, Vec<u8>)> {
    let sent = Sent::default();
    let report = prepare::<B>(GroupOf::new(n, t).liar(liar, Recorder(sent.clone())));
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Ok(_)))));
    let messages = sent.lock().unwrap();
    messages.clone()
}

/// Every way in which a message is changed, given all that the liar sent.
fn changes(message: &(u16, u16, Vec<u8>), all: &[(u16, u16, Vec<u8>)]) -> Vec<Vec<u8>> {
    let (to, round, payload) = message;
    let flip = |place: usize| {
        let mut bytes = payload.clone();
        bytes[place] ^= 1;
        bytes
    };
    // Each field of 32 or 33 bytes has at least one of these places, and so has its last byte, which keeps a scalar canonical.
    let mut places: Vec<usize> = (0..payload.len()).filter(|i| i % 32 == 31 || i % 33 == 32 || i % 32 == 7).collect();
    places.push(payload.len() - 1);
    let mut changed: Vec<Vec<u8>> = places.into_iter().map(flip).collect();
    changed.push(vec![0; payload.len()]);
    changed.push(vec![0xff; payload.len()]);
    changed.extend(other_elements(payload));
    // Another message of the same length: one replayed, or one for somebody else.
    let alike = |(_, _, other): &&(u16, u16, Vec<u8>)| other.len() == payload.len() && other != payload;
    changed
        .extend(all.iter().filter(|(_, r, _)| r < round).filter(alike).map(|(_, _, other)| other.clone()).next_back());
    changed.extend(all.iter().filter(|(t, r, _)| r == round && t != to).find(alike).map(|(_, _, other)| other.clone()));
    changed.retain(|bytes| bytes != payload);
    changed.sort();
    changed.dedup();
    changed
}

/// Sends one message differently.
pub(crate) fn instead(to: u16, round: u16, bytes: Vec<u8>) -> impl Adversary + 'static {
    Tamper(move |_: &mut SimRng, recipient: PartyId, slot: Slot, payload: Bytes| {
        let changed = recipient.get() == to && slot.number == round;
        vec![(slot, if changed { bytes.clone().into() } else { payload })]
    })
}

/// What is true after any lie: whoever has tuples has right ones. Returns whether somebody noticed.
fn check<B: Made<Group: Curve>>(
    n: u16,
    t: u16,
    liars: &[u16],
    is_last: bool,
    report: Report<Material<B>, Misbehaviour>,
) -> bool {
    report.check_blame().unwrap();
    let mut materials: Vec<Option<Material<B>>> = report
        .parties
        .into_iter()
        .filter(|(id, _)| !liars.contains(&id.get()))
        .map(|(_, party)| party.result.and_then(Result::ok))
        .collect();
    let have = materials.iter().flatten().count();
    if have < materials.len() {
        // The last confirmation may be kept from some; nothing else separates honest parties.
        assert!(have == 0 || is_last, "some honest parties have tuples and others have not");
        return true;
    }
    // Honest parties alone sign with each tuple.
    let public_key = *materials[0].as_ref().unwrap().0.public_key();
    for _ in 0..TUPLES {
        let mut places = Vec::new();
        for number in 1..=n {
            let mine = if liars.contains(&number) { None } else { materials.iter_mut().find_map(Option::take) };
            places.push(mine);
        }
        let message = request(b"after a lie");
        let parts: Vec<_> = places
            .iter_mut()
            .map(|part| std::sync::Mutex::new(part.as_mut().map(|(key, tuples)| (key.clone(), tuples.remove(0)))))
            .collect();
        let mut group = GroupOf::new(n, t);
        group.silent = liars.to_vec();
        let signed = group.run(|number| {
            let part = parts[usize::from(number) - 1].lock().unwrap().take();
            Box::new(move |party| async move {
                let black_box = B::make_for_openings(&party)?;
                let (key, tuple) = part.ok_or(theta_mpc::Stop::Lost)?;
                let message = theta_mpc::ecdsa::Request { tuple: tuple.id(), ..message };
                theta_mpc::ecdsa::sign(&black_box, &key, tuple, message).await
            })
        });
        let signature = signed.agreed(|signature| *signature).expect("a tuple is false");
        assert!(signature.vartime_verifies(&public_key, &message.digest));
        materials = places.into_iter().flatten().map(Some).collect();
    }
    false
}

fn every_lie<B: Made<Group: Curve>>(n: u16, t: u16, liar: u16) {
    let all = recorded::<B>(n, t, liar);
    let last = all.iter().map(|(_, round, _)| *round).max().unwrap();
    let (mut runs, mut noticed) = (0, 0);
    for message in &all {
        let (to, round, _) = message;
        for bytes in changes(message, &all) {
            let group = GroupOf::new(n, t).liar(liar, instead(*to, *round, bytes));
            noticed += usize::from(check::<B>(n, t, &[liar], *round == last, prepare::<B>(group)));
            runs += 1;
        }
    }
    // What is not noticed is what a dealer may choose: seeds and shares of its own random polynomials.
    assert!(runs > 100 && noticed * 4 > runs, "{}: {noticed} of {runs} lies noticed", B::NAME);
}

#[test]
fn every_lie_in_malicious_shamir_of_three() {
    every_lie::<Shamir<P256, Active>>(3, 1, 1);
    every_lie::<Shamir<P256, Active>>(3, 1, 3);
}

#[test]
fn every_lie_in_malicious_shamir_of_five() {
    every_lie::<Shamir<P256, Active>>(5, 2, 2);
}

#[test]
fn every_lie_in_malicious_rep3() {
    for liar in 1..=3 {
        every_lie::<Rep3<P256, Active>>(3, 1, liar);
    }
}

/// Two liars change the same message of the same round in the same way.
#[test]
fn two_liars_of_five_together() {
    type B = Shamir<P256, Active>;
    let all = recorded::<B>(5, 2, 2);
    let last = all.iter().map(|(_, round, _)| *round).max().unwrap();
    let mut noticed = 0;
    for round in 1..=last {
        for (place, from_end) in [(31, false), (0, true)] {
            let lie = || {
                Tamper(move |_: &mut SimRng, _, slot: Slot, payload: Bytes| {
                    let mut bytes = payload.to_vec();
                    let at = if from_end { bytes.len() - 1 } else { place };
                    if slot.number == round
                        && let Some(byte) = bytes.get_mut(at)
                    {
                        *byte ^= 1;
                    }
                    vec![(slot, bytes.into())]
                })
            };
            let group = GroupOf::new(5, 2).liar(2, lie()).liar(5, lie());
            noticed += usize::from(check::<B>(5, 2, &[2, 5], round == last, prepare::<B>(group)));
        }
    }
    assert!(noticed > usize::from(last), "{noticed} noticed");
}

/// Replaces every group element of a message by another one. `None` if the message is not of elements.
fn other_elements(payload: &[u8]) -> Option<Vec<u8>> {
    let elements: Option<Vec<_>> = payload.chunks(33).map(|code| P256::decode(code).ok()).collect();
    let encode = |element: <P256 as Group>::Element| P256::encode(&(element + P256::generator()));
    Some(elements?.into_iter().flat_map(encode).collect())
}

/// A wrong R, told to one party: with it, the one s that signing shows would be a signature of another message. Returns how many honest parties
/// have tuples after each run. (One that is told to all, and confirmed by the liar too, is in `src/ecdsa/tests/wrong_r.rs`.)
fn with_wrong_r<B: Made<Group = P256>>(n: u16, t: u16, liar: u16) -> Vec<usize> {
    let mut have = Vec::new();
    for (to, round, payload) in recorded::<B>(n, t, liar) {
        let Some(other) = other_elements(&payload) else { continue };
        let report = prepare::<B>(GroupOf::new(n, t).liar(liar, instead(to, round, other)));
        have.push(report.honest().filter(|(_, party)| matches!(party.result, Some(Ok(_)))).count());
    }
    have
}

#[test]
fn nobody_has_a_tuple_with_a_wrong_r() {
    for liar in 1..=3 {
        for have in [with_wrong_r::<Shamir<P256, Active>>(3, 1, liar), with_wrong_r::<Rep3<P256, Active>>(3, 1, liar)] {
            // Elements are opened for the key and for the nonces.
            assert!(have.len() >= 3 && have.iter().all(|number| *number == 0), "{have:?}");
        }
    }
    let have = with_wrong_r::<Shamir<P256, Active>>(5, 2, 4);
    assert!(have.len() >= 3 && have.iter().all(|number| *number == 0), "{have:?}");
}

/// With passive security nothing checks R but that all confirm the same: a liar that tells all others another one, and goes on with the right one itself,
/// makes no tuple.
#[test]
fn with_passive_security_a_wrong_r_makes_no_tuple_unless_the_liar_confirms_it() {
    fn test<B: Made<Group = P256>>() {
        let all = recorded::<B>(3, 1, 1);
        let last =
            all.iter().filter(|(_, _, payload)| other_elements(payload).is_some()).map(|(_, round, _)| *round).max();
        let lie = Tamper(move |_: &mut SimRng, _, slot: Slot, payload: Bytes| {
            let other = (Some(slot.number) == last).then(|| other_elements(&payload)).flatten();
            vec![(slot, other.map_or(payload, Bytes::from))]
        });
        let report = prepare::<B>(GroupOf::new(3, 1).liar(1, lie));
        // The liar's own machine has the right R, so it stops; the two others agree on a wrong one, and need its confirmation.
        assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Cheated(_))))), "{}", B::NAME);
    }
    test::<Shamir<P256, Passive>>();
    test::<Rep3<P256, Passive>>();
}

/// Lies about shares of s: the signature comes nevertheless, and who lied is named.
#[test]
fn a_false_share_of_s_is_named_and_the_signature_comes() {
    fn test<B: Made<Group = P256>>(n: u16, t: u16) {
        let mut named = vec![0; usize::from(t)];
        for seed in 0..10 {
            let report = prepare::<B>(GroupOf::new(n, t).seed(seed));
            let mut material: Vec<Material<B>> =
                report.parties.into_values().map(|party| party.result.unwrap().unwrap()).collect();
            let public_key = *material[0].0.public_key();
            let lie = || {
                Tamper(|_: &mut SimRng, _, slot: Slot, payload: Bytes| {
                    let mut bytes = payload.to_vec();
                    bytes[31] ^= 1;
                    vec![(slot, bytes.into())]
                })
            };
            let group = (1..=t).fold(GroupOf::new(n, t).seed(seed), |group, liar| group.liar(liar + 1, lie()));
            let report = sign_in(group, &mut material, request(b"despite liars"));
            report.check_blame().unwrap();
            let signature = report.agreed(|signature| *signature).unwrap();
            assert!(signature.vartime_verifies(&public_key, &request(b"despite liars").digest));
            for (liar, count) in (2..).zip(&mut named) {
                let is_false =
                    |offence: &Offence<Misbehaviour>| *offence == Offence::Protocol(Misbehaviour::FalseShare);
                *count += report.blames_of(party(liar)).filter(|(_, blame)| is_false(&blame.offence)).count();
            }
        }
        // Only those whose share came before the signature was complete are looked at; and two liars of five could make honest
        // shares look false, so nobody is named then.
        assert!(named.iter().all(|count| (*count > 0) == (t == 1)), "{}: {named:?}", B::NAME);
    }
    test::<Shamir<P256, Active>>(3, 1);
    test::<Shamir<P256, Active>>(5, 2);
    test::<Shamir<P256, Passive>>(5, 2);
    test::<Rep3<P256, Active>>(3, 1);
    test::<Rep3<P256, Passive>>(3, 1);
}

/// A zero denominator that liars bring about: it takes two of three, with passive security. Nobody divides by it, and nobody has nonces.
/// (That one which is zero by chance is left out, the unit tests show.)
#[test]
fn a_false_zero_denominator_makes_no_nonces() {
    type B = Shamir<P256, Passive>;
    // Seeds, random values, double sharings, products, c.
    const ROUND_OF_C: u16 = 5;
    let lie = || {
        Tamper(|_: &mut SimRng, _, slot: Slot, payload: Bytes| {
            let mut bytes = payload.to_vec();
            if slot.number == ROUND_OF_C {
                bytes.fill(0);
            }
            vec![(slot, bytes.into())]
        })
    };
    // The first nonce's c is opened by parties 1 and 2, the second's by 2 and 3, the third's by 3 and 1.
    let report = GroupOf::new(3, 1).liar(1, lie()).liar(2, lie()).run(same(|party| async move {
        let black_box = B::make(&party).await?;
        Ok(prepare_nonces(&black_box, Epoch::FIRST, 3).await?.len())
    }));
    // The liars' own machines know better, and do not confirm.
    let (_, honest) = report.honest().next().unwrap();
    assert!(matches!(honest.result, Some(Err(Abort::Cheated(_)))));
}

/// A liar that keeps its messages back from one honest party, to learn a coin, or part of an opened element, before that party
/// has received what either depends on: the other one shows neither its share of the coin nor its part of the element.
#[test]
fn no_coin_and_no_element_is_shown_before_all_have_received() {
    fn test<B: Made<Group = P256>>(liar: u16, victim: u16, other: u16) {
        let recorded = recorded::<B>(3, 1, liar);
        // In the barrier's round nothing travels but the byte that says "here": a dealing beside it could be kept back.
        let is_barrier = |payload: &[u8]| payload.len() == 1;
        let barriers: Vec<u16> =
            recorded.iter().filter(|(_, _, payload)| is_barrier(payload)).map(|(_, round, _)| *round).collect();
        assert!(barriers.len() > 6);
        let elements = recorded.iter().filter(|(_, _, payload)| other_elements(payload).is_some());
        let first_elements = elements.map(|(_, round, _)| *round).min().unwrap();
        let to_victim = recorded.iter().filter(|(to, _, payload)| *to == victim && !is_barrier(payload));
        for from in to_victim.map(|(_, round, _)| *round) {
            let keep_back =
                Tamper(
                    move |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
                        if to.get() == victim && slot.number >= from { Vec::new() } else { vec![(slot, payload)] }
                    },
                );
            // The other honest party is recorded.
            let sent = Sent::default();
            let group = GroupOf::new(3, 1).liar(liar, keep_back).liar(other, Recorder(sent.clone()));
            let report = prepare::<B>(group);
            assert!(report.honest().all(|(_, party)| party.result.is_none()), "the victim waits");
            // Whoever is at a barrier has received what was sent before it.
            let Some(barrier) = barriers.iter().find(|round| **round > from) else { continue };
            let sent = sent.lock().unwrap();
            // In the round before the first elements, and after it, nothing is dealt: what is kept back are shares of openings, which are checked.
            let deals = from + 1 < first_elements;
            let shown = |(_, round, payload): &(u16, u16, Vec<u8>)| *round > from && other_elements(payload).is_some();
            assert!(!deals || !sent.iter().any(shown), "{}: an element is shown without round {from}", B::NAME);
            let reached = sent.iter().map(|(_, round, _)| *round).max().unwrap();
            assert!(reached <= *barrier, "{}: a coin is shown in round {reached}, without round {from}", B::NAME);
        }
    }
    test::<Shamir<P256, Active>>(1, 2, 3);
    test::<Shamir<P256, Active>>(1, 3, 2);
    test::<Rep3<P256, Active>>(1, 2, 3);
    test::<Rep3<P256, Active>>(1, 3, 2);
}

/// Whatever a party sends, nobody panics, nobody blames an honest one, and tuples are right or there are none.
#[test]
fn noise_of_every_kind() {
    use theta_rounds::simulator::Behaviour;
    fn test<B: Made<Group: Curve>>(n: u16, t: u16) {
        let behaviours = [
            Behaviour::Silent,
            Behaviour::Garbage,
            Behaviour::BitFlip,
            Behaviour::Equivocate,
            Behaviour::CopyOthers,
            Behaviour::Flood,
            Behaviour::CrashAfter(25),
        ];
        for (seed, behaviour) in (0..4).flat_map(|seed| behaviours.iter().map(move |behaviour| (seed, behaviour))) {
            let liar = 1 + u16::try_from(seed).unwrap() % n;
            let honest = matches!(behaviour, Behaviour::Flood);
            let report = prepare::<B>(GroupOf::new(n, t).seed(seed).liar(liar, behaviour.clone()));
            let noticed = check::<B>(n, t, &[liar], matches!(behaviour, Behaviour::CrashAfter(_)), report);
            assert!(noticed != honest, "{behaviour:?}");
        }
    }
    test::<Shamir<P256, Active>>(3, 1);
    test::<Shamir<P256, Active>>(5, 2);
    test::<Rep3<P256, Active>>(3, 1);
}
