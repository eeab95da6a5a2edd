//! Nodes' keys of ceremonies, written once more from the specification, and cards that they sign.

use theta_groups::Secret;
use theta_groups::{Group, Ristretto255, RistrettoScalar, Scalar, Transcript};
use theta_ledger::OperatorKey;
use theta_ledger::founding::{Card, CardContent, CardSignatures};

/// Checks Schnorr signatures, as spec/ceremonies.md has them.
pub(crate) struct Schnorr;

fn challenge(key: &[u8; 32], signed: &Transcript, commitment: &[u8]) -> RistrettoScalar {
    signed.clone().with("key", key).with("r", commitment).challenge()
}

impl CardSignatures for Schnorr {
    fn vartime_verify(&self, key: &[u8; 32], signed: &Transcript, signature: &[u8; 64]) -> bool {
        let (commitment, response) = signature.split_at(32);
        let (Ok(element), Ok(response)) = (Ristretto255::decode(key), RistrettoScalar::decode(response)) else {
            return false;
        };
        let e = challenge(key, signed, commitment);
        let expected = Ristretto255::vartime_double_mul(&response, &element, &-e);
        Ristretto255::encode(&expected).as_ref() == commitment
    }
}

/// A key of ceremonies.
pub(crate) struct Key(RistrettoScalar);

impl Key {
    pub(crate) fn new(master: &[u8]) -> Self {
        let transcript = Transcript::new("theta/ceremony/identity/v1").with("purpose", b"sign");
        Self(transcript.with("master", master).challenge())
    }

    pub(crate) fn public(&self) -> [u8; 32] {
        Ristretto255::encode(&Ristretto255::mul_base(&self.0)).as_ref().try_into().unwrap()
    }

    pub(crate) fn sign(&self, signed: &Transcript) -> [u8; 64] {
        let key = self.public();
        let nonce = signed.clone().with("key", &key).with("nonce", self.0.encode().as_ref());
        let nonce: RistrettoScalar = nonce.challenge();
        let commitment = Ristretto255::encode(&Ristretto255::mul_base(&nonce));
        let response = nonce + challenge(&key, signed, commitment.as_ref()) * self.0;
        [commitment.as_ref(), response.encode().as_ref()].concat().try_into().unwrap()
    }
}

/// The key of the operator of a node of that name.
pub(crate) fn operator(name: &str) -> OperatorKey {
    let mut master = [1; 32];
    master[..name.len().min(32)].copy_from_slice(&name.as_bytes()[..name.len().min(32)]);
    OperatorKey::new(Secret::new(master))
}

/// What a node of that name says of itself.
pub(crate) fn content(name: &str) -> CardContent {
    let host: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let mut tls_key = [0; 32];
    tls_key[..name.len().min(32)].copy_from_slice(&name.as_bytes()[..name.len().min(32)]);
    CardContent {
        name: name.parse().unwrap(),
        ceremony_key: Key::new(name.as_bytes()).public(),
        tls_key,
        operator_key: operator(name).id().unwrap(),
        peer_address: format!("{host}.example:7100").parse().unwrap(),
        api_address: format!("{host}.example:7101").parse().unwrap(),
        made: 1_000,
        until: 2_000,
    }
}

/// The same, signed with the key of this name.
pub(crate) fn signed(content: CardContent, name: &str) -> Card {
    let signature = Key::new(name.as_bytes()).sign(&content.signed());
    content.with_signature(signature, &Schnorr).unwrap()
}

pub(crate) fn card(name: &str) -> Card {
    signed(content(name), name)
}
