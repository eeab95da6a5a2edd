//! More messages than an honest party has reason for.

use crate::frost::support::{Setting, tamper};
use theta_schemes::Suite;

#[test]
fn endless_commitments_and_packages_are_named() {
    let setting = Setting::new(Suite::FrostEd25519, 2, 3);
    for kind in [1, 2] {
        let culprit = if kind == 2 { setting.coordinator() } else { setting.others()[0] };
        let report = setting.run(
            1,
            vec![(
                culprit,
                tamper(move |_, slot, payload| {
                    let copies = if slot.kind == kind { 100 } else { 1 };
                    (0..copies)
                        .map(|copy| {
                            (theta_rounds::Slot { number: slot.number.wrapping_add(copy), ..slot }, payload.clone())
                        })
                        .collect()
                }),
            )],
        );
        setting.check(&report).unwrap();
        let said = Setting::offences(&report, culprit);
        // What the party sends by itself later falls into slots that the flood has filled.
        assert!(said.iter().all(|(_, name)| ["too_many_messages", "equivocation"].contains(name)), "{said:?}");
    }
}
