//! Two different messages in one slot.

use crate::frost::support::{Setting, tamper};
use theta_rounds::simulator::Behaviour;
use theta_schemes::Suite;

#[test]
fn two_commitments_under_one_number() {
    let setting = Setting::new(Suite::FrostEd25519, 3, 4);
    let (coordinator, culprit) = (setting.coordinator(), setting.others()[2]);
    // The second message is the first with both halves exchanged: well-formed, but different.
    let report = setting.run(
        1,
        vec![(
            culprit,
            tamper(|_, slot, payload| {
                let other = [&payload[..9], &payload[41..], &payload[9..41]].concat();
                if slot.kind == 1 { vec![(slot, payload), (slot, other.into())] } else { vec![(slot, payload)] }
            }),
        )],
    );
    setting.check(&report).unwrap();
    assert!(Setting::offences(&report, culprit).contains(&(coordinator, "equivocation")));
}

/// A second package under the same number gets no share: the nonces are used up, and its coordinator is excluded.
#[test]
fn two_packages_of_one_session() {
    let setting = Setting::new(Suite::FrostEd25519, 3, 5);
    let coordinator = setting.coordinator();
    let report = setting.run(
        1,
        vec![(
            coordinator,
            tamper(|_, slot, payload| {
                let mut other = payload.to_vec();
                if slot.kind != 2 {
                    return vec![(slot, payload)];
                }
                other[1] ^= 1;
                vec![(slot, payload), (slot, other.into())]
            }),
        )],
    );
    setting.check(&report).unwrap();
    assert!(Setting::offences(&report, coordinator).iter().all(|(_, name)| *name == "equivocation"));
}

#[test]
fn copies_and_repetitions_hurt_nobody_else() {
    let setting = Setting::new(Suite::FrostEd25519, 3, 5);
    for seed in 0..30 {
        let [copier, flooder] = [setting.coordinator(), setting.others()[1]];
        let report =
            setting.run(seed, vec![(copier, Box::new(Behaviour::CopyOthers)), (flooder, Box::new(Behaviour::Flood))]);
        setting.check(&report).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(Setting::offences(&report, flooder).is_empty());
    }
}
