//! Files of keys on curves.

use theta_keyfiles::{KeyFileError, KeyShareText, PublicKeyText};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName};

use crate::fixture::{curve_suites, has_proof_of_possession, key, name, use_key, with, written_and_read};

/// One test for each of these, over all suites whose keys are on curves.
macro_rules! for_every_suite {
    ($($test:ident => $name:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            curve_suites().for_each($test);
        })+
    };
}
for_every_suite!(
    files_round_trip => files_of_every_suite_round_trip,
    parts_that_do_not_belong_together_are_refused => parts_that_do_not_belong_together_are_refused_by_every_suite,
    every_field_of_a_public_file_is_checked => every_field_of_a_public_file_is_checked_by_every_suite,
    every_field_of_a_share_file_is_checked => every_field_of_a_share_file_is_checked_by_every_suite,
);

fn files_round_trip(suite: Suite) {
    for (k, n) in [(1, 1), (2, 4), (5, 5), (9, 40)] {
        let (public, keys) = key(suite, k, n, 1);
        let (read, read_keys) = written_and_read(&public, &keys);
        if !["FROST", "ECDSA"].contains(&suite.scheme()) {
            use_key(&read, &read_keys);
        }
    }
}

fn parts_that_do_not_belong_together_are_refused(suite: Suite) {
    let (public, _) = key(suite, 3, 5, 3);
    let (other, _) = key(suite, 3, 5, 4);
    let (text, other_text) = (public.to_text(&name()), other.to_text(&name()));
    let lines: Vec<&str> = text.lines().collect();
    let list = lines.iter().position(|line| line.starts_with("verification_keys")).unwrap();
    let reject = |lines: &[&str]| AnyPublicKey::from_text(&lines.join("\n")).unwrap_err().to_string();

    let mut swapped = lines.clone();
    swapped.swap(list + 1, list + 2);
    assert!(reject(&swapped).contains("do not belong"), "{}", reject(&swapped));
    let mut missing = lines.clone();
    missing.remove(list + 3);
    assert!(reject(&missing).contains("there are 4 verification keys: it takes 5"), "{}", reject(&missing));
    let mut foreign = lines.clone();
    foreign[list + 5] = other_text.lines().nth(list + 5).unwrap();
    assert!(reject(&foreign).contains("do not belong"), "{}", reject(&foreign));
    for k in ["1", "2"] {
        let error = AnyPublicKey::from_text(&with(&text, "k", k)).unwrap_err().to_string();
        assert!(error.contains("do not belong"), "{error}");
    }
    let public_key = format!("{:?}", hex::encode(other.public_key_bytes()));
    AnyPublicKey::from_text(&with(&text, "public_key", &public_key)).unwrap_err();
}

fn every_field_of_a_public_file_is_checked(suite: Suite) {
    let (public, _) = key(suite, 2, 3, 5);
    let text = public.to_text(&name());
    let reject = |field: &str, value: &str| {
        let error = AnyPublicKey::from_text(&with(&text, field, value)).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    assert!(reject("format", "2").contains("format: 2 is not known"));
    assert!(reject("format", "\"x\"").starts_with("line 2: "));
    assert!(reject("name", "\"Files\"").starts_with("name: \"Files\" is not a key name"));
    assert!(reject("name", "\"\"").starts_with("name: "));
    assert!(reject("suite", "\"rot13\"").contains("unknown suite \"rot13\"; the known ones are sg02-ristretto255"));
    assert!(reject("k", "0").starts_with("k, n: "));
    assert!(reject("k", "4").starts_with("k, n: "));
    assert!(reject("k", "65536").starts_with("line 6: "));
    assert!(reject("k", "-1").starts_with("line 6: "));
    assert!(reject("public_key", "\"zz\"").starts_with("public_key: not hexadecimal"));
    assert!(reject("public_key", "\"00\"").starts_with("public_key: wrong length"));
    assert!(reject("key_id", "\"00\"").starts_with("key_id: is 00, but the public key's is "));
    assert!(reject("n", "3\nsecret = \"a\"").contains("unknown field"));
    assert!(reject("verification_keys", "[ 1,").starts_with("line 9: ") || has_proof_of_possession(suite));
    assert!(AnyPublicKey::from_text("").unwrap_err().to_string().contains("missing field"));
    match has_proof_of_possession(suite) {
        true => {
            let other = key(suite, 2, 3, 6).0.to_text(&name());
            let proof = other.lines().find_map(|line| line.strip_prefix("proof_of_possession = ")).unwrap();
            assert!(reject("proof_of_possession", proof).contains("proof_of_possession does not fit"));
            assert!(reject("proof_of_possession", "\"00\"").contains("proof_of_possession does not fit"));
            let without: String = text.lines().filter(|line| !line.starts_with("proof")).collect::<Vec<_>>().join("\n");
            let error = AnyPublicKey::from_text(&without).unwrap_err().to_string();
            assert!(error.contains("proof_of_possession does not fit"), "{error}");
        }
        false => {
            assert!(reject("n", "3\nproof_of_possession = \"00\"").contains("proof_of_possession does not fit"));
        }
    }
}

fn every_field_of_a_share_file_is_checked(suite: Suite) {
    let (public, keys) = key(suite, 2, 3, 7);
    let text = keys[0].to_text(&name()).expose().clone();
    let secret = text.lines().find_map(|line| line.strip_prefix("secret = \"")).unwrap().trim_end_matches('"');
    let len = secret.len() / 2;
    let reject = |field: &str, value: &str| {
        let error = AnyKeyShare::from_text(&with(&text, field, value), &public).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(!error.contains(secret), "{error}");
        error
    };
    assert!(reject("format", "9").contains("format: 9 is not known"));
    assert!(reject("name", "\"a b\"").starts_with("name: "));
    assert!(reject("suite", "\"rot13\"").starts_with("suite: "));
    assert!(reject("key_id", "\"00\"").starts_with("the share is of key 00 "));
    assert_eq!(reject("index", "4"), "index: 4 is not a party of this key: it has parties 1 to 3");
    assert!(reject("index", "0").starts_with("index: 0 is not a party"));
    assert!(reject("index", "70000").starts_with("index: 70000 is not a party"));
    assert!(reject("index", "2").starts_with("secret: does not fit the verification key of party 2"));
    assert!(reject("index", &format!("\"{secret}\"")).starts_with("line 6: not a share file"));
    assert!(reject("secret", "\"00\"").starts_with("secret: wrong length"));
    assert!(reject("secret", &format!("\"{}\"", "ff".repeat(len))).starts_with("secret: not a canonical"));
    assert!(reject("secret", &format!("\"{}\"", "00".repeat(len))).starts_with("secret: does not fit"));
    assert!(reject("secret", &format!("\"{}\"", "zz".repeat(len))).starts_with("secret: not hexadecimal"));
    assert!(reject("secret", &format!("\"\\u0030{}\"", &secret[1..])).starts_with("line 7: "));
    assert!(AnyKeyShare::from_text("", &public).unwrap_err().to_string().contains("missing field"));

    for other in curve_suites() {
        let (other_public, _) = key(other, 2, 3, 8);
        let error = AnyKeyShare::from_text(&text, &other_public).unwrap_err();
        assert!(matches!(error, KeyFileError::OtherKey { .. }), "{error}");
    }
    assert!(!format!("{:?}", keys[0]).contains(secret));
}

#[test]
fn names_have_a_form() {
    for good in ["a", "0", "a.b_c-d", &"x".repeat(64)] {
        assert_eq!(good.parse::<KeyName>().unwrap().as_str(), good);
    }
    for bad in ["", "A", ".a", "-a", "_a", "a/b", "a b", "ä", "a\n", &"x".repeat(65)] {
        let error = bad.parse::<KeyName>().unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}
