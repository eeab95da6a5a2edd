//! Decoders never panic, on any bytes.

use std::sync::LazyLock;

use proptest::prelude::*;
use theta_keyfiles::{KeyShareText, PublicKeyText};
use theta_payload::{Header, PayloadKey, open_bytes, read_header, split_ciphertext};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName};
use theta_schemes::{Statement, StatementBytes};

use crate::suites::fixture::{borrow, index, key, one_round_suites, rng, shares, statement};

struct Sample {
    public: AnyPublicKey,
    keys: Vec<AnyKeyShare>,
    request: StatementBytes,
    shares: Vec<(theta_sharing::ShareIndex, Vec<u8>)>,
    /// What the shares combine to.
    result: Vec<u8>,
    public_text: String,
    share_text: String,
}

static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    one_round_suites()
        .map(|suite| {
            let name: KeyName = "name".parse().unwrap();
            let (public, keys) = key(suite, 2, 3, 1);
            let request = statement(&public, 1);
            let shares = shares(&public, &keys, &request);
            let result = public.combine(&request, &borrow(&shares), &mut rng(1)).unwrap().result.expose().clone();
            let public_text = public.to_text(&name);
            let share_text = keys[0].to_text(&name).expose().clone();
            Sample { public, keys, request, shares, result, public_text, share_text }
        })
        .collect()
});

/// Replaces bytes at any place.
fn spliced(original: &[u8], position: usize, remove: usize, insert: &[u8]) -> Vec<u8> {
    let start = position % (original.len() + 1);
    let end = (start + remove).min(original.len());
    [&original[..start], insert, &original[end..]].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400), party in 1..=u16::MAX) {
        let _ = Header::parse(&bytes);
        let _ = split_ciphertext(&bytes);
        let _ = read_header(&mut &*bytes);
        let _ = PayloadKey::from_bytes(&bytes);
        let key = PayloadKey::from_bytes(&[1; 32]).unwrap();
        prop_assert!(open_bytes(&key, &bytes).is_err());
        for sample in SAMPLES.iter() {
            let public = &sample.public;
            prop_assert!(public.check_request(Statement::Decapsulate(&bytes)).is_err());
            prop_assert!(public.verify_share(&sample.request, index(party), &bytes, &mut rng(1)).is_err());
            let combined = public.combine(&sample.request, &[(index(party), &bytes), (index(1), &bytes)], &mut rng(1));
            prop_assert!(combined.is_err());
            prop_assert!(public.verify(b"message", &bytes, &bytes).is_err());
            prop_assert!(public.verify(b"message", &[0; 32], &bytes).is_err());
        }
    }

    #[test]
    fn changed_shares_and_headers_get_an_answer(
        position in any::<usize>(),
        remove in 0..64_usize,
        insert in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        for sample in SAMPLES.iter() {
            let mut changed = sample.shares.clone();
            changed[1].1 = spliced(&changed[1].1, position, remove, &insert);
            let same = changed[1].1 == sample.shares[1].1;
            let combined = sample.public.combine(&sample.request, &borrow(&changed), &mut rng(1));
            if let Ok(combined) = combined {
                // A checked result needs no proof, so any bytes may stand in the proof's place; the result is the honest one.
                prop_assert!(same || sample.public.suite().scheme() == "SG02");
                prop_assert_eq!(combined.result.expose(), &sample.result);
            } else {
                prop_assert!(!same);
            }
            let verdict = sample.public.verify_share(&sample.request, index(2), &changed[1].1, &mut rng(1));
            prop_assert_eq!(verdict.is_ok(), same);
            if let StatementBytes::Decapsulate(header) = &sample.request {
                let changed = spliced(header, position, remove, &insert);
                let verdict = sample.public.check_request(Statement::Decapsulate(&changed));
                prop_assert_eq!(verdict.is_ok(), changed == *header);
            }
        }
    }

    #[test]
    fn any_text_gets_an_answer_in_one_line(text in "\\PC{0,200}|([a-z_]{1,9} ?= ?[\"0-9a-f\\[\\]{}',.]{0,20}\n){0,9}") {
        let error = AnyPublicKey::from_text(&text).unwrap_err().to_string();
        prop_assert_eq!(error.lines().count(), 1, "{}", error);
        let error = AnyKeyShare::from_text(&text, &SAMPLES[0].public).unwrap_err().to_string();
        prop_assert_eq!(error.lines().count(), 1, "{}", error);
        let _ = text.parse::<KeyName>();
    }

    #[test]
    fn changed_key_files_get_an_answer(
        position in any::<usize>(),
        remove in 0..20_usize,
        insert in "[0-9a-f\"=\n\\[\\]#k]{0,20}",
    ) {
        for sample in SAMPLES.iter() {
            let changed = spliced(sample.public_text.as_bytes(), position, remove, insert.as_bytes());
            if let Ok((_, public)) = AnyPublicKey::from_text(&String::from_utf8(changed).unwrap()) {
                // The change was in the comment, the name or white space; or k was raised, which the same points allow: such a
                // file asks for more shares of the same key than are needed.
                let raised = public.threshold().k() > sample.public.threshold().k();
                prop_assert!(raised || public == sample.public, "{:?}", public);
                prop_assert_eq!(public.key_id(), sample.public.key_id());
            }
            let changed = spliced(sample.share_text.as_bytes(), position, remove, insert.as_bytes());
            let changed = String::from_utf8(changed).unwrap();
            if let Ok((_, share)) = AnyKeyShare::from_text(&changed, &sample.public) {
                prop_assert_eq!(share.index(), sample.keys[0].index());
            }
        }
    }
}
