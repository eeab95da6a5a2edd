//! The known answers of `vectors/client`, which another implementation made from the specifications.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails panics")]

use base64ct::{Base64UrlUnpadded, Encoding};
use serde_json::Value;
use theta_groups::Secret;
use theta_names::{Label, Operation, Version};
use theta_statements::{
    Approval, ApprovalTerms, Ask, CancelRequest, CeremonyRequest, Digest, KeyChange, MemberRequest, RequestTerms,
    SignedRequest, SigningKey, StateChange, Token, TokenProof, UnixTime, Validity,
};

fn cases(file: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(file).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn changes() -> Vec<Value> {
    cases(include_str!("../../../vectors/client/changes.json"))
}

fn signed() -> Vec<Value> {
    cases(include_str!("../../../vectors/client/signed.json"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(text(value)).unwrap()
}

fn array<const N: usize>(value: &Value) -> [u8; N] {
    bytes(value).try_into().unwrap()
}

fn number<T: TryFrom<u64, Error: core::fmt::Debug>>(value: &Value) -> T {
    value.as_u64().unwrap().try_into().unwrap()
}

fn change(value: &Value) -> KeyChange {
    let key = text(&value["key"]).parse().unwrap();
    let version = || Version::new(number(&value["version"]));
    let holders = || value["holders"].as_array().unwrap().iter().map(number).collect();
    match text(&value["aim"]) {
        "create" => {
            let suite = text(&value["suite"]).parse().unwrap();
            let delivery = text(&value["delivery"]).parse().unwrap();
            KeyChange::Create { key, suite, delivery, k: number(&value["k"]), holders: holders() }
        }
        "rotate" => KeyChange::Rotate { key },
        "refresh" => KeyChange::Refresh { key, version: version() },
        "reshare" => KeyChange::Reshare { key, version: version(), k: number(&value["k"]), holders: holders() },
        "recover" => KeyChange::Recover { key, version: version(), node: number(&value["node"]) },
        other => panic!("{other}"),
    }
}

#[test]
fn changes_of_keys_are_encoded_as_specified() {
    for case in changes() {
        let (name, value) = (text(&case["name"]), &case["value"]);
        let encoded = match text(&case["kind"]) {
            "change" => {
                let change = change(value);
                assert_eq!(KeyChange::decode(&bytes(&case["encoded"])).as_ref(), Ok(&change), "{name}");
                assert_eq!(change.aim(), text(&value["aim"]));
                change.encode()
            }
            "ceremony" => {
                let change = change(&value["change"]);
                CeremonyRequest { nonce: array(&value["nonce"]), change }.encode()
            }
            "state" => {
                let version = Version::new(number(&value["version"]));
                let state = theta_names::KeyState::ALL.into_iter().find(|state| state.name() == text(&value["state"]));
                let (key, generation) = (text(&value["key"]).parse().unwrap(), number(&value["generation"]));
                let not_before = number(&value["not_before"]);
                StateChange { key, version, state: state.unwrap(), generation, not_before }.encode()
            }
            "cancel" => {
                let change = change(&value["change"]);
                CancelRequest { request: CeremonyRequest { nonce: array(&value["nonce"]), change } }.encode()
            }
            "members" => {
                let (nonce, change, proof) = (array(&value["nonce"]), bytes(&value["change"]), bytes(&value["proof"]));
                let request = MemberRequest { nonce, change, proof };
                assert_eq!(MemberRequest::decode(&bytes(&case["encoded"])).as_ref(), Ok(&request), "{name}");
                request.encode()
            }
            other => panic!("{other}"),
        };
        assert_eq!(hex::encode(encoded), text(&case["encoded"]), "{name}");
    }
}

/// All that a case asks.
struct Asked {
    group: String,
    key: Option<String>,
    operation: Operation,
    label: Vec<u8>,
    statement: Vec<u8>,
    parameters: Vec<u8>,
    slot: Option<u64>,
    validity: Validity,
}

impl Asked {
    fn of(value: &Value) -> Self {
        let optional = |name: &str| if value[name].is_null() { Vec::new() } else { bytes(&value[name]) };
        Self {
            group: text(&value["group"]).to_owned(),
            key: value["key"].as_str().map(str::to_owned),
            operation: text(&value["operation"]).parse().unwrap(),
            label: optional("label"),
            statement: bytes(&value["statement"]),
            parameters: optional("parameters"),
            slot: value["slot"].as_u64(),
            validity: Validity { from: UnixTime(number(&value["from"])), until: UnixTime(number(&value["until"])) },
        }
    }

    fn ask(&self) -> Ask<'_> {
        Ask {
            key: self.key.as_deref(),
            label: Label::new(&self.label[..]).unwrap(),
            statement: &self.statement,
            parameters: &self.parameters,
            slot: self.slot,
            ..Ask::new(&self.group, self.operation)
        }
    }
}

#[test]
fn requests_and_approvals_are_signed_as_specified() {
    for case in signed() {
        let (name, value) = (text(&case["name"]), &case["value"]);
        let signer = SigningKey::from_seed(Secret::new(array(&case["seed"]))).unwrap();
        assert_eq!(hex::encode(signer.verifying_key().as_bytes()), text(&case["public_key"]), "{name}");
        let encoded = bytes(&case["encoded"]);
        if case["kind"] == "token-proof" {
            proves_a_token(&case, &encoded);
            continue;
        }
        let asked = Asked::of(value);
        match text(&case["kind"]) {
            "request" => {
                let terms = RequestTerms::of(&asked.ask(), asked.validity, array(&value["nonce"])).unwrap();
                let signed = SignedRequest::sign(terms, &signer);
                assert_eq!(hex::encode(signed.encode()), hex::encode(&encoded), "{name}");
                assert_eq!(SignedRequest::decode(&encoded).as_ref(), Ok(&signed), "{name}");
                assert_eq!(signed.id(), Digest(array(&case["id"])), "{name}");
                assert_eq!(SignedRequest::from_text(&signed.to_text()), Ok(signed), "{name}");
            }
            "approval" => {
                let approval = Approval::sign(ApprovalTerms::of(&asked.ask(), asked.validity).unwrap(), &signer);
                assert_eq!(hex::encode(approval.encode()), hex::encode(&encoded), "{name}");
                assert_eq!(Approval::decode(&encoded).as_ref(), Ok(&approval), "{name}");
                assert_eq!(approval.check_signature(), Ok(()), "{name}");
            }
            other => panic!("{other}"),
        }
    }
}

fn proves_a_token(case: &Value, encoded: &[u8]) {
    let (name, value) = (text(&case["name"]), &case["value"]);
    let seed = Base64UrlUnpadded::encode_string(&bytes(&case["seed"]));
    let token: Token = format!("theta-token2-{seed}").parse().unwrap();
    assert_eq!(token.key().to_string(), format!("ed25519:{}", text(&case["public_key"])), "{name}");
    let validity = Validity { from: UnixTime(number(&value["from"])), until: UnixTime(number(&value["until"])) };
    let proof = token.prove(&array(&value["node"]), validity);
    assert_eq!(proof.to_text(), Base64UrlUnpadded::encode_string(encoded), "{name}");
    assert_eq!(proof.to_text().parse::<TokenProof>().as_ref(), Ok(&proof), "{name}");
    assert_eq!(
        proof.verify(&array(&value["node"]), validity.from).map(|proven| proven.key()),
        Ok(token.key()),
        "{name}"
    );
}

#[test]
fn a_changed_bit_is_no_signature_of_it() {
    for case in signed().into_iter().filter(|case| case["kind"] == "approval") {
        let encoded = bytes(&case["encoded"]);
        for place in 0..encoded.len() {
            let mut changed = encoded.clone();
            changed[place] ^= 1;
            let read = Approval::decode(&changed);
            assert!(read.is_err() || read.unwrap().check_signature().is_err(), "{}: byte {place}", case["name"]);
        }
    }
}
