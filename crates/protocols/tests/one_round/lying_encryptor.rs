//! The encryptor lies: every share is right and still the result is not. Nobody in the group is to blame.

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_groups::{Ristretto255, Scalar, Transcript, bls12_381};
use theta_rounds::Abort;
use theta_schemes::ciphers::sg02::{CipherGroup, Sg02};
use theta_schemes::{StatementBytes, Suite, ThresholdCipher};

use crate::support::{Delta, Setting, id, shifted, tamper};

/// A header as `spec/sg02.md` has it, with a proof that is honest and a wrapped key and commitment that belong to nothing.
fn lie<G: CipherGroup>(honest: &[u8]) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (r, s) = (G::Scalar::random(&mut rng), G::Scalar::random(&mut rng));
    let second = *G::second_generator();
    let mut header = honest[..honest.len() - Sg02::<G>::CAPSULE_LEN].to_vec();
    header.extend_from_slice(&[7; 64]);
    for element in [G::mul_base(&r), second * r, G::mul_base(&s), second * s] {
        header.extend_from_slice(G::encode(&element).as_ref());
    }
    let challenge: G::Scalar = Transcript::new("theta/sg02/validity/v1")
        .with("suite", G::SUITE.name().as_bytes())
        .with("header", &header)
        .challenge();
    header.extend_from_slice((s + r * challenge).encode().as_ref());
    header
}

/// A group of 3 of 5 that is asked to open a lie.
fn lied_to<G: CipherGroup>() -> Setting {
    let mut setting = Setting::new(G::SUITE, 3, 5);
    let StatementBytes::Decapsulate(header) = &setting.statement else { panic!("another purpose") };
    setting.statement = StatementBytes::Decapsulate(Bytes::from(lie::<G>(header)));
    setting
}

fn settings() -> [Setting; 2] {
    [lied_to::<Ristretto255>(), lied_to::<bls12_381::G1>()]
}

#[test]
fn it_ends_with_the_reason_and_blames_no_party() {
    for (setting, seed) in settings().iter().flat_map(|setting| (0..5).map(move |seed| (setting, seed))) {
        let report = setting.run(seed, Vec::new());
        for (_, party) in report.honest() {
            assert!(party.blames.is_empty());
            let abort = party.result.as_ref().unwrap().as_ref().unwrap_err();
            assert!(matches!(abort, Abort::Input(_)), "{abort}");
            assert!(abort.to_string().contains("encrypted"));
        }
    }
}

/// Parties that lie at the same time are told from the encryptor.
#[test]
fn a_lying_party_beside_it_is_named() {
    for setting in settings() {
        let suite: Suite = setting.suite;
        let liar = tamper(move |_, payload| shifted(suite, &payload, &Delta::plus(1)));
        let report = setting.run(1, vec![(2, liar)]);
        report.check_blame().unwrap();
        for (_, party) in report.honest() {
            let [blame] = party.blames.as_slice() else { panic!("{:?}", party.blames) };
            assert_eq!((blame.party, blame.offence.name()), (id(2), "invalid_share"));
            let abort = party.result.as_ref().unwrap().as_ref().unwrap_err();
            assert!(matches!(abort, Abort::Input(_)), "{abort}");
        }
    }
}
