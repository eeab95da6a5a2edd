//! Signatures under re-randomised keys.

use std::sync::Arc;

use theta_groups::Secret;
use theta_protocols::frost::Options;
use theta_protocols::start_with;
use theta_rounds::simulator::Report;
use theta_rounds::{Abort, Effect, Input};
use theta_schemes::keys::deal_any;
use theta_schemes::signatures::frost::{SeedError, check_seed, randomized_key, verify_with_key};
use theta_schemes::{Statement, Suite};
use theta_sharing::Threshold;

use crate::frost::support::{MESSAGE, Setting, flip, frost, id};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::{Misbehaviour, Outcome};

fn seed(byte: u8) -> Arc<Secret<Vec<u8>>> {
    Arc::new(Secret::new(vec![byte; 32]))
}

fn run(setting: &Setting, seed: &Arc<Secret<Vec<u8>>>, liar: Option<u16>) -> Report<Outcome, Misbehaviour> {
    let mut simulator = setting.simulator(1);
    for party in 1..=setting.n {
        let machine = setting.randomized(party, seed);
        match liar {
            Some(liar) if liar == party => simulator.byzantine(id(party), machine, flip(4, 100)),
            _ => simulator.honest(id(party), machine),
        }
    }
    simulator.run()
}

#[test]
fn every_suite_signs_under_a_key_of_the_client_s_own() {
    for suite in Suite::ALL.into_iter().filter(|suite| suite.scheme() == "FROST") {
        for (k, n) in [(1, 1), (2, 3), (3, 4)] {
            let setting = Setting::new(suite, k, n);
            let secret = seed(7);
            let report = run(&setting, &secret, None);
            report.check_blame().unwrap();
            let mut keys = Vec::new();
            for (_, party) in report.honest() {
                let outcome = party.result.as_ref().unwrap().as_ref().unwrap();
                let signature = outcome.result.expose();
                let key = randomized_key(&setting.public, &secret, &outcome.proof).unwrap();
                verify_with_key(&setting.public, &key, MESSAGE, signature).unwrap();
                assert!(setting.public.verify(MESSAGE, signature, &[]).is_err(), "{suite}");
                assert_ne!(key, setting.public.verifying_key_bytes());
                // Another seed, or other commitments, give another key.
                let mut others = outcome.proof.clone();
                *others.last_mut().unwrap() ^= 1;
                for (secret, proof) in [(&*seed(8), &outcome.proof), (&*secret, &others)] {
                    let key = randomized_key(&setting.public, secret, proof).unwrap();
                    assert!(verify_with_key(&setting.public, &key, MESSAGE, signature).is_err());
                }
                keys.push(key);
            }
            assert_eq!(keys.len(), usize::from(n));
        }
    }
}

/// Seed and list are hashed one behind the other. The first half of a long seed, with a list that begins with the other half, gives no key: it would be
/// the same one.
#[test]
fn the_end_of_a_seed_is_not_the_beginning_of_a_list() {
    for suite in Suite::ALL.into_iter().filter(|suite| suite.scheme() == "FROST") {
        let setting = Setting::new(suite, 2, 3);
        let list = run(&setting, &seed(7), None).agreed(|outcome| outcome.proof.clone()).unwrap();
        let d = [9; 32];
        let long = Secret::new([&[7; 32][..], &d].concat());
        assert!(randomized_key(&setting.public, &long, &list).is_some());
        assert_eq!(randomized_key(&setting.public, &seed(7), &[&d, &list[..]].concat()), None, "{suite}");
        // A list has entries of k parties or more, whose identifiers rise.
        let (first, second) = list.split_at(list.len() / 2);
        for other in [
            first,
            &[second, first].concat(),
            &[first, first].concat(),
            &list[1..],
            &[&d, &list[d.len()..]].concat(),
            &[],
        ] {
            assert_eq!(randomized_key(&setting.public, &seed(7), other), None, "{suite}");
        }
    }
}

/// A coordinator announces other commitments than those of the session: the signature does not verify under their key.
#[test]
fn false_commitments_of_an_announcement_are_named() {
    let setting = Setting::new(Suite::FrostEd25519, 2, 4);
    let secret = seed(9);
    // The first coordinator follows from the seed, too. Whichever party it is, all the others name it.
    let named: usize = (1..=4)
        .map(|liar| {
            let report = run(&setting, &secret, Some(liar));
            report.check_blame().unwrap();
            for (_, party) in report.honest() {
                let outcome = party.result.as_ref().unwrap().as_ref().unwrap();
                let key = randomized_key(&setting.public, &secret, &outcome.proof).unwrap();
                verify_with_key(&setting.public, &key, MESSAGE, outcome.result.expose()).unwrap();
            }
            let said = Setting::offences(&report, liar);
            assert!(said.iter().all(|(_, name)| *name == "invalid_signature"), "{said:?}");
            said.len()
        })
        .sum();
    assert_eq!(named, 3);
}

#[test]
fn other_schemes_have_none() {
    for suite in Suite::ALL.into_iter().filter(|suite| suite.scheme() != "FROST") {
        assert_eq!(check_seed(suite, 32), Err(SeedError::Suite(suite)));
    }
    assert_eq!(check_seed(Suite::FrostP256, 31), Err(SeedError::Length(31)));
    assert_eq!(check_seed(Suite::FrostP256, 65), Err(SeedError::Length(65)));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (public, mut shares) = deal_any(Suite::Bls04MinPk, Threshold::new(1, 1).unwrap(), &mut rng);
    let options = frost(Options { seed: Some(seed(1)), ..Options::default() });
    let share = Arc::new(shares.remove(0));
    let mut machine = start_with(&public, &share, Statement::Sign(MESSAGE), options).unwrap();
    let effects = machine.handle(Input::Start, &mut rng);
    assert!(matches!(effects.as_slice(), [Effect::Finished(Err(Abort::Bug(_)))]), "{effects:?}");
    assert_eq!(randomized_key(&public, &seed(1), &[]), None);
    assert!(verify_with_key(&public, public.verifying_key_bytes(), MESSAGE, &[]).is_err());
}
