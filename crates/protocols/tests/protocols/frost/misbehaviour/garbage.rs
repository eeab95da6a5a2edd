//! Bytes that are no messages, in every kind.

use crate::frost::support::{HELD_BACK, Setting, id, tamper};
use theta_rounds::simulator::Behaviour;
use theta_schemes::Suite;

#[test]
fn it_is_named_in_every_round() {
    let setting = Setting::new(Suite::FrostEd25519, 2, 3);
    let (coordinator, others) = (setting.coordinator(), setting.others());
    for kind in 1..=4_u16 {
        let culprit = if kind % 2 == 0 { coordinator } else { others[0] };
        for garbage in [&b""[..], &[0xff; 3], &[0xff; 32], &[0xff; 64], &[0xff; 98], &[0; 68], &[0xff; 200]] {
            let liar =
                tamper(move |_, slot, payload| vec![(slot, if slot.kind == kind { garbage.into() } else { payload })]);
            let mut simulator = setting.simulator(1);
            setting.populate(&mut simulator, vec![(culprit, liar)]);
            simulator.hold_back(id(others[1]), id(coordinator), HELD_BACK);
            let report = simulator.run();
            setting.check(&report).unwrap_or_else(|error| panic!("kind {kind}: {error}"));
            let said = Setting::offences(&report, culprit);
            assert!(
                said.iter().all(|(_, name)| *name == "malformed_message" || *name == "invalid_signature"),
                "{said:?}"
            );
            assert!(!said.is_empty(), "kind {kind}, {} bytes", garbage.len());
        }
    }
}

#[test]
fn the_wrong_channel_is_named() {
    let setting = Setting::new(Suite::FrostEd25519, 2, 3);
    let culprit = setting.others()[0];
    let report = setting.run(1, vec![(culprit, Box::new(Behaviour::WrongChannel))]);
    setting.check(&report).unwrap();
    assert!(Setting::offences(&report, culprit).iter().all(|(_, name)| *name == "wrong_channel"));
}
