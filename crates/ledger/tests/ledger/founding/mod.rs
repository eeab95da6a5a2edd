//! Groups that begin.

mod damage;
mod vectors;

use proptest::prelude::*;
use theta_ledger::founding::{Card, CardContent, Founding, FoundingError, MOST_MEMBERS};

use crate::keys::{Schnorr, card, content, operator, signed};

const NAMES: [&str; 5] = ["Zebra Trust", "alpha bank", "Alpha Bank 2", "M. & N. (Oslo)", "beta"];

fn founded(cards: Vec<Card>) -> Result<Founding, FoundingError> {
    Founding::assemble("payments", 2, cards)
}

proptest! {
    /// Whoever puts the same cards together gets the same bytes.
    #[test]
    fn the_order_of_cards_does_not_matter(names in Just(NAMES.to_vec()).prop_shuffle()) {
        let first = founded(NAMES.map(card).into()).unwrap();
        let other = founded(names.into_iter().map(card).collect()).unwrap();
        prop_assert_eq!(first.encode(), other.encode());
        prop_assert_eq!(first.fingerprint(), other.fingerprint());
    }
}

#[test]
fn members_are_numbered_by_name_and_read_back() {
    let founding = founded(NAMES.map(card).into()).unwrap();
    let numbered: Vec<_> = founding.numbered().map(|(node, card)| (node.get(), card.name().as_str())).collect();
    let expected = [(1, "alpha bank"), (2, "Alpha Bank 2"), (3, "beta"), (4, "M. & N. (Oslo)"), (5, "Zebra Trust")];
    assert_eq!(numbered, expected);
    assert_eq!(Founding::decode(&founding.encode(), &Schnorr).as_ref(), Ok(&founding));
    assert_eq!(Founding::from_text(&founding.to_text(), &Schnorr).as_ref(), Ok(&founding));
    assert_eq!((founding.name(), founding.threshold()), ("payments", 2));
}

#[test]
fn cards_travel_alone_and_together() {
    let cards = NAMES.map(card);
    let mail = format!("Hello,\n\n{}\n-- \nZ.\n\n{}", cards[0].to_text(), cards[1].to_text());
    assert_eq!(Card::all_from_text(&mail, &Schnorr), Ok(cards[..2].to_vec()));
    assert!(matches!(Card::all_from_text("Hello", &Schnorr), Err(FoundingError::Text(_))));
    let group = founded(cards.to_vec()).unwrap().to_text();
    assert!(matches!(Card::all_from_text(&group, &Schnorr), Err(FoundingError::Text(_))), "a founding is no card");
    assert!(matches!(Founding::from_text(&mail, &Schnorr), Err(FoundingError::Text(_))), "a card is no founding");
    assert!(matches!(Founding::from_text(&[group.as_str(); 2].concat(), &Schnorr), Err(FoundingError::Text(_))));
}

#[test]
fn every_part_of_a_founding_is_in_its_fingerprint() {
    let alone = |card: Card| Founding::assemble("g", 1, vec![card]).unwrap().fingerprint();
    let base = alone(card("a"));
    let changes: [fn(&mut CardContent); 7] = [
        |card| card.operator_key = operator("b").id().unwrap(),
        |card| card.name = "b".parse().unwrap(),
        |card| card.tls_key[31] ^= 1,
        |card| card.peer_address = "a.example:7103".parse().unwrap(),
        |card| card.api_address = "a.example:7103".parse().unwrap(),
        |card| card.made = 999,
        |card| card.until = 2_001,
    ];
    for change in changes {
        let mut content = content("a");
        change(&mut content);
        assert_ne!(alone(signed(content, "a")), base);
    }
    let pair = || vec![card("a"), card("b")];
    let prints =
        [Founding::assemble("g", 1, pair()), Founding::assemble("g", 2, pair()), Founding::assemble("h", 1, pair())];
    let prints: std::collections::BTreeSet<_> = prints.map(|founding| founding.unwrap().fingerprint()).into();
    assert_eq!(prints.len(), 3);
}

#[test]
fn members_share_nothing() {
    let double = |change: &dyn Fn(&mut CardContent), key: &str| {
        let mut content = content("other");
        change(&mut content);
        match Founding::assemble("g", 1, vec![card("one"), signed(content, key)]) {
            Err(FoundingError::Double { what, .. }) => what,
            other => panic!("{other:?}"),
        }
    };
    let one = content("one");
    assert_eq!(double(&|card| card.name = "ONE".parse().unwrap(), "other"), "name");
    assert_eq!(double(&|card| card.ceremony_key = one.ceremony_key, "one"), "key of ceremonies");
    assert_eq!(double(&|card| card.operator_key = one.operator_key, "other"), "operator's key");
    assert_eq!(double(&|card| card.tls_key = one.tls_key, "other"), "TLS key");
    assert_eq!(double(&|card| card.peer_address = one.api_address.clone(), "other"), "address");
    assert_eq!(double(&|card| card.api_address = one.api_address.clone(), "other"), "address");
    let twice = Founding::assemble("g", 1, vec![card("one"), card("one")]);
    assert!(matches!(twice, Err(FoundingError::Double { .. })), "{twice:?}");
}

#[test]
fn impossible_groups_are_refused() {
    assert_eq!(Founding::assemble("g", 1, Vec::new()), Err(FoundingError::Members { got: 0 }));
    for k in [0, 2] {
        assert_eq!(Founding::assemble("g", k, vec![card("a")]), Err(FoundingError::Threshold { k, n: 1 }));
    }
    for name in ["", ".g", "g g", "g/h", "gé", &"g".repeat(65)] {
        let refused = Founding::assemble(name, 1, vec![card("a")]);
        assert!(matches!(refused, Err(FoundingError::GroupName(_))), "{name:?}");
    }
    let many = vec![card("a"); MOST_MEMBERS + 1];
    assert_eq!(Founding::assemble("g", 1, many), Err(FoundingError::Members { got: MOST_MEMBERS + 1 }));
}

#[test]
fn a_card_is_good_for_a_time() {
    let founding = founded(NAMES.map(card).into()).unwrap();
    assert_eq!(founding.check_time(2_000), Ok(()));
    assert_eq!(founding.check_time(2_001), Err(FoundingError::Ended("alpha bank".to_owned())));
    let late = Founding::decode(&founding.encode(), &Schnorr);
    assert_eq!(late, Ok(founding), "whoever reads a founding later does not ask");
}
