//! Everybody follows the protocol, though some are silent or restart.

use core::convert::Infallible;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::ecdsa::{self, PREPARE, PROGRAM, SHARE};
use theta_rounds::simulator::Behaviour;
use theta_rounds::{Effect, Input, Recipient};
use theta_schemes::Suite;

use super::support::{Group, LEVEL, Liar, Recorder, Slots, id};

#[test]
fn a_group_signs_on_demand() {
    for suite in [Suite::EcdsaP256, Suite::EcdsaSecp256k1] {
        for (k, n) in [(2, 3), (3, 5), (2, 5), (4, 7)] {
            let group = Group::new(suite, k, n);
            group.check(b"m", &group.run(b"m", 1, Vec::new())).unwrap();
            assert!(group.ready().iter().all(|ready| *ready == 0), "nothing is made in advance");
        }
    }
}

/// What all parties send in a run, by slot.
fn sent(group: &Group, message: &[u8], seed: u64) -> Vec<(u16, theta_rounds::Slot)> {
    let slots = Slots::default();
    let spies: Vec<Liar> = (1..=group.n).map(|number| (number, recorder(number, &slots))).collect();
    group.run(message, seed, spies);
    Arc::try_unwrap(slots).unwrap().into_inner().unwrap()
}

fn recorder(number: u16, slots: &Slots) -> Box<dyn theta_rounds::simulator::Adversary> {
    Box::new(Recorder(number, Arc::clone(slots)))
}

#[test]
fn a_signature_with_a_presignature_is_one_share_of_k_holders() {
    for (k, n) in [(2, 3), (3, 5)] {
        let group = Group::warm(Suite::EcdsaP256, k, n);
        assert_eq!(group.ready(), vec![LEVEL; n.into()]);
        // Not all holders own as many.
        let owns = |turn: &u8| group.owned(group.coordinator(&[*turn])) > 0;
        for turn in (0..u8::MAX).filter(owns).take(3) {
            let sent = sent(&group, &[turn], turn.into());
            let shares: BTreeSet<u16> = sent.iter().filter(|(_, slot)| slot.kind == SHARE).map(|(by, _)| *by).collect();
            assert_eq!(shares.len(), usize::from(k));
            assert!(sent.iter().all(|(_, slot)| slot.kind < PROGRAM), "no program runs");
        }
        assert_eq!(group.ready(), vec![LEVEL - 3; n.into()], "each is used up at all holders");
    }
}

/// Operators need not agree on how many presignatures their nodes keep: the coordinator says how many a program makes, and each has room for that if it
/// keeps any. So stocks are alike, and nobody names what others have thrown away.
#[test]
fn stocks_may_have_different_levels() {
    for levels in [[4, 12, 0], [12, 4, 1], [0, 12, 40], [64, 1, 2]] {
        let mut group = Group::cold(Suite::EcdsaP256, 2, 3);
        group.levels = levels.to_vec();
        for (message, seed) in [(b"a", 1), (b"b", 2), (b"c", 3)] {
            let report = group.run(message, seed, Vec::new());
            group.check(message, &report).unwrap();
            (1..=3).for_each(|party| assert!(Group::offences(&report, party).is_empty(), "{levels:?}"));
        }
        let kept = group.ready();
        let most = kept.iter().max().copied().unwrap();
        assert!(kept.iter().zip(levels).all(|(kept, level)| *kept == if level == 0 { 0 } else { most }), "{kept:?}");
        assert!(most > 0 && most <= 3 * 2 * 64, "{kept:?} {levels:?}");
    }
}

#[test]
fn stocks_are_filled_though_nobody_asks_for_a_signature() {
    for (k, n) in [(2, 3), (3, 5), (2, 4)] {
        let group = Group::cold(Suite::EcdsaP256, k, n);
        for initiator in 1..=n {
            let before: usize = group.ready().iter().sum();
            let holders = Group::filled_by(&group.fill((initiator, initiator.into()), &[], Vec::new()));
            assert!(holders.iter().all(|named| *named == holders[0]), "all have heard of the same program");
            assert!(holders[0].contains(&initiator) && holders[0].len() == 2 * usize::from(k) - 1);
            let most = ecdsa::most_kept(LEVEL) * usize::from(n);
            assert_eq!(group.ready().iter().sum::<usize>(), (before + LEVEL * holders[0].len()).min(most));
            if initiator == 3 {
                break;
            }
        }
        let slots = sent(&group, b"m", 1);
        assert!(slots.iter().all(|(_, slot)| slot.kind < PROGRAM), "they serve");
    }
}

#[test]
fn whoever_begins_a_filling_does_without_those_it_avoids() {
    let group = Group::cold(Suite::EcdsaP256, 2, 5);
    for avoided in [[2, 3], [4, 5], [3, 5]] {
        let holders = Group::filled_by(&group.fill((1, avoided[0].into()), &avoided, Vec::new()));
        assert!(!avoided.iter().any(|party| holders[0].contains(party)), "{holders:?} without {avoided:?}");
    }
}

/// A filling that comes to nothing ends, and says so.
#[test]
fn a_filling_of_three_of_which_one_is_silent_comes_to_nothing() {
    let mut group = Group::cold(Suite::EcdsaP256, 2, 3);
    group.ticks = 40;
    for silent in 1..=3 {
        let report = group.fill((1, silent), &[], vec![(u16::try_from(silent).unwrap(), Box::new(Behaviour::Silent))]);
        assert!(Group::filled_by(&report).iter().all(Vec::is_empty));
    }
    assert_eq!(group.ready(), [0; 3]);
}

/// One of three is silent: what was made in advance still serves, by the pairs of which it is none.
#[test]
fn presignatures_serve_without_a_silent_holder() {
    for silent in 1..=3 {
        let group = Group::warm(Suite::EcdsaP256, 2, 3);
        for turn in 0..2_u8 {
            let report = group.run(&[turn], turn.into(), vec![(silent, Box::new(Behaviour::Silent))]);
            group.check(&[turn], &report).unwrap();
        }
    }
}

/// With 3t + 1 holders t silent ones do not keep the others from making presignatures.
#[test]
fn a_third_may_be_silent_from_the_start() {
    for (k, n, silent) in [(2, 4, vec![1]), (2, 5, vec![3, 4]), (3, 7, vec![2, 5])] {
        let mut group = Group::cold(Suite::EcdsaSecp256k1, k, n);
        group.ticks = 40;
        for turn in 0..3_u8 {
            let liars = silent.iter().map(|number| (*number, Box::new(Behaviour::Silent) as Box<_>)).collect();
            group
                .check(&[turn], &group.run(&[turn], turn.into(), liars))
                .unwrap_or_else(|error| panic!("{k} of {n}: {error}"));
        }
    }
}

#[test]
fn a_restarted_holder_is_no_culprit() {
    for seed in 0..20 {
        let group = Group::cold(Suite::EcdsaP256, 2, 4);
        let mut simulator = group.simulator(seed);
        for number in 1..=4 {
            simulator.honest(id(number), group.machine(number, b"m"));
        }
        simulator.restart(30 * seed, id(2), group.restarted(2, b"m"));
        group.check(b"m", &simulator.run()).unwrap();
    }
}

/// Whether a program runs for a message that all holders are asked to sign.
fn takes_a_program(group: &Group, message: &[u8], seed: u64) -> bool {
    let slots = Slots::default();
    let spies = (1..=group.n).map(|number| (number, recorder(number, &slots))).collect();
    group.check(message, &group.run(message, seed, spies)).unwrap();
    let slots = slots.lock().unwrap();
    slots.iter().any(|(_, slot)| slot.kind >= PROGRAM)
}

/// What others keep of an owner that has restarted, again and again, chokes no stock: its own requests show that it lacks them.
#[test]
fn an_owner_that_restarts_often_chokes_no_stock() {
    let mut group = Group::cold(Suite::EcdsaP256, 2, 3);
    let [of_1, of_2, of_3] = [1, 2, 3].map(|coordinator| group.message_of(coordinator));
    let mut programs = 0;
    for turn in 0..20_u16 {
        group.forget(2);
        assert!(takes_a_program(&group, &of_2, turn.into()), "it has none");
        drop(group.fill((turn % 3 + 1, turn.into()), &[], Vec::new()));
        for round in 0..4 {
            programs += [of_1, of_3].iter().filter(|message| takes_a_program(&group, *message, round)).count();
        }
    }
    // Others own some that it would have to sign with, too: each of these is named in vain.
    assert!(programs <= 40, "{programs} of 160 requests took a program");
}

/// An owner helps to make presignatures, signs with those of others, and names none of its own: there is room for others, and all is signed.
#[test]
fn an_owner_that_names_nothing_chokes_no_stock() {
    let group = Group::cold(Suite::EcdsaP256, 2, 3);
    let messages = [1, 2, 3].map(|coordinator| group.message_of(coordinator));
    let silent = || (2, Box::new(Behaviour::Silent) as Box<_>);
    for turn in 0..40_u64 {
        drop(group.fill((1, turn), &[], Vec::new()));
        // No program could sign here.
        group.check(&messages[1], &group.run(&messages[1], turn, vec![silent()])).unwrap();
        assert_eq!(group.stocks[0].presignatures_of(id(2)), 0);
        for message in [messages[0], messages[2]] {
            let _ = takes_a_program(&group, &message, turn);
        }
    }
}

/// Many requests at once, each with its own coordinator: no presignature serves two.
#[test]
fn results_of_many_requests_are_all_different() {
    let group = Group::warm(Suite::EcdsaP256, 2, 3);
    let mut seen = BTreeSet::new();
    for turn in 0..20_u8 {
        let report = group.run(&[turn], turn.into(), Vec::new());
        group.check(&[turn], &report).unwrap();
        let party = report.parties.values().next().unwrap();
        let r = party.result.as_ref().unwrap().as_ref().unwrap().result.expose()[..32].to_vec();
        assert!(seen.insert(r), "an R that was there before");
        group.fill((u16::from(turn) % 3 + 1, turn.into()), &[], Vec::new());
    }
}

/// A holder that has sent many messages is restarted in the middle of a program, and remembers nothing. Its numbers are among those that it had before;
/// nobody may take it for one that contradicts itself.
#[test]
fn a_restarted_holder_that_sends_many_messages_contradicts_nobody() {
    let group = Group::new(Suite::EcdsaP256, 2, 3);
    let first = group.coordinator(b"m");
    let begins = |seed: u64| {
        let effects = group.machine(first, b"m").handle(Input::Start, &mut ChaCha8Rng::seed_from_u64(seed));
        effects.into_iter().find_map(|effect| match effect {
            Effect::Send { slot, .. } if slot.kind == PREPARE => Some(slot.number),
            _ => None,
        })
    };
    let start = begins(0).unwrap();
    let among = |seed: &u64| (1..40).contains(&begins(*seed).unwrap().wrapping_sub(start));
    let others: Vec<u64> = (1..1_000_000).filter(among).take(12).collect();
    assert_eq!(others.len(), 12);
    for other in others {
        live_twice(&group, first, [0, other]);
    }
}

/// Delivers all that a group sends, one message after the other; a party starts anew when it has sent 30 messages. Its two lives have these seeds.
fn live_twice(group: &Group, twice: u16, seeds: [u64; 2]) {
    let mut rngs: Vec<ChaCha8Rng> = (1..=3_u64).map(|number| ChaCha8Rng::seed_from_u64(number << 32)).collect();
    let place = usize::from(twice) - 1;
    rngs[place] = ChaCha8Rng::seed_from_u64(seeds[0]);
    let mut machines: Vec<_> = (1..=3).map(|number| group.machine(number, b"m")).collect();
    let mut queue: VecDeque<(usize, Input<Infallible>)> = (0..3).map(|place| (place, Input::Start)).collect();
    let (mut sent, mut lives) = (0, 1);
    while let Some((at, input)) = queue.pop_front() {
        let from = id(u16::try_from(at).unwrap() + 1);
        for effect in machines[at].handle(input, &mut rngs[at]) {
            match effect {
                Effect::Send { to, slot, channel, payload } => {
                    sent += usize::from(at == place);
                    for peer in (1..=3).filter(|peer| id(*peer) != from) {
                        if to == Recipient::All || to == Recipient::Party(id(peer)) {
                            let payload = payload.clone();
                            queue.push_back((usize::from(peer) - 1, Input::Message { from, slot, channel, payload }));
                        }
                    }
                }
                Effect::Blame(blame) => panic!("blame of an honest party: {blame:?}"),
                _ => {}
            }
        }
        if sent >= 30 && lives == 1 {
            lives = 2;
            machines[place] = group.restarted(twice, b"m");
            rngs[place] = ChaCha8Rng::seed_from_u64(seeds[1]);
            queue.push_back((place, Input::Start));
        }
    }
    assert_eq!(lives, 2, "it was restarted in the middle");
}

/// Who is a holder ends with the program, and keeps what it has made in advance; only others are told the signature.
#[test]
fn no_holder_ends_before_its_program_does() {
    for seed in 0..20 {
        let group = Group::cold(Suite::EcdsaP256, 2, 4);
        let first = group.coordinator(b"m");
        let mut simulator = group.simulator(seed);
        for number in 1..=4 {
            simulator.honest(id(number), group.machine(number, b"m"));
        }
        // The holders are the coordinator and the next two: messages between these two take longer than by way of the coordinator.
        let (one, other) = (first % 4 + 1, (first + 1) % 4 + 1);
        simulator.hold_back(id(one), id(other), 2_000);
        group.check(b"m", &simulator.run()).unwrap();
        let ready = group.ready();
        let holders = [first, one, other].map(|number| ready[usize::from(number) - 1]);
        assert_eq!(holders, [LEVEL; 3], "seed {seed}");
    }
}
