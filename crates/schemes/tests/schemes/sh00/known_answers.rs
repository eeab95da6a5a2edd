//! The formats are fixed: seeds give the same bytes as ever. A change of any byte is a new version of the format, never a silent
//! one. `THETA_WRITE_VECTORS=1 cargo test -p theta-schemes sh00::known_answers` writes the files anew.

use std::fs;

use serde_json::{Value, json};
use theta_keyfiles::{KeyShareText, PublicKeyText};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName};

use crate::sh00::fixture::{SUITES, borrow, index, key, rng, shares, statement, vectors};

#[test]
fn known_answers() {
    for suite in SUITES {
        let path = vectors().join(format!("{suite}.json"));
        if std::env::var_os("THETA_WRITE_VECTORS").is_some() {
            fs::write(&path, serde_json::to_string_pretty(&generate(suite)).unwrap() + "\n").unwrap();
        }
        let known: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(generate(suite), known, "the format has changed");
        replay(suite, &known);
    }
}

fn message(suite: Suite) -> &'static [u8] {
    if suite == Suite::Cks05Sh00 { b"known coin" } else { b"known message" }
}

/// Everything, from the stored primes and seeds.
fn generate(suite: Suite) -> Value {
    let name: KeyName = "vector".parse().unwrap();
    let (public, keys) = key(suite, 2048, 2, 3, 2026);
    let statement = statement(suite, message(suite));
    let shares = shares(&public, &keys, &statement);
    let combined = public.combine(&statement, &borrow(&shares), &mut rng(8)).unwrap();
    json!({
        "source": "this implementation; see the document of the scheme in spec/",
        "suite": suite.name(),
        "public_key_file": public.to_text(&name),
        "share_files": keys.iter().map(|key| key.to_text(&name).expose().clone()).collect::<Vec<_>>(),
        "statement": hex::encode(message(suite)),
        "shares": shares.iter().map(|(_, share)| hex::encode(share)).collect::<Vec<_>>(),
        "result": hex::encode(combined.result.expose()),
        "proof": hex::encode(&combined.proof),
    })
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

/// The file alone is enough to use the key: files of earlier releases stay readable.
fn replay(suite: Suite, known: &Value) {
    let (_, public) = AnyPublicKey::from_text(known["public_key_file"].as_str().unwrap()).unwrap();
    assert_eq!(public.suite(), suite);
    for text in known["share_files"].as_array().unwrap() {
        AnyKeyShare::from_text(text.as_str().unwrap(), &public).unwrap();
    }
    let message = bytes(&known["statement"]);
    let (result, proof) = (bytes(&known["result"]), bytes(&known["proof"]));
    public.verify(&message, &result, &proof).unwrap();
    let shares: Vec<_> =
        (1..).zip(known["shares"].as_array().unwrap()).map(|(i, share)| (index(i), bytes(share))).collect();
    let statement = statement(suite, &message);
    for (index, share) in &shares {
        public.verify_share(&statement, *index, share, &mut rng(9)).unwrap();
    }
    let combined = public.combine(&statement, &borrow(&shares[1..]), &mut rng(9)).unwrap();
    assert_eq!((combined.result.expose(), &combined.proof), (&result, &proof));
}
