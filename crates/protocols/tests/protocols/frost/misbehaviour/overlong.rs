//! Messages that are longer than any that the key's n signers can make. Without the bound, decoding a package of
//! sixteen megabytes took seconds, and every session of it was kept.

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_rounds::{Channel, Effect, Input, Slot};
use theta_schemes::Suite;

use crate::frost::support::{Setting, id, tamper};

/// The true payload, repeated until it has `len` bytes.
fn stretched(payload: &Bytes, len: usize) -> Bytes {
    let entries = &payload[payload.len().min(9)..];
    let mut long = payload.to_vec();
    while !entries.is_empty() && long.len() < len {
        long.extend_from_slice(entries);
    }
    long.resize(long.len().max(len), 0x55);
    long.into()
}

#[test]
fn messages_longer_than_n_signers_make_are_named() {
    for suite in Suite::ALL.into_iter().filter(|suite| suite.scheme() == "FROST") {
        let setting = Setting::new(suite, 2, 3);
        for kind in 1..=4 {
            let culprit = if kind == 1 || kind == 3 { setting.others()[0] } else { setting.coordinator() };
            let report = setting.run(
                1,
                vec![(
                    culprit,
                    tamper(move |_, slot, payload| {
                        let long = slot.kind == kind;
                        vec![(slot, if long { stretched(&payload, 1 << 20) } else { payload })]
                    }),
                )],
            );
            setting.check(&report).unwrap();
            let said = Setting::offences(&report, culprit);
            // The coordinator may not ask this party for a share at all.
            assert!(!said.is_empty() || kind == 3, "kind {kind}");
            assert!(said.iter().all(|(_, name)| *name == "too_long"), "kind {kind}: {said:?}");
        }
    }
}

/// The first overlong message excludes its sender from the instance, so no second is kept.
#[test]
fn the_first_overlong_package_is_the_last() {
    let setting = Setting::new(Suite::FrostEd25519, 2, 3);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut machine = setting.machine(setting.others()[0]);
    machine.handle(Input::Start, &mut rng);
    let from = id(setting.coordinator());
    let payload = Bytes::from(vec![1; 16 << 20]);
    let mut blames = 0;
    for number in 0..1000 {
        let slot = Slot { kind: 2, number };
        let package = Input::Message { from, slot, channel: Channel::Private, payload: payload.clone() };
        let effects = machine.handle(package, &mut rng);
        blames += effects.iter().filter(|effect| matches!(effect, Effect::Blame(blame) if blame.party == from)).count();
    }
    assert_eq!(blames, 1);
}
