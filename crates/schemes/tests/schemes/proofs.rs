//! Proofs of ciphertexts that are checked together.

use std::sync::Arc;

use proptest::prelude::{ProptestConfig, any, prop, prop_assert_eq, proptest};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_payload::{Aead, Encrypt as _, split_ciphertext};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, SchemeError, deal_any};
use theta_schemes::{Answer, RequestError, Statement, Suite, Unproven, prove_together};
use theta_sharing::Threshold;

/// Those that check proofs together, two keys of one of them, and two that do not.
const SUITES: [Suite; 8] = [
    Suite::Sg02Ristretto255,
    Suite::Sg02P256,
    Suite::Sg02Secp256k1,
    Suite::Sg02Bn254,
    Suite::Bz03Bls12381,
    Suite::Sg02Ristretto255,
    Suite::Sg02Ed25519,
    Suite::Sg02Bls12381,
];

struct Key {
    public: AnyPublicKey,
    share: AnyKeyShare,
}

fn keys() -> Vec<Key> {
    let deal = |(seed, suite)| {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let (public, mut shares) = deal_any(suite, Threshold::new(2, 3).unwrap(), &mut rng);
        Key { public, share: shares.remove(0) }
    };
    (0..).zip(SUITES).map(deal).collect()
}

fn header_for(public: &AnyPublicKey, number: u64) -> Vec<u8> {
    let mut rng = ChaCha20Rng::seed_from_u64(number);
    let sealed = public.encrypt(&number.to_le_bytes(), b"label", Aead::default(), &mut rng).unwrap();
    split_ciphertext(&sealed).unwrap().0.to_vec()
}

impl Key {
    /// The header of a ciphertext; a false one ends like another.
    fn header(&self, number: u64, is_false: bool) -> Vec<u8> {
        let header = header_for(&self.public, number);
        if !is_false {
            return header;
        }
        let other = header_for(&self.public, number + 1_000);
        let tail = if self.public.suite().scheme() == "SG02" { 32 } else { 48 };
        let kept = header.len() - tail;
        [&header[..kept], &other[kept..]].concat()
    }

    fn unproven(&self, header: &[u8]) -> Result<Unproven<Arc<dyn Answer>>, RequestError> {
        self.public.answer_unproven(&self.share, Statement::Decapsulate(header)).map_err(|error| match error {
            SchemeError::Request(error) => error,
            other => panic!("{other}"),
        })
    }
}

/// Which of the headers are answered, each by the key of its number: together, and each by itself.
fn verdicts(keys: &[Key], headers: &[Vec<u8>]) -> (Vec<bool>, Vec<bool>) {
    let key = |place: usize| &keys[place % keys.len()];
    let (mut together, mut waiting, mut places) = (vec![false; headers.len()], Vec::new(), Vec::new());
    for (place, header) in headers.iter().enumerate() {
        if let Ok(unproven) = key(place).unproven(header) {
            waiting.push(unproven);
            places.push(place);
        }
    }
    for (place, proven) in places.into_iter().zip(prove_together(waiting, &mut ChaCha20Rng::seed_from_u64(9))) {
        together[place] = proven.is_ok();
    }
    let alone = headers
        .iter()
        .enumerate()
        .map(|(place, header)| key(place).public.check_request(Statement::Decapsulate(header)).is_ok());
    (together, alone.collect())
}

#[test]
fn exactly_the_false_ones_are_refused_whatever_their_keys() {
    let keys = keys();
    for false_ones in [&[][..], &[0], &[4], &[12, 20], &[0, 8, 16, 24, 13], &(0..32).collect::<Vec<_>>()] {
        let headers: Vec<_> =
            (0..32).map(|place| keys[place % keys.len()].header(place as u64, false_ones.contains(&place))).collect();
        let (together, alone) = verdicts(&keys, &headers);
        assert_eq!(together, alone);
        let expected: Vec<bool> = (0..32).map(|place| !false_ones.contains(&place)).collect();
        assert_eq!(together, expected, "{false_ones:?}");
    }
    assert!(prove_together(Vec::<Unproven<()>>::new(), &mut ChaCha20Rng::seed_from_u64(1)).is_empty());
}

/// What is made of an answer stays locked in as it did; where there is nothing to check, nothing is locked in.
#[test]
fn only_a_proof_that_holds_opens() {
    for (place, key) in keys().iter().enumerate() {
        let made = |is_false| key.unproven(&key.header(place as u64, is_false)).map(|unproven| unproven.map(|_| place));
        assert_eq!(prove_together(vec![made(false).unwrap()], &mut ChaCha20Rng::seed_from_u64(1)), [Ok(place)]);
        let waits = !matches!(key.public.suite(), Suite::Sg02Ed25519 | Suite::Sg02Bls12381);
        assert_eq!(made(false).unwrap().proven().is_err(), waits, "{}", key.public.suite());
        match made(true) {
            Ok(unproven) => {
                assert!(waits);
                let proven = prove_together(vec![unproven], &mut ChaCha20Rng::seed_from_u64(1));
                assert_eq!(proven, [Err(RequestError::InvalidCiphertext)]);
            }
            Err(error) => assert!(!waits && error == RequestError::InvalidCiphertext),
        }
    }
    assert_eq!(Unproven::from(7).proven().ok(), Some(7));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever bytes are changed in whichever headers, together they get the verdicts that they get one by one.
    #[test]
    fn together_is_as_one_by_one(changes in proptest::collection::vec(proptest::option::of((any::<prop::sample::Index>(), 1_u8..)), 1..17)) {
        let keys = keys();
        let headers: Vec<_> = changes.iter().enumerate().map(|(place, change)| {
            let mut header = keys[place % keys.len()].header(place as u64, false);
            if let Some((at, bits)) = change {
                let at = at.index(header.len());
                header[at] ^= bits;
            }
            header
        }).collect();
        let (together, alone) = verdicts(&keys, &headers);
        prop_assert_eq!(together, alone);
    }
}
