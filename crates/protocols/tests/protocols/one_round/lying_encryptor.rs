//! A lying encryptor: every share is right, and still the result is not. No party of the group is to blame.

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_groups::{Ristretto255, Scalar, Transcript, bls12_381};
use theta_rounds::Abort;
use theta_schemes::ciphers::PayloadKey;
use theta_schemes::ciphers::sg02::{CipherGroup, Sg02};
use theta_schemes::keys::PublicKeySet;
use theta_schemes::{StatementBytes, Suite, ThresholdCipher};

use crate::one_round::support::{Delta, Setting, id, shifted, tamper};

/// A header as in `spec/sg02.md`, with an honest proof, and with a wrapped key and a commitment that do not belong
/// together.
fn lie<G: CipherGroup>(honest: &[u8]) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    complete::<G>(envelope::<G>(honest), [7; 64], [G::Scalar::random(&mut rng), G::Scalar::random(&mut rng)])
}

fn envelope<G: CipherGroup>(header: &[u8]) -> &[u8] {
    &header[..header.len() - Sg02::<G>::CAPSULE_LEN]
}

/// The capsule with the given wrap and exponents.
fn complete<G: CipherGroup>(envelope: &[u8], wrap: [u8; 64], [r, s]: [G::Scalar; 2]) -> Vec<u8> {
    let second = *G::second_generator();
    let mut header = [envelope, &wrap].concat();
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

/// A group of 3 of 5 that is asked to open such a header.
fn lied_to<G: CipherGroup>() -> Setting {
    let mut setting = Setting::new(G::SUITE, 3, 5);
    let StatementBytes::Decapsulate(header) = &setting.statement else { panic!("another purpose") };
    setting.statement = StatementBytes::Decapsulate(Bytes::from(lie::<G>(header)));
    setting
}

/// A header that wraps a key for the result of parties 1 and 2 when party 2 moves its share by g times [`MOVED`]. Its r
/// and s are those of an honest encryption of that key if `follows`, otherwise others.
fn for_an_accomplice<G: CipherGroup>(honest: &[u8], public: &PublicKeySet<G>, follows: bool) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let (envelope, key) = (envelope::<G>(honest), PayloadKey::random(&mut rng));
    let [r, s] = ["encryption", "proof"].map(|purpose| {
        let coin = Transcript::new("theta/cipher/coins/v1")
            .with("suite", G::SUITE.name().as_bytes())
            .with("key id", public.key_id().as_bytes())
            .with("envelope", envelope)
            .with("payload key", key.secret().expose())
            .with("purpose", purpose.as_bytes());
        if follows { coin.challenge() } else { G::Scalar::random(&mut rng) }
    });
    // For signers 1 and 2, the Lagrange coefficient of 2 is 1 / (1 - 2).
    let shared = *public.public_key() * r - G::mul_base(&G::Scalar::from_u64(MOVED));
    let mask = Transcript::new("theta/sg02/wrap/v1")
        .with("suite", G::SUITE.name().as_bytes())
        .with("key id", public.key_id().as_bytes())
        .with("u", G::encode(&G::mul_base(&r)).as_ref())
        .with("shared", G::encode(&shared).as_ref())
        .finish32();
    let mut wrap = [0; 64];
    for (place, (key, mask)) in wrap.iter_mut().zip(key.secret().expose().iter().zip(mask)) {
        *place = key ^ mask;
    }
    wrap[32..].copy_from_slice(&key.commitment(G::SUITE, public.key_id()));
    complete::<G>(envelope, wrap, [r, s])
}

/// The factor of g by which the accomplice moves its share.
const MOVED: u64 = 7;

/// The encryptor and party 2 want party 1, which gets party 2's share first, to have a key that parties 3 and 4 do not
/// have. All get the same answer, and each names the accomplice.
#[test]
fn an_accomplice_makes_no_header_open_at_some_nodes_alone() {
    fn check<G: CipherGroup>(follows: bool) {
        let mut setting = Setting::new(G::SUITE, 2, 4);
        let StatementBytes::Decapsulate(header) = &setting.statement else { panic!("another purpose") };
        let forged = for_an_accomplice::<G>(header, G::key_of(setting.public.typed()).unwrap(), follows);
        setting.statement = StatementBytes::Decapsulate(Bytes::from(forged));
        for seed in 0..5 {
            let accomplice = tamper(move |_, payload| shifted(G::SUITE, &payload, &Delta::plus(MOVED)));
            let report = setting.run(seed, vec![(2, accomplice)]);
            report.check_blame().unwrap();
            for (_, party) in report.honest() {
                let abort = party.result.as_ref().unwrap().as_ref().expect_err("no key that others do not have");
                assert!(matches!(abort, Abort::Input(_)), "{abort}");
                let [blame] = party.blames.as_slice() else { panic!("{:?}", party.blames) };
                assert_eq!((blame.party, blame.offence.name()), (id(2), "invalid_share"));
            }
        }
    }
    for follows in [false, true] {
        check::<Ristretto255>(follows);
        check::<bls12_381::G1>(follows);
    }
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

/// Parties that lie at the same time are distinguished from the encryptor.
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
