//! Which holders a coordinator takes, when programs with others have failed.

use bytes::Bytes;
use theta_protocols::ecdsa::PROGRAM;
use theta_rounds::simulator::{Adversary, SimRng, Tamper};
use theta_rounds::{PartyId, Slot};
use theta_schemes::Suite;

use super::support::{Group, id, tamper};

/// Two of seven, of whom five make a program: one set of 21 is without them.
const LIARS: [u16; 2] = [2, 5];

/// Takes part in everything but programs, so that nobody takes it for one that is down.
fn says_nothing_in_programs() -> Box<dyn Adversary> {
    tamper(|slot, payload| if slot.kind < PROGRAM { vec![(slot, payload)] } else { Vec::new() })
}

/// Leaves out one honest holder of each program, another one each time, whom all others then wait for.
fn has_another_missed() -> Box<dyn Adversary> {
    Box::new(Tamper(|_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
        let honest: Vec<u16> = (1..=7).filter(|number| !LIARS.contains(number)).collect();
        let attempt = usize::from(u16::from_be_bytes([payload[0], payload[1]]));
        let is_left_out = slot.kind >= PROGRAM && to == id(honest[attempt % honest.len()]);
        if is_left_out { Vec::new() } else { vec![(slot, payload)] }
    }))
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
