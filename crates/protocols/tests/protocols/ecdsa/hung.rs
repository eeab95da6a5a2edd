//! Programs that stand still do not last: with them their set-ups go, and nobody waits for what they make.

use core::convert::Infallible;
use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::ecdsa::{PREPARE, PROGRAM, SHARE, SIGNATURE};
use theta_rounds::{Channel, Effect, Input, PartyId, Recipient, Slot};
use theta_schemes::Suite;

use super::support::{Group, id};
use crate::supplied::SuppliedMachine;

/// A message of a program says its attempt and its round first.
fn of_program(payload: &[u8]) -> (u16, u16) {
    let number = |at: usize| u16::from_be_bytes([payload[at], payload[at + 1]]);
    (number(0), number(2))
}

/// Two that sign together. Of the second nothing is heard in some rounds of some attempts' programs.
struct Pair<S> {
    machines: [SuppliedMachine; 2],
    rng: ChaCha8Rng,
    is_said: S,
}

impl<S: Fn(u16, u16) -> bool> Pair<S> {
    /// The second says what it has to say in an attempt's round if `is_said` is so.
    fn new(group: &Group, message: &[u8], seed: u64, is_said: S) -> Self {
        let machines = [1, 2].map(|number| group.machine(number, message));
        Self { machines, rng: ChaCha8Rng::seed_from_u64(seed), is_said }
    }

    /// Hands both the same, and all that comes of it; the attempts in whose programs the first sends more than holders send until they have met.
    fn both(&mut self, input: &Input<Infallible>) -> BTreeSet<u16> {
        let mut met = BTreeSet::new();
        let mut waiting: VecDeque<(usize, Input<_>)> = [(0, input.clone()), (1, input.clone())].into();
        while let Some((place, input)) = waiting.pop_front() {
            for effect in self.machines[place].handle(input, &mut self.rng) {
                let Effect::Send { to: Recipient::Party(_) | Recipient::All, slot, channel, payload } = effect else {
                    continue;
                };
                let (attempt, round) = of_program(&payload);
                let is_of_program = slot.kind >= PROGRAM;
                if is_of_program && place == 0 && round > 3 {
                    met.insert(attempt);
                }
                if place == 0 || !is_of_program || (self.is_said)(attempt, round) {
                    let from: PartyId = id(if place == 0 { 1 } else { 2 });
                    waiting.push_back((1 - place, Input::Message { from, slot, channel, payload }));
                }
            }
        }
        met
    }
}

/// A pair that has a set-up from before, and runs a program that the second coordinates. The second falls silent in this round of it, and says nothing
/// in any other program. Returns the first, in the middle of it.
fn hung(group: &Group, silent_from: u16) -> SuppliedMachine {
    group.check(b"first", &group.run(b"first", 1, Vec::new())).unwrap();
    assert_eq!(group.stocks[0].set_ups().ready(), 1);
    let is_said = |attempt, round| attempt == 0 && round < silent_from;
    let mut pair = Pair::new(group, &group.message_of(2), 2, is_said);
    pair.both(&Input::Start);
    let [first, _] = pair.machines;
    assert!(!first.is_finished());
    assert_eq!(group.stocks[0].set_ups().ready(), 1, "the program uses it");
    first
}

#[test]
fn a_program_that_stands_still_is_given_up_with_its_set_up() {
    let group = Group::dishonest(Suite::EcdsaP256, 2, 2);
    let mut first = hung(&group, 6);
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let ticks = (1..60).find(|_| {
        drop(first.handle(Input::Tick, &mut rng));
        group.stocks[0].set_ups().ready() == 0
    });
    assert!(ticks.is_some_and(|ticks| (3..8).contains(&ticks)), "{ticks:?}");
    assert!(!first.is_finished(), "others may still answer");
    assert!(group.stocks[0].quarantined().is_empty(), "silence is no proof");
}

#[test]
fn a_request_that_is_put_aside_keeps_no_program() {
    let group = Group::dishonest(Suite::EcdsaP256, 2, 2);
    let mut first = hung(&group, 6);
    first.rest();
    assert_eq!(group.stocks[0].set_ups().ready(), 0);
    // It goes on when somebody asks again.
    drop(first.handle(Input::Tick, &mut ChaCha8Rng::seed_from_u64(3)));
    assert!(!first.is_finished());
}

/// Whether the first of a pair begins a program with the second when this one names it.
fn follows(first: &mut SuppliedMachine, attempt: u16, rng: &mut ChaCha8Rng) -> bool {
    // How many presignatures it makes beside, how many holders it has, and which.
    let payload = Bytes::from([&attempt.to_be_bytes()[..], &[0, 0, 0, 2, 0, 1, 0, 2]].concat());
    let slot = Slot { kind: PREPARE, number: attempt };
    let message = Input::Message { from: id(2), slot, channel: Channel::Broadcast, payload };
    let effects = first.handle(message, rng);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Blame(_))), "{attempt}");
    effects.iter().any(|effect| matches!(effect, Effect::Send { slot, .. } if slot.kind >= PROGRAM))
}

/// Of one coordinator a request bears so many programs. With them used up in vain, as liars can arrange, it would come to nothing however often somebody
/// asks for it.
#[test]
fn whoever_asks_again_pays_for_other_programs() {
    let group = Group::dishonest(Suite::EcdsaP256, 2, 2);
    let message = group.message_of(1);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut first = group.machine(1, &message);
    drop(first.handle(Input::Start, &mut rng));
    // The second has its turn in every other attempt. Nothing more is heard of its programs, as of those that are over when its messages arrive.
    let named: Vec<u16> = (0..40).map(|turn| 1 + 2 * turn).collect();
    let followed: Vec<u16> = named.iter().copied().filter(|attempt| follows(&mut first, *attempt, &mut rng)).collect();
    assert_eq!(followed, named[..32]);
    first.rest();
    for attempt in &followed {
        assert!(!follows(&mut first, *attempt, &mut rng), "{attempt} is over");
    }
    assert!(follows(&mut first, 81, &mut rng));
}

/// Programs that go on after their holders have met, and come to nothing, are few of each coordinator, whoever that is.
#[test]
fn programs_that_come_to_nothing_late_are_few() {
    let group = Group::dishonest(Suite::EcdsaP256, 2, 2);
    let mut pair = Pair::new(&group, &group.message_of(1), 6, |_, round| round < 6);
    let mut met = pair.both(&Input::Start);
    for asked in 1..=2 {
        for _ in 0..150 {
            met.append(&mut pair.both(&Input::Tick));
        }
        let of_each = [0, 1].map(|rest| met.iter().filter(|attempt| **attempt % 2 == rest).count());
        assert_eq!(of_each, [8 * asked; 2], "{met:?}");
        pair.machines.iter_mut().for_each(|machine| machine.rest());
    }
}

/// What a program has sent is of no use once it has been given up: a request that was asked for again and again would fill its holders' memory with it.
#[test]
fn nothing_of_programs_outlives_a_rest() {
    let group = Group::dishonest(Suite::EcdsaP256, 2, 2);
    let mut first = hung(&group, 6);
    first.rest();
    let kept = |kind| first.outlives_rest(Slot { kind, number: 7 });
    assert!(kept(SHARE) && kept(SIGNATURE));
    assert!(!kept(PREPARE) && !kept(PROGRAM) && !kept(u16::MAX));
}
