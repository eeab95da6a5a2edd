//! Parties that never send anything, or fall silent.

use crate::frost::support::{Setting, id, tamper};
use theta_rounds::simulator::{Adversary, Behaviour};
use theta_schemes::Suite;

#[test]
fn a_silent_signer_is_not_missed() {
    let setting = Setting::new(Suite::FrostEd25519, 3, 4);
    let silent = setting.others()[1];
    let report = setting.run(1, vec![(silent, Box::new(Behaviour::Silent))]);
    setting.check(&report).unwrap();
    for (_, party) in report.honest() {
        assert!(!party.result.as_ref().unwrap().as_ref().unwrap().contributors.contains(&id(silent).share()));
    }
}

/// A signer that commits and never answers holds up one session; then there is another.
#[test]
fn signers_that_only_commit_hold_up_one_session_each() {
    for seed in 0..20 {
        let setting = Setting::new(Suite::FrostEd25519, 3, 7);
        let mute = |party: &u16| {
            (*party, tamper(|_, slot, payload| if slot.kind == 1 { vec![(slot, payload)] } else { Vec::new() }))
        };
        let report = setting.run(seed, setting.others()[..4].iter().map(mute).collect());
        setting.check(&report).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn silent_coordinators_are_replaced_one_after_the_other() {
    let setting = Setting::new(Suite::FrostEd25519, 3, 5);
    let (coordinator, others) = (setting.coordinator(), setting.others());
    let silent = [coordinator, others[0]];
    let report = setting.run(1, silent.map(|party| (party, Box::new(Behaviour::Silent) as Box<dyn Adversary>)).into());
    setting.check(&report).unwrap();
    assert!(report.honest().all(|(_, party)| party.blames.is_empty()));
}
