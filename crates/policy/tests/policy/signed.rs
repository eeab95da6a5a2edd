//! Requests that a client signed and anybody may send.

use proptest::prelude::*;
use theta_names::{Label, Operation};
use theta_policy::Unidentified;
use theta_statements::{
    Ask, DecodeError, Invalid, MOST_REQUEST_LIFETIME, RequestTerms, SignedRequest, SignedRequestError, UnixTime,
    Validity,
};

use crate::support::{MINUTE, NOW, allow, key, label, policy, sign, state};

const SOON: Validity = Validity { from: NOW, until: UnixTime(NOW.0 + MINUTE) };

fn full() -> Ask<'static> {
    Ask { label: label(b"label"), parameters: b"seed", slot: Some(7), ..sign(b"m") }
}

fn signed(ask: &Ask<'_>, number: u8, validity: Validity) -> SignedRequest {
    SignedRequest::sign(RequestTerms::of(ask, validity, [9; 16]).unwrap(), &key(number))
}

#[test]
fn a_signature_is_a_caller_for_this_ask_alone() {
    let policy = policy(&allow("r", "carol", "root", "sign", ""));
    let request = signed(&full(), 3, SOON);
    let asked = policy.signed_request(&request, full(), NOW).unwrap();
    assert_eq!((asked.client().as_str(), asked.recognised_by()), ("carol", "signature"));
    assert!(policy.decide(&asked, NOW, &state()).allowed);

    let good = full();
    for (what, other) in [
        ("group", Ask { group: "other", ..good }),
        ("key", Ask { key: Some("leaf"), ..good }),
        ("key", Ask { key: None, ..good }),
        ("operation", Ask { operation: Operation::FlipCoin, ..good }),
        ("label", Ask { label: Label::EMPTY, ..good }),
        ("statement", Ask { statement: b"n", ..good }),
        ("choice of parameters", Ask { parameters: b"", ..good }),
        ("slot", Ask { slot: None, ..good }),
        ("slot", Ask { slot: Some(8), ..good }),
    ] {
        let refused = policy.signed_request(&request, other, NOW).unwrap_err();
        assert_eq!(refused, Unidentified::Signed(SignedRequestError::Differs(what)));
    }
    let stranger = policy.signed_request(&signed(&good, 4, SOON), good, NOW).unwrap_err();
    assert_eq!(stranger, Unidentified::Key(key(4).verifying_key()));
    let approver = policy.signed_request(&signed(&good, 11, SOON), good, NOW).unwrap_err();
    assert_eq!(approver, Unidentified::Key(key(11).verifying_key()), "an approver is no client");
}

#[test]
fn it_holds_for_a_bounded_time() {
    let request = signed(&full(), 3, SOON);
    assert_eq!(request.verify(&full(), UnixTime(NOW.0 - 1)), Err(Invalid::NotYet(NOW).into()));
    assert_eq!(request.verify(&full(), SOON.until), Err(Invalid::Expired(SOON.until).into()));
    let long = Validity { from: NOW, until: NOW.plus(MOST_REQUEST_LIFETIME + 1) };
    let refused = signed(&full(), 3, long).verify(&full(), NOW);
    assert!(matches!(refused, Err(SignedRequestError::Invalid(Invalid::Lifetime { .. }))));
    let longest = Validity { from: NOW, until: NOW.plus(MOST_REQUEST_LIFETIME) };
    assert_eq!(signed(&full(), 3, longest).verify(&full(), NOW), Ok(()));
}

#[test]
fn no_changed_byte_goes_unnoticed() {
    let request = signed(&full(), 3, SOON);
    let bytes = request.encode();
    assert_eq!(SignedRequest::decode(&bytes).as_ref(), Ok(&request));
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        if let Ok(changed) = SignedRequest::decode(&changed) {
            assert!(changed.verify(&full(), NOW).is_err(), "byte {place}");
        }
        assert!(SignedRequest::decode(&bytes[..place]).is_err());
    }
    let mut forged = bytes.clone();
    *forged.last_mut().unwrap() ^= 1;
    let forged = SignedRequest::decode(&forged).unwrap();
    assert_eq!(forged.verify(&full(), NOW), Err(SignedRequestError::FalseSignature));
    assert_eq!(forged.id(), request.id(), "a second signature makes no second request");

    let mut next = bytes.clone();
    assert_eq!(&next[4..20], b"theta/request/v1");
    next[19] = b'2';
    assert!(matches!(SignedRequest::decode(&next), Err(DecodeError::Domain { got, .. }) if got == "theta/request/v2"));
    assert_eq!(SignedRequest::decode(&[bytes.as_slice(), &[0]].concat()), Err(DecodeError::Trailing));
}

#[test]
fn ids_tell_apart_what_is_asked_twice() {
    let mut terms = RequestTerms::of(&full(), SOON, [9; 16]).unwrap();
    let first = SignedRequest::sign(terms.clone(), &key(3));
    assert_eq!(SignedRequest::from_text(&first.to_text()).unwrap().id(), first.id());
    terms.nonce = [8; 16];
    assert_ne!(SignedRequest::sign(terms, &key(3)).id(), first.id());
    assert!(SignedRequest::from_text(&first.to_text().replace("REQUEST", "APPROVAL")).is_err());
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0_usize..300) {
        let _ = SignedRequest::decode(&bytes);
        let mut near = signed(&full(), 3, SOON).encode();
        for (target, byte) in near.iter_mut().skip(cut).zip(bytes.iter().take(3)) {
            *target = *byte;
        }
        if let Ok(decoded) = SignedRequest::decode(&near) {
            prop_assert_eq!(decoded.encode(), near, "one encoding for each");
        }
    }
}
