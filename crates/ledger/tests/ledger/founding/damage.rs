//! Cards and foundings that were changed, cut or made up.

use proptest::prelude::*;
use theta_groups::Transcript;
use theta_ledger::founding::{Card, CardSignatures, Founding, FoundingError};
use theta_names::codec::{DecodeError, Writer};

use crate::keys::{Key, Schnorr, card, content};

/// Somebody who believes everything.
struct Credulous;

impl CardSignatures for Credulous {
    fn vartime_verify(&self, _: &[u8; 32], _: &Transcript, _: &[u8; 64]) -> bool {
        true
    }
}

#[test]
fn every_bit_of_a_card_counts() {
    let bytes = card("Alpha Trust").encode();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            assert!(Card::decode(&changed, &Schnorr).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn a_card_is_signed_with_its_own_key() {
    let content = content("a");
    let signature = Key::new(b"b").sign(&content.signed());
    assert_eq!(content.with_signature(signature, &Schnorr), Err(FoundingError::Signature("a".to_owned())));
}

#[test]
fn the_key_of_nobody_signs_nothing() {
    let mut content = content("a");
    content.ceremony_key = [0; 32];
    // R = 0 and s = 0 would be a signature of the neutral element on whatever one likes.
    assert!(content.with_signature([0; 64], &Schnorr).is_err());
}

#[test]
fn a_card_has_two_addresses_and_an_end_after_its_beginning() {
    let mut one = content("a");
    one.api_address = one.peer_address.clone();
    assert_eq!(one.with_signature([0; 64], &Credulous), Err(FoundingError::OneAddress("a".to_owned())));
    let mut ended = content("a");
    ended.until = ended.made - 1;
    assert_eq!(ended.with_signature([0; 64], &Credulous), Err(FoundingError::Period("a".to_owned())));
}

/// A card with this address and no regard for how addresses are written.
fn raw_card(address: &str) -> Vec<u8> {
    let content = content("a");
    Writer::of("theta/card/v1")
        .word("a")
        .raw(&content.ceremony_key)
        .raw(&content.tls_key)
        .raw(content.operator_key.as_bytes())
        .text(address)
        .text("a.example:1")
        .u64(1)
        .u64(2)
        .raw(&[0; 64])
        .finish()
}

#[test]
fn there_is_one_encoding_of_a_card() {
    assert!(Card::decode(&raw_card("b.example:1"), &Credulous).is_ok());
    for other in ["B.example:1", "b.example:01", "[2001:DB8::1]:1", "0.0.0.0:1", "b.example", "b.example:0", ""] {
        assert!(Card::decode(&raw_card(other), &Credulous).is_err(), "{other:?}");
    }
}

/// A founding of these cards, as they stand.
fn raw_founding(name: &str, k: u16, n: u16, cards: &[&[u8]]) -> Vec<u8> {
    let writer = Writer::of("theta/founding/v1").word(name).u16(k).u16(n);
    cards.iter().fold(writer, |writer, card| writer.bytes(card)).finish()
}

#[test]
fn there_is_one_encoding_of_a_founding() {
    let (a, b) = (card("a").encode(), card("b").encode());
    let read = |bytes: &[u8]| Founding::decode(bytes, &Schnorr);
    assert!(read(&raw_founding("g", 1, 2, &[&a, &b])).is_ok());
    assert_eq!(read(&raw_founding("g", 1, 2, &[&b, &a])), Err(FoundingError::Order));
    let damaged = |error| Err(FoundingError::Encoding(error));
    assert_eq!(read(&raw_founding("g", 1, 1, &[&a, &b])), damaged(DecodeError::Trailing), "a card too many");
    assert_eq!(read(&raw_founding("g", 1, 3, &[&a, &b])), damaged(DecodeError::Truncated), "a card too few");
    assert!(matches!(read(&raw_founding("g", 1, 1025, &[&a])), Err(FoundingError::Members { got: 1025 })));
    assert!(matches!(read(&raw_founding("g", 3, 2, &[&a, &b])), Err(FoundingError::Threshold { k: 3, n: 2 })));
    assert!(matches!(read(&raw_founding("g", 1, 2, &[&a, &a])), Err(FoundingError::Double { .. })));
    assert!(read(&raw_founding("g", 1, 1, &[&[&a[..], &[0]].concat()])).is_err());
    assert!(matches!(read(&vec![0; 3 << 20]), Err(FoundingError::TooLong(_))));
}

proptest! {
    #[test]
    fn anything_may_come(bytes in proptest::collection::vec(any::<u8>(), 0..400), text in ".{0,400}") {
        prop_assert!(Card::decode(&bytes, &Credulous).is_err());
        prop_assert!(Founding::decode(&bytes, &Credulous).is_err());
        prop_assert!(Founding::from_text(&text, &Credulous).is_err());
    }

    /// What is read is what is written: no two byte strings are one founding.
    #[test]
    fn what_reads_writes_itself(at in 0_usize..600, byte in any::<u8>()) {
        let mut bytes = raw_founding("g", 1, 2, &[&card("a").encode(), &card("b").encode()]);
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        if let Ok(founding) = Founding::decode(&bytes, &Credulous) {
            prop_assert_eq!(founding.encode(), bytes);
        }
    }
}
