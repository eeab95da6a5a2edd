//! Which holders a coordinator takes, when programs with others have failed.

use core::convert::Infallible;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::ecdsa::{PREPARE, PROGRAM};
use theta_rounds::simulator::{Adversary, SimRng, Tamper};
use theta_rounds::{Channel, Effect, Input, PartyId, Slot};
use theta_schemes::Suite;

use super::support::{Group, id, tamper};
use crate::supplied::SuppliedMachine;

/// Two of seven, of whom five make a program: one set of 21 is without them.
const LIARS: [u16; 2] = [2, 5];

/// Takes part in everything but programs, so that nobody takes it for one that is down.
fn says_nothing_in_programs() -> Box<dyn Adversary> {
    tamper(|slot, payload| if slot.kind < PROGRAM { vec![(slot, payload)] } else { Vec::new() })
}

/// Whether a liar leaves this message out: one honest holder of each program, another one each time, gets none, and all others then wait for it.
fn is_left_out(to: PartyId, slot: Slot, payload: &Bytes) -> bool {
    let honest: Vec<u16> = (1..=7).filter(|number| !LIARS.contains(number)).collect();
    slot.kind >= PROGRAM && to == id(honest[usize::from(attempt_of(payload)) % honest.len()])
}

/// What messages of programs, and those that name programs, say first.
fn attempt_of(payload: &Bytes) -> u16 {
    u16::from_be_bytes([payload[0], payload[1]])
}

fn has_another_missed() -> Box<dyn Adversary> {
    Box::new(Tamper(
        |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
            if is_left_out(to, slot, &payload) { Vec::new() } else { vec![(slot, payload)] }
        },
    ))
}

/// The runs, of forty of so many ticks, in which an honest holder has no signature.
fn unsigned(ticks: u32, liar: fn() -> Box<dyn Adversary>) -> Vec<u8> {
    let mut group = Group::new(Suite::EcdsaSecp256k1, 3, 7);
    group.ticks = ticks;
    let waits = |message: &u8| {
        let liars = LIARS.map(|number| (number, liar())).into();
        let report = group.run(&[*message], u64::from(*message), liars);
        group.check_safe(&[*message], &report).unwrap();
        !report.honest().all(|(_, party)| matches!(party.result, Some(Ok(_))))
    };
    (0..40).filter(waits).collect()
}

/// Whoever is silent in a program is not taken into another one by who has waited for it. (If sets came only by how often their holders were in
/// programs that failed, a quarter of the runs would not end in this time.)
#[test]
fn who_is_silent_in_programs_is_taken_no_more() {
    assert_eq!(unsigned(12, says_nothing_in_programs), Vec::<u8>::new());
}

/// Liars that have honest holders missed by all others do not keep them out. Eighteen ticks are a minute with the service's usual times, the longest that a
/// request waits there.
#[test]
fn who_has_others_missed_stops_nothing() {
    assert!(unsigned(18, has_another_missed).len() <= 1);
    assert_eq!(unsigned(40, has_another_missed), Vec::<u8>::new());
}

/// The same, and names programs of many later turns of its own in each turn, as an honest coordinator that finds a liar in its program names one.
fn leaps_and_has_others_missed() -> Box<dyn Adversary> {
    Box::new(Tamper(|_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
        if is_left_out(to, slot, &payload) {
            return Vec::new();
        }
        let leaps = if slot.kind == PREPARE { 31 } else { 0 };
        let later = |leap: u16| {
            let named = [&(attempt_of(&payload) + 7 * leap).to_be_bytes()[..], &payload[2..]].concat();
            (Slot { number: slot.number.wrapping_add(leap << 10), ..slot }, Bytes::from(named))
        };
        if leaps == 0 { vec![(slot, payload)] } else { (0..=leaps).map(later).collect() }
    }))
}

/// Nor does it help them to have others skip attempts. They are followed as often as an honest coordinator needs, and each coordinator counts its own turns: of
/// two, one does not ask who was missing.
#[test]
fn leaps_of_liars_stop_nothing() {
    assert_eq!(unsigned(60, leaps_and_has_others_missed), Vec::<u8>::new());
}

/// One of seven, which hears nobody but liars.
struct Led {
    machine: SuppliedMachine,
    rng: ChaCha8Rng,
    number: u16,
}

impl Led {
    fn new(group: &Group) -> Self {
        let mut led =
            Self { machine: group.machine(1, &group.message_of(2)), rng: ChaCha8Rng::seed_from_u64(5), number: 0 };
        led.hear(Input::Start);
        led
    }

    /// What it says of the program that it names then, and whether it blames anybody.
    fn hear(&mut self, input: Input<Infallible>) -> (Option<Bytes>, bool) {
        let effects = self.machine.handle(input, &mut self.rng);
        let named = effects.iter().find_map(|effect| match effect {
            Effect::Send { slot, payload, .. } if slot.kind == PREPARE => Some(payload.clone()),
            _ => None,
        });
        (named, effects.iter().any(|effect| matches!(effect, Effect::Blame(_))))
    }

    /// The coordinator names a program of these holders, which makes nothing beside.
    fn hear_of_program(&mut self, coordinator: u16, attempt: u16, holders: &[u16]) -> (Option<Bytes>, bool) {
        self.number += 1;
        let (from, channel) = (id(coordinator), Channel::Broadcast);
        let slot = Slot { kind: PREPARE, number: self.number };
        self.hear(Input::Message { from, slot, channel, payload: said_of_program(attempt, holders).into() })
    }
}

fn said_of_program(attempt: u16, holders: &[u16]) -> Vec<u8> {
    let count = u16::try_from(holders.len()).unwrap();
    [&[attempt, 0, count], holders].concat().into_iter().flat_map(u16::to_be_bytes).collect()
}

/// A coordinator is followed to so many later turns as there may be liars, in all of a request. Otherwise liars would have attempts run out.
#[test]
fn nobody_is_led_far_away() {
    let group = Group::new(Suite::EcdsaSecp256k1, 3, 7);
    // The coordinator and four others.
    let holders_with = |coordinator: u16| {
        let others = (2..=7).filter(|number| *number != coordinator).take(4);
        let mut holders: Vec<u16> = others.chain([coordinator]).collect();
        holders.sort_unstable();
        holders
    };
    let is_of = |attempt: u16, party: &u16| !Led::new(&group).hear_of_program(*party, attempt, &holders_with(*party)).1;
    let coordinators: Vec<Option<u16>> = (0..7).map(|attempt| (2..=7).find(|party| is_of(attempt, party))).collect();
    assert_eq!(coordinators.iter().flatten().count(), 6, "all but its own attempt");
    let mut led = Led::new(&group);
    let mut named = Vec::new();
    for turn in 0..40 {
        for attempt in turn * 56..(turn + 1) * 56 {
            if let Some(coordinator) = coordinators[usize::from(attempt % 7)] {
                let (own, blames) = led.hear_of_program(coordinator, attempt, &holders_with(coordinator));
                assert!(!blames, "{attempt}");
                named.extend(own.as_ref().map(attempt_of));
            }
        }
        named.extend(led.hear(Input::Tick).0.as_ref().map(attempt_of));
        led.machine.rest();
    }
    // Six others lead it by two turns of seven attempts each, and forty ticks by an attempt each.
    assert!(named.len() > 2 && named.iter().all(|attempt| *attempt <= 6 * 2 * 7 + 40), "{named:?}");
}

/// A program in which nobody else was heard says nothing of its holders: they may not have heard of it, or may follow no more of this coordinator's. So they
/// are not behind others when they are heard again.
#[test]
fn who_hears_nobody_blames_no_set() {
    let group = Group::dishonest(Suite::EcdsaSecp256k1, 2, 4);
    // The second names itself and the third.
    let hears = |led: &mut Led, attempt| led.hear_of_program(2, attempt, &[2, 3]);
    let turn = (0..4).find(|attempt| !hears(&mut Led::new(&group), *attempt).1).unwrap();
    let mut led = Led::new(&group);
    let with_second = said_of_program(0, &[1, 2])[4..].to_vec();
    let mut sets = Vec::new();
    for tick in 0..30_u16 {
        sets.extend(led.hear(Input::Tick).0.map(|said| said.slice(4..)));
        hears(&mut led, turn + 4 * tick);
    }
    // In the first turn, which may be over before the first tick, and in all later ones.
    assert!(sets.len() >= 3 && sets.iter().all(|set| *set == with_second), "{sets:?}");
}
