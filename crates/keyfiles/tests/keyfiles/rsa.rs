//! Files of RSA keys.

use theta_groups::modular::Integer;
use theta_keyfiles::{KeyFileError, KeyShareText, PublicKeyText};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};
use theta_schemes::signatures::sh00::{Pkcs1Sha256, RsaPublicKey, Sh00, deal_primes};

use crate::fixture::{name, primes, rng, rsa_key as key, rsa_suites, threshold, use_key, with, written_and_read};

type Rsa = Sh00<Pkcs1Sha256>;

#[test]
fn files_round_trip() {
    for (suite, (bits, k, n)) in rsa_suites().zip([(2048, 2, 4), (3072, 1, 1), (2048, 5, 5), (4096, 2, 2)]) {
        let (public, keys) = key(suite, bits, k, n, 1);
        let (read, read_keys) = written_and_read(&public, &keys);
        use_key(&read, &read_keys);
    }
}

#[test]
fn many_verification_keys() {
    let (public, _) = key(Suite::Sh00Pkcs1Sha256, 2048, 7, 30, 2);
    let text = public.to_text(&name());
    assert_eq!(AnyPublicKey::from_text(&text).unwrap().1, public);
    for k in ["1", "6"] {
        let error = AnyPublicKey::from_text(&with(&text, "k", k)).unwrap_err().to_string();
        assert!(error.contains("do not belong"), "{error}");
    }
}

fn rejected(text: &str) -> String {
    let error = AnyPublicKey::from_text(text).unwrap_err().to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let (public, _) = key(Suite::Sh00PssSha256, 2048, 3, 5, 3);
    let (other, _) = key(Suite::Sh00PssSha256, 2048, 3, 5, 4);
    let (text, other_text) = (public.to_text(&name()), other.to_text(&name()));
    let lines: Vec<&str> = text.lines().collect();
    let list = lines.iter().position(|line| line.starts_with("verification_keys")).unwrap();
    let reject = |lines: &[&str]| rejected(&lines.join("\n"));

    for (i, j) in [(1, 2), (4, 5), (1, 5)] {
        let mut swapped = lines.clone();
        swapped.swap(list + i, list + j);
        assert!(reject(&swapped).contains("do not belong"), "{}", reject(&swapped));
    }
    let mut missing = lines.clone();
    missing.remove(list + 3);
    assert!(reject(&missing).contains("there are 4 verification keys: it takes 5"), "{}", reject(&missing));
    for i in 1..=5 {
        let mut foreign = lines.clone();
        foreign[list + i] = other_text.lines().nth(list + i).unwrap();
        assert!(reject(&foreign).contains("do not belong"), "{}", reject(&foreign));
    }
    let other_base = other_text.lines().find_map(|line| line.strip_prefix("verification_base = ")).unwrap();
    assert!(rejected(&with(&text, "verification_base", other_base)).contains("do not belong"));
}

#[test]
fn every_field_of_a_public_file_is_checked() {
    let dealt = deal_primes::<Rsa>(primes(2048), threshold(2, 3), &mut rng(5));
    let modulus = dealt.public.modulus().value();
    let text = AnyPublicKey::of::<Rsa>(dealt.public.clone()).to_text(&name());
    let reject = |field: &str, value: &str| rejected(&with(&text, field, value));
    let number = |number: &Integer| format!("{:?}", hex::encode(number.to_be_bytes(256).unwrap()));
    assert!(reject("format", "2").contains("format: 2 is not known"));
    assert!(reject("format", "\"x\"").starts_with("line 2: "));
    assert!(reject("name", "\"Files\"").starts_with("name: \"Files\" is not a key name"));
    // A file without a known suite is read as a curve's.
    assert!(reject("suite", "\"rot13\"").starts_with("line "));
    assert!(reject("suite", "\"sh00-pss-sha256\"").starts_with("key_id: is "));
    // A curve's suite on an RSA key's fields.
    reject("suite", "\"frost-ed25519\"");
    assert!(reject("k", "0").starts_with("k, n: "));
    assert!(reject("k", "4").starts_with("k, n: "));
    assert!(reject("k", "1").contains("do not belong"));
    assert!(reject("n", "2").contains("there are 3 verification keys: it takes 2"));
    assert!(reject("n", "65536").starts_with("line "));
    assert!(reject("key_id", "\"00\"").starts_with("key_id: is 00, but the public key's is "));
    for exponent in ["3", "65536", "0"] {
        assert!(reject("exponent", exponent).starts_with("exponent: not a canonical"));
    }
    assert!(reject("n", "3\nsecret = \"a\"").contains("unknown field"));
    assert!(AnyPublicKey::from_text("").unwrap_err().to_string().contains("missing field"));
    for field in ["modulus", "verification_base"] {
        assert!(reject(field, "\"zz\"").starts_with(&format!("{field}: not hexadecimal")));
        assert!(reject(field, "\"00\"").starts_with(&format!("{field}: wrong length")));
        let without: String = text.lines().filter(|line| !line.starts_with(field)).collect::<Vec<_>>().join("\n");
        assert!(rejected(&without).contains("missing field"));
    }

    // The modulus: even, too short, with a small factor, of another key.
    let less = modulus.sub(&Integer::from_u64(1)).unwrap();
    assert!(reject("modulus", &number(&less)).starts_with("modulus: not a canonical"));
    assert!(reject("modulus", &format!("\"{}\"", "00".repeat(256))).starts_with("modulus: not a canonical"));
    // A modulus of 2041 bits in as many bytes: the other numbers are not below it.
    reject("modulus", &format!("\"01{}01\"", "00".repeat(254)));
    let mut small_factor = modulus.clone();
    while small_factor.rem_u64(3) != 0 || !small_factor.is_odd() {
        small_factor.add_u64(2);
    }
    assert!(reject("modulus", &number(&small_factor)).contains("the modulus has a small factor"));
    let mut foreign = modulus.clone();
    foreign.add_u64(2);
    while (3..1 << 12).any(|small| foreign.rem_u64(small) == 0) {
        foreign.add_u64(2);
    }
    assert!(reject("modulus", &number(&foreign)).contains("do not belong"));

    // The base: N, +1, -1, a factor.
    let [p, _] = primes(2048).expose();
    assert!(reject("verification_base", &number(modulus)).starts_with("verification_base: not a canonical"));
    for root_of_one in [&Integer::from_u64(1), &less] {
        assert!(reject("verification_base", &number(root_of_one)).contains("identity"));
    }
    for (bad, complaint) in [(p, "a factor in common"), (&Integer::from_u64(0), "a factor in common")] {
        assert!(reject("verification_base", &number(bad)).contains(complaint));
    }

    // The same in the list.
    let own = hex::encode(dealt.public.modulus().encode(&dealt.public.verification_keys()[1]));
    let replaced = |by: &str| rejected(&text.replace(&own, by));
    assert!(replaced("00").starts_with("verification_keys, entry 2: wrong length"));
    assert!(replaced("zz").starts_with("verification_keys, entry 2: not hexadecimal"));
    assert!(replaced(number(modulus).trim_matches('"')).starts_with("verification_keys, entry 2: not a canonical"));
    assert!(replaced(number(&Integer::from_u64(1)).trim_matches('"')).contains("identity"));
    assert!(replaced(number(p).trim_matches('"')).contains("a factor in common"));
}

#[test]
fn keys_too_short_for_use_are_not_read() {
    let (public, _) = key(Suite::Sh00Pkcs1Sha256, 1024, 2, 3, 6);
    assert!(rejected(&public.to_text(&name())).starts_with("modulus: wrong length"));
    let dealt = deal_primes::<Rsa>(primes(1024), threshold(2, 3), &mut rng(6)).public;
    let (modulus, base) = (dealt.modulus().clone(), dealt.verification_base().clone());
    let error = RsaPublicKey::new::<Rsa>(dealt.threshold(), modulus, base, dealt.verification_keys().to_vec());
    assert!(error.unwrap_err().to_string().contains("does not have 2048, 3072 or 4096 bits"));
}

#[test]
fn every_field_of_a_share_file_is_checked() {
    let (public, keys) = key(Suite::Sh00Pkcs1Sha512, 2048, 2, 3, 7);
    let text = keys[0].to_text(&name()).expose().clone();
    let secret = text.lines().find_map(|line| line.strip_prefix("secret = \"")).unwrap().trim_end_matches('"');
    assert_eq!(secret.len(), 512);
    let reject = |field: &str, value: &str| {
        let error = AnyKeyShare::from_text(&with(&text, field, value), &public).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(!error.contains(secret), "{error}");
        error
    };
    assert!(reject("format", "9").contains("format: 9 is not known"));
    assert!(reject("name", "\"a b\"").starts_with("name: "));
    assert!(reject("suite", "\"rot13\"").starts_with("suite: "));
    assert!(reject("suite", "\"sh00-pss-sha256\"").starts_with("the share is of key "));
    assert!(reject("key_id", "\"00\"").starts_with("the share is of key 00 "));
    assert_eq!(reject("index", "4"), "index: 4 is not a party of this key: it has parties 1 to 3");
    assert!(reject("index", "0").starts_with("index: 0 is not a party"));
    assert!(reject("index", "70000").starts_with("index: 70000 is not a party"));
    assert!(reject("index", "2").starts_with("secret: does not fit the verification key of party 2"));
    assert!(reject("secret", "\"00\"").starts_with("secret: wrong length"));
    assert!(reject("secret", &format!("\"{}\"", "ff".repeat(256))).starts_with("secret: not a canonical"));
    assert!(reject("secret", &format!("\"40{}\"", "00".repeat(255))).starts_with("secret: not a canonical"));
    assert!(reject("secret", &format!("\"{}\"", "00".repeat(256))).starts_with("secret: does not fit"));
    assert!(reject("secret", &format!("\"{}\"", "zz".repeat(256))).starts_with("secret: not hexadecimal"));
    assert!(reject("secret", &format!("\"\\u0030{}\"", &secret[1..])).starts_with("line 7: "));
    assert!(AnyKeyShare::from_text("", &public).unwrap_err().to_string().contains("missing field"));
    for other in rsa_suites() {
        let (other_public, _) = key(other, 2048, 2, 3, 8);
        let error = AnyKeyShare::from_text(&text, &other_public).unwrap_err();
        if other == public.suite() {
            // Another sharing of the same modulus has the same id.
            assert!(matches!(error, KeyFileError::ShareMismatch(_)), "{error}");
        } else {
            assert!(matches!(error, KeyFileError::OtherKey { .. }), "{error}");
        }
    }
}
