//! Programs that stand still do not last: with them their set-ups go, and nobody waits for what they make.

use std::collections::VecDeque;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::ecdsa::PROGRAM;
use theta_rounds::{Effect, Input, PartyId, Recipient};
use theta_schemes::Suite;

use super::support::{Group, id};
use crate::supplied::SuppliedMachine;

/// A message of a program says its attempt and its round first.
fn of_program(payload: &[u8]) -> (u16, u16) {
    let number = |at: usize| u16::from_be_bytes([payload[at], payload[at + 1]]);
    (number(0), number(2))
}

/// A pair that has a set-up from before, and runs a program that the second coordinates. The second falls silent in this round of it, and says nothing
/// in any other program. Returns the first, in the middle of it.
fn hung(group: &Group, silent_from: u16) -> SuppliedMachine {
    group.check(b"first", &group.run(b"first", 1, Vec::new())).unwrap();
    assert_eq!(group.stocks[0].set_ups().ready(), 1);
    let message = group.message_of(2);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut machines = [group.machine(1, &message), group.machine(2, &message)];
    let mut waiting: VecDeque<(usize, Input<_>)> = [(0, Input::Start), (1, Input::Start)].into();
    while let Some((place, input)) = waiting.pop_front() {
        for effect in machines[place].handle(input, &mut rng) {
            let Effect::Send { to: Recipient::Party(_) | Recipient::All, slot, channel, payload } = effect else {
                continue;
            };
            let is_said = slot.kind < PROGRAM || (of_program(&payload).0 == 0 && of_program(&payload).1 < silent_from);
            if place == 0 || is_said {
                let from: PartyId = id(if place == 0 { 1 } else { 2 });
                waiting.push_back((1 - place, Input::Message { from, slot, channel, payload: Bytes::clone(&payload) }));
            }
        }
    }
    let [first, _] = machines;
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
