//! `vectors/founding`, which the oracle makes from the specification alone.

use serde_json::Value;
use theta_groups::Secret;
use theta_ledger::OperatorKey;
use theta_ledger::founding::{Card, CardContent, Founding};

use crate::keys::{Key, Schnorr};

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    hex::decode(value.as_str().unwrap()).unwrap().try_into().unwrap()
}

fn card(value: &Value) -> Card {
    let text = |name: &str| value[name].as_str().unwrap();
    let key = Key::new(&bytes::<32>(&value["master"]));
    let operator = OperatorKey::new(Secret::new(bytes::<32>(&value["operator_master"])));
    assert_eq!(operator.id().unwrap().as_bytes(), &bytes::<32>(&value["operator_key"]));
    let content = CardContent {
        name: text("name").parse().unwrap(),
        ceremony_key: bytes(&value["ceremony_key"]),
        tls_key: bytes(&value["tls_key"]),
        operator_key: operator.id().unwrap(),
        peer_address: text("peer_address").parse().unwrap(),
        api_address: text("api_address").parse().unwrap(),
        made: value["made"].as_u64().unwrap(),
        until: value["until"].as_u64().unwrap(),
    };
    assert_eq!(key.public(), content.ceremony_key);
    let signature = key.sign(&content.signed());
    assert_eq!(signature, bytes::<64>(&value["signature"]));
    content.with_signature(signature, &Schnorr).unwrap()
}

#[test]
fn the_founding_of_the_oracle_is_ours() {
    let file: Value = serde_json::from_str(include_str!("../../../../../vectors/founding/founding.json")).unwrap();
    let cards: Vec<Card> = file["cards"].as_array().unwrap().iter().map(card).collect();
    let threshold = file["threshold"].as_u64().unwrap().try_into().unwrap();
    let founding = Founding::assemble(file["name"].as_str().unwrap(), threshold, cards).unwrap();
    assert_eq!(hex::encode(founding.encode()), file["founding"]);
    assert_eq!(founding.to_text(), file["text"]);
    assert_eq!(founding.fingerprint().to_string(), file["fingerprint"]);
    assert_eq!(Founding::from_text(file["text"].as_str().unwrap(), &Schnorr), Ok(founding));
}
