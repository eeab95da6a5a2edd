//! The formats are fixed: seeds give the same bytes as ever. A change of any byte is a new version of the format, never a silent
//! one. `THETA_WRITE_VECTORS=1 cargo test -p theta-schemes known_answers` writes the files anew.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use theta_keyfiles::{KeyShareText, PublicKeyText};
use theta_payload::{Aead, Encrypt, PayloadKey, open_bytes, split_ciphertext};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName};
use theta_schemes::{Purpose, StatementBytes};

use crate::suites::fixture::{borrow, index, key, rng, shares};

for_every_suite!(answers_are_the_known_ones);

fn path(suite: Suite) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors")
        .join(suite.scheme().to_lowercase())
        .join(format!("{suite}.json"))
}

fn answers_are_the_known_ones(suite: Suite) {
    let path = path(suite);
    if std::env::var_os("THETA_WRITE_VECTORS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, serde_json::to_string_pretty(&generate(suite)).unwrap() + "\n").unwrap();
    }
    let known: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(generate(suite), known, "the format has changed");
    replay(suite, &known);
}

/// Everything, from seeds.
fn generate(suite: Suite) -> Value {
    let name: KeyName = "vector".parse().unwrap();
    let (public, keys) = key(suite, 2, 3, 2026);
    let mut vector = json!({
        "source": "this implementation; see the document of the scheme in spec/",
        "suite": suite.name(),
        "public_key_file": public.to_text(&name),
        "share_files": keys.iter().map(|key| key.to_text(&name).expose().clone()).collect::<Vec<_>>(),
    });
    let statement = match suite.purpose() {
        Purpose::Decrypt => {
            let ciphertext = public.encrypt(b"known plaintext", b"known label", Aead::default(), &mut rng(7)).unwrap();
            let header = split_ciphertext(&ciphertext).unwrap().0.to_vec();
            vector["ciphertext"] = hex::encode(&ciphertext).into();
            vector["plaintext"] = "known plaintext".into();
            StatementBytes::Decapsulate(header.into())
        }
        Purpose::Sign => StatementBytes::Sign(b"known message".to_vec().into()),
        Purpose::Coin => StatementBytes::FlipCoin(b"known coin".to_vec().into()),
    };
    let shares = shares(&public, &keys, &statement);
    let combined = public.combine(&statement, &borrow(&shares), &mut rng(8)).unwrap();
    vector["statement"] = hex::encode(statement.as_statement().bytes()).into();
    vector["shares"] = shares.iter().map(|(_, share)| hex::encode(share)).collect();
    vector["result"] = hex::encode(combined.result.expose()).into();
    vector["proof"] = hex::encode(&combined.proof).into();
    vector
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
    let statement = bytes(&known["statement"]);
    let (result, proof) = (bytes(&known["result"]), bytes(&known["proof"]));
    let statement = match suite.purpose() {
        Purpose::Decrypt => {
            let key = PayloadKey::from_bytes(&result).unwrap();
            let plaintext = open_bytes(&key, &bytes(&known["ciphertext"])).unwrap();
            assert_eq!(plaintext.expose(), known["plaintext"].as_str().unwrap().as_bytes());
            StatementBytes::Decapsulate(statement.into())
        }
        Purpose::Sign => {
            public.verify(&statement, &result, &proof).unwrap();
            StatementBytes::Sign(statement.into())
        }
        Purpose::Coin => {
            public.verify(&statement, &result, &proof).unwrap();
            StatementBytes::FlipCoin(statement.into())
        }
    };
    let shares: Vec<_> =
        (1..).zip(known["shares"].as_array().unwrap()).map(|(i, share)| (index(i), bytes(share))).collect();
    let combined = public.combine(&statement, &borrow(&shares[1..]), &mut rng(9)).unwrap();
    assert_eq!(combined.result.expose(), &result);
}
