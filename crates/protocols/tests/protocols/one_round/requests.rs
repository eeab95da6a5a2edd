//! How `start` treats good and bad requests.

use std::sync::Arc;

use crate::one_round::support::{Setting, each_suite, id, own_proof, own_share, own_share_with};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::{RequestError, start};
use theta_rounds::{Abort, Effect, Input};
use theta_schemes::{Purpose, Statement, StatementBytes, Suite};

#[test]
fn one_of_one_answers_alone() {
    each_suite(1, 1, |setting| {
        let effects = setting.machine(1).handle(Input::Start, &mut ChaCha8Rng::seed_from_u64(1));
        let [Effect::Send { .. }, Effect::Finished(Ok(outcome))] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(outcome.contributors, [id(1).share()]);
    });
}

#[test]
fn results_verify_by_themselves() {
    each_suite(2, 3, |setting| {
        let report = setting.run(5, Vec::new());
        let outcome = report.parties[&id(1)].result.as_ref().unwrap().as_ref().unwrap();
        let result = outcome.result.expose();
        match &setting.statement {
            StatementBytes::Decapsulate(_) => assert_eq!(result.len(), 32),
            StatementBytes::Sign(message) | StatementBytes::FlipCoin(message) => {
                setting.public.verify(message, result, &outcome.proof).unwrap();
            }
        }
        assert_eq!(outcome.proof.is_empty(), setting.suite.purpose() != Purpose::Coin);
    });
}

#[test]
fn a_request_for_another_purpose_is_the_caller_s_mistake() {
    each_suite(2, 2, |setting| {
        let wrong = match setting.suite.purpose() {
            Purpose::Sign => Statement::FlipCoin(b"x"),
            Purpose::Coin => Statement::Decapsulate(b"x"),
            Purpose::Decrypt => Statement::Sign(b"x"),
        };
        let refused = start(&setting.public, &setting.shares[0], wrong).err();
        assert!(matches!(refused, Some(RequestError::Purpose { .. })), "{refused:?}");
        assert_eq!(setting.statement.as_statement().purpose(), setting.suite.purpose());
    });
}

#[test]
fn a_damaged_ciphertext_gets_no_share() {
    for suite in [Suite::Sg02Ristretto255, Suite::Sg02Bls12381] {
        let setting = Setting::new(suite, 2, 2);
        let StatementBytes::Decapsulate(header) = &setting.statement else { panic!("a cipher") };
        for position in 0..header.len() {
            let mut damaged = header.to_vec();
            damaged[position] ^= 1;
            let started = start(&setting.public, &setting.shares[0], Statement::Decapsulate(&damaged));
            assert!(started.is_err(), "{suite}: byte {position} may change unseen");
        }
    }
}

/// Two requests meet in one instance, but a share of one is no share of the other.
#[test]
fn shares_are_bound_to_their_request() {
    each_suite(2, 2, |setting| {
        let here = own_share(&mut setting.machine(1));
        let there = setting.share_of_other_instance(1);
        assert_ne!(here.payload, there.payload);
    });
}

/// A node that was killed and asked again must not look like one that says two different things.
#[test]
fn a_restarted_node_repeats_its_share_to_the_byte() {
    each_suite(3, 4, |setting| {
        let [(before, proof_before), (after, proof_after)] = [1, 2].map(|seed| {
            let mut machine = setting.machine(2);
            (own_share_with(&mut machine, seed), own_proof(&mut machine, 1).map(|proven| proven.payload))
        });
        assert_eq!(before.payload, after.payload);
        assert_eq!(proof_before, proof_after);
        assert_eq!(proof_before.is_some(), setting.suite.scheme() == "SG02", "{}", setting.suite);

        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut peer = setting.machine(1);
        peer.handle(Input::Start, &mut rng);
        for share in [before, after] {
            let message =
                Input::Message { from: id(2), slot: share.slot, channel: share.channel, payload: share.payload };
            assert!(peer.handle(message, &mut rng).is_empty());
        }
        assert_eq!(peer.contributions(), (2, 3));
    });
}

#[test]
fn a_share_of_another_key_ends_as_our_mistake() {
    let setting = Setting::new(Suite::Cks05Ristretto255, 2, 3);
    for other in [Setting::new(Suite::Cks05Ristretto255, 2, 4), Setting::new(Suite::Bls04MinPk, 2, 3)] {
        let share = Arc::clone(&other.shares[0]);
        let mut machine = start(&setting.public, &share, &setting.statement).unwrap();
        let effects = machine.handle(Input::Start, &mut ChaCha8Rng::seed_from_u64(1));
        assert!(matches!(effects.as_slice(), [Effect::Finished(Err(Abort::Bug(_)))]), "{effects:?}");
        assert!(machine.is_finished());
    }
}
