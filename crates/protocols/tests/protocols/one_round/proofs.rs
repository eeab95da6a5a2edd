//! Proofs are sent to those who ask for them, and not before.

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::one_round::{PROOF_REQUEST, PROVEN_SHARE, SHARE};
use theta_rounds::simulator::{Adversary, Behaviour, Conditions, SimRng, Simulator, Tamper};
use theta_rounds::{Channel, Effect, Input, PartyId, Recipient, Slot};
use theta_schemes::Suite;

use crate::one_round::support::{Delta, HELD_BACK, Setting, id, own_share, shifted};

/// Suites with bare shares and their lengths: keys of 1,024 bits and points.
const SUITES: [(Suite, usize); 3] =
    [(Suite::Sh00Pkcs1Sha256, 128), (Suite::Sg02Ristretto255, 32), (Suite::Sg02Bls12381, 48)];

/// A false share in place of a true one.
fn falsified(suite: Suite, payload: &[u8]) -> Bytes {
    if suite.group() != "RSA" {
        return shifted(suite, payload, &Delta::plus(1));
    }
    let mut payload = payload.to_vec();
    payload[100] ^= 1;
    payload.into()
}

/// Falsifies the messages of slot `lie`.
fn lies_in(suite: Suite, lie: Slot) -> Box<dyn Adversary> {
    Box::new(Tamper(move |_: &mut SimRng, _: PartyId, slot: Slot, payload: Bytes| {
        vec![(slot, if slot == lie { falsified(suite, &payload) } else { payload })]
    }))
}

#[test]
fn nobody_proves_anything_when_all_goes_well() {
    for (suite, bare) in SUITES {
        let setting = Setting::new(suite, 2, 4);
        assert_eq!(own_share(&mut setting.machine(1)).payload.len(), bare);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (mut one, mut other) = (setting.machine(1), own_share(&mut setting.machine(2)));
        one.handle(Input::Start, &mut rng);
        let payload = core::mem::take(&mut other.payload);
        let message = Input::Message { from: id(2), slot: SHARE, channel: Channel::Broadcast, payload };
        let effects = one.handle(message, &mut rng);
        assert!(matches!(effects.as_slice(), [Effect::Finished(Ok(_))]), "{effects:?}");
        assert!(one.lingers());
    }
}

#[test]
fn a_false_share_costs_a_request_and_is_named() {
    for (suite, _) in SUITES {
        let setting = Setting::new(suite, 3, 5);
        setting.expect_named(1, vec![(2, lies_in(suite, SHARE))], &["invalid_share"]);
    }
}

/// Without a false share nobody asks for proofs. So one party lies about its share, everybody asks, and the false proof
/// of another party is seen.
#[test]
fn a_false_proof_is_named() {
    for (suite, _) in SUITES {
        let setting = Setting::new(suite, 3, 5);
        let corrupted = vec![(2, lies_in(suite, PROVEN_SHARE)), (4, lies_in(suite, SHARE))];
        setting.expect_named(1, corrupted, &["invalid_share"]);
    }
}

/// A party that is asked for its proof sends its bare share once more. The share is true, but it is no answer.
#[test]
fn a_bare_share_in_the_place_of_a_proven_one_is_named() {
    for (suite, bare) in SUITES {
        let setting = Setting::new(suite, 3, 5);
        let without_proof = Tamper(move |_: &mut SimRng, _: PartyId, slot: Slot, payload: Bytes| {
            vec![(slot, if slot == PROVEN_SHARE { payload.slice(..bare) } else { payload })]
        });
        let corrupted: Vec<(u16, Box<dyn Adversary>)> = vec![(2, Box::new(without_proof)), (4, lies_in(suite, SHARE))];
        setting.expect_named(1, corrupted, &["malformed_message", "invalid_share"]);
    }
}

/// While nobody doubts a result, nobody asks for proofs, and a party that would send a false one never does.
#[test]
fn a_false_proof_that_nobody_asks_for_is_never_seen() {
    for (suite, _) in SUITES {
        let setting = Setting::new(suite, 3, 5);
        let report = setting.run(1, vec![(2, lies_in(suite, PROVEN_SHARE))]);
        setting.expect_result(&report);
        assert_eq!(report.blames_of(id(2)).count(), 0);
    }
}

/// All but one have finished long before the slow party receives anything but the false share.
#[test]
fn the_slow_one_gets_its_proofs_from_those_who_have_finished() {
    for (suite, seed) in SUITES.into_iter().flat_map(|(suite, _)| (0..10).map(move |seed| (suite, seed))) {
        let setting = Setting::new(suite, 2, 4);
        let mut simulator = Simulator::new(seed, Conditions::default());
        for honest in [1, 2, 3] {
            simulator.honest(id(honest), setting.machine(honest));
            simulator.hold_back(id(4), id(honest), 2 * HELD_BACK);
        }
        simulator.byzantine(id(4), setting.machine(4), lies_in(suite, SHARE));
        for fast in [2, 3] {
            simulator.hold_back(id(fast), id(1), HELD_BACK);
        }
        simulator.hold_back(id(4), id(1), 0);
        let report = simulator.run();
        setting.expect_result(&report);
        let said: Vec<_> = report.blames_of(id(4)).map(|(by, blame)| (by.get(), blame.offence.name())).collect();
        assert_eq!(said, [(1, "invalid_share")]);
    }
}

/// Sends `share` of the true one in its place, and nothing else.
fn mute(share: impl Fn(&[u8]) -> Bytes + Send + 'static) -> Box<dyn Adversary> {
    Box::new(Tamper(
        move |_: &mut SimRng, _: PartyId, slot: Slot, payload: Bytes| {
            if slot == SHARE { vec![(slot, share(&payload))] } else { Vec::new() }
        },
    ))
}

/// A liar that does not prove its share is left out. It is named all the same: two true shares tell what its own is.
#[test]
fn who_does_not_answer_is_left_out() {
    for (suite, _) in SUITES {
        let setting = Setting::new(suite, 2, 4);
        let liar = mute(move |share| falsified(suite, share));
        let report = setting.run(3, vec![(3, liar), (1, Box::new(Behaviour::Silent))]);
        setting.expect_result(&report);
        let said: Vec<_> = report.blames_of(id(3)).map(|(by, blame)| (by.get(), blame.offence.name())).collect();
        assert_eq!(said, [(2, "invalid_share"), (4, "invalid_share")]);
        for (_, party) in report.honest() {
            assert!(!party.result.as_ref().unwrap().as_ref().unwrap().contributors.contains(&id(3).share()));
        }
    }
}

/// One that sends its true share and is not heard of again is not named, and nor is one that was restarted and sends it twice.
#[test]
fn who_falls_silent_after_a_true_share_is_not_named() {
    for (suite, _) in SUITES {
        let setting = Setting::new(suite, 3, 6);
        let (silent, twice) = (mute(Bytes::copy_from_slice), Box::new(Behaviour::Flood));
        let report = setting.run(4, vec![(2, lies_in(suite, SHARE)), (3, silent), (4, twice)]);
        setting.expect_result(&report);
        assert!(report.blames_of(id(2)).count() > 0);
        assert_eq!([3, 4].map(|party| report.blames_of(id(party)).count()), [0; 2]);
    }
}

/// A share of a modulus of another size, and one that is no residue of this one, are no shares, and cost nobody a proof.
#[test]
fn shares_of_other_moduli_are_malformed() {
    let setting = Setting::new(Suite::Sh00Pkcs1Sha256, 2, 4);
    for share in [vec![1; 256], vec![1; 384], vec![1; 512], vec![1; 4 * 256 + 32], [&[0xff; 127][..], &[0xfe]].concat()]
    {
        let corrupted: Vec<(u16, Box<dyn Adversary>)> = vec![(3, mute(move |_| share.clone().into()))];
        setting.expect_named(1, corrupted, &["malformed_share"]);
    }
}

/// However often a party asks, it gets one answer.
#[test]
fn proofs_are_given_once_to_each_that_asks() {
    for (suite, bare) in SUITES {
        one_answer_each(&Setting::new(suite, 1, 4), bare);
    }
}

fn one_answer_each(setting: &Setting, bare: usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut machine = setting.machine(1);
    machine.handle(Input::Start, &mut rng);
    assert!(machine.is_finished());
    let mut ask = |from: u16, slot: Slot, channel| {
        machine.handle(Input::Message { from: id(from), slot, channel, payload: Bytes::new() }, &mut rng)
    };
    for asker in [2, 3] {
        let effects = ask(asker, PROOF_REQUEST, Channel::Broadcast);
        let [Effect::Send { to, slot, payload, .. }] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!((*to, *slot), (Recipient::Party(id(asker)), PROVEN_SHARE));
        assert!(payload.len() > bare);
        assert!(ask(asker, PROOF_REQUEST, Channel::Broadcast).is_empty());
    }
    // A message for all may also come over a private channel.
    assert_eq!(ask(4, PROOF_REQUEST, Channel::Private).len(), 1);
    assert!(ask(4, SHARE, Channel::Broadcast).is_empty());
    assert!(ask(9, PROOF_REQUEST, Channel::Broadcast).is_empty());
}

/// A party asked before this one had a share at all, and this party's own share was enough to finish.
#[test]
fn a_request_that_came_too_early_is_answered_at_the_end() {
    for (suite, _) in SUITES {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut machine = Setting::new(suite, 1, 4).machine(1);
        let request =
            Input::Message { from: id(2), slot: PROOF_REQUEST, channel: Channel::Broadcast, payload: Bytes::new() };
        assert!(machine.handle(request, &mut rng).is_empty());
        let effects = machine.handle(Input::Start, &mut rng);
        assert!(machine.is_finished());
        let answered = |effect: &Effect<_, _, _>| matches!(effect, Effect::Send { to, slot: PROVEN_SHARE, .. } if *to == Recipient::Party(id(2)));
        assert_eq!(effects.iter().filter(|effect| answered(effect)).count(), 1);
    }
}
