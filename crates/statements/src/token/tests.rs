use proptest::prelude::*;

use super::*;

const TEXT: &str = "theta-token2-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const NODE: [u8; 32] = [7; 32];
const HOUR: Validity = Validity { from: UnixTime(1_000_000), until: UnixTime(1_000_000 + MOST_PROOF_LIFETIME) };
const WITHIN: UnixTime = UnixTime(2_000_000);

fn token() -> Token {
    TEXT.parse().unwrap()
}

#[test]
fn tokens_and_keys_round_trip() {
    let token = token();
    assert_eq!(token.to_text().expose(), TEXT);
    // From OpenSSL: the public key of the PKCS #8 file whose seed is the bytes 0 to 31.
    let expected = "ed25519:03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
    assert_eq!(token.key().to_string(), expected);
    assert_eq!(expected.parse(), Ok(token.key()));
    assert_eq!(format!("{token:?}"), "Token(<redacted>)");
}

#[test]
fn what_people_make_up_is_no_token() {
    for bad in [
        "",
        "hunter2",
        "theta-token2-hunter2",
        TEXT.strip_prefix("theta-token2-").unwrap(),
        &format!("{TEXT}A"),
        &TEXT.replace("Hh8", "Hh9"),
    ] {
        assert_eq!(bad.parse::<Token>().unwrap_err(), TokenError::Malformed, "{bad}");
    }
    for bad in
        ["", "md5:00", &"0".repeat(64), &format!("sha256:{}", "0".repeat(64)), &format!("ed25519:01{}", "0".repeat(62))]
    {
        assert!(bad.parse::<TokenKey>().is_err(), "{bad}");
    }
}

/// One that clients of before sent to every node must not come into use again, and a client of before cannot send one of now.
#[test]
fn tokens_that_were_sent_whole_are_none_any_more() {
    let old = "theta-token-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    assert_eq!(old.parse::<Token>().unwrap_err(), TokenError::SentWhole);
    assert!(!TEXT.starts_with("theta-token-"), "the prefix by which clients of before know tokens");
    for whole in [old, TEXT] {
        let text = format!("# {whole}\n");
        assert_eq!(text.get(find_token(&text).unwrap()), Some(whole));
    }
    assert_eq!(find_token("theta-token-operator theta-token2-x"), None);
}

#[test]
fn a_proof_is_good_for_one_node_and_its_time() {
    let proof = token().prove(&NODE, HOUR);
    let proven = proof.verify(&NODE, WITHIN).unwrap();
    assert_eq!((proven.key(), proven.until()), (token().key(), HOUR.until));
    assert_eq!(proof.verify(&[8; 32], WITHIN), Err(TokenProofError::False));
    assert_eq!(proof.verify(&NODE, UnixTime(999_999)), Err(TokenProofError::Invalid(Invalid::NotYet(HOUR.from))));
    assert_eq!(proof.verify(&NODE, HOUR.until), Err(TokenProofError::Invalid(Invalid::Expired(HOUR.until))));
    let long = Validity { until: HOUR.until.plus(1), ..HOUR };
    let refused = token().prove(&NODE, long).verify(&NODE, WITHIN);
    assert!(matches!(refused, Err(TokenProofError::Invalid(Invalid::Lifetime { .. }))), "{refused:?}");
}

#[test]
fn no_changed_bit_is_believed() {
    let text = token().prove(&NODE, HOUR).to_text();
    assert_eq!(text.len(), PROOF_TEXT_LEN);
    let mut bytes = [0; PROOF_LEN];
    Base64UrlUnpadded::decode(&text, &mut bytes).unwrap();
    for bit in 0..PROOF_LEN * 8 {
        let mut changed = bytes;
        changed[bit / 8] ^= 1 << (bit % 8);
        let proof: TokenProof = Base64UrlUnpadded::encode_string(&changed).parse().unwrap();
        assert!(proof.verify(&NODE, WITHIN).is_err(), "bit {bit}");
    }
}

#[test]
fn a_proof_shows_nothing_that_could_be_used() {
    let proof = token().prove(&NODE, HOUR);
    let shown = format!("{proof:?}");
    assert!(!shown.contains(&format!("{:?}", proof.signature)[..16]), "{shown}");
    // What somebody sends who has an older client is not repeated.
    assert_eq!(TEXT.parse::<TokenProof>(), Err(TokenProofError::Malformed));
    assert!(!TokenProofError::Malformed.to_string().contains(TEXT));
}

proptest! {
    #[test]
    fn no_text_panics(text in "[A-Za-z0-9_-]{150}|\\PC{0,200}") {
        if let Ok(proof) = text.parse::<TokenProof>() {
            prop_assert!(proof.verify(&NODE, WITHIN).is_err());
        }
    }
}
