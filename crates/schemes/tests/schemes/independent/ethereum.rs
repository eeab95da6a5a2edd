//! The tests of Ethereum's consensus clients: BLS signatures with keys in G1.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;
use theta_groups::bls12_381::{G1, G2};
use theta_groups::{Group, Secret};
use theta_schemes::keys::{CurveScheme, PublicKeySet, import_any};
use theta_schemes::signatures::bls04::{Bls04, MinPk};
use theta_schemes::{SignatureScheme, Statement, Suite};
use theta_sharing::{Encoded, Threshold};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../../../vectors/bls/ethereum.json")).unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().unwrap()).unwrap()
}

#[test]
fn keys_dealt_from_ethereum_keys_sign_the_same() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let cases = vectors()["sign"].as_array().unwrap().clone();
    assert_eq!(cases.len(), 9);
    for case in cases {
        let secret = Secret::new(bytes(&case["secret_key"]));
        let (public, keys) = import_any(Suite::Bls04MinPk, Threshold::new(2, 3).unwrap(), &secret, &mut rng).unwrap();
        assert_eq!(public.public_key_bytes(), bytes(&case["public_key"]));
        let message = bytes(&case["message"]);
        let statement = Statement::Sign(&message);
        let shares: Vec<_> =
            keys[1..].iter().map(|key| (key.index(), public.create_share(key, statement, &mut rng).unwrap())).collect();
        let shares: Vec<_> = shares.iter().map(|(index, share)| (*index, share.as_slice())).collect();
        let signature = public.combine(statement, &shares, &mut rng).unwrap();
        assert_eq!(signature.result.expose(), &bytes(&case["signature"]));
        public.verify(&message, &bytes(&case["signature"]), b"").unwrap();
        public.verify(b"other", &bytes(&case["signature"]), b"").unwrap_err();
    }
}

#[test]
fn sums_of_keys_verify_sums_of_signatures() {
    type Scheme = Bls04<MinPk>;
    let vectors = vectors();
    let secrets = ["263dbd79", "47b8192d", "328388af"].map(|start| {
        let of = |case: &&Value| case["secret_key"].as_str().unwrap().starts_with(start);
        let secret = vectors["sign"].as_array().unwrap().iter().find(of).unwrap();
        theta_groups::Scalar::decode(&bytes(&secret["secret_key"])).unwrap()
    });
    for case in vectors["fast_aggregate_verify"].as_array().unwrap() {
        let keys = case["public_keys"].as_array().unwrap().iter().map(|key| G1::decode(&bytes(key)).unwrap());
        let public_key = keys.reduce(|sum, key| sum + key).unwrap();
        // The proof of possession comes from the sum of the secrets, which the vectors disclose.
        let secret = Secret::new(secrets.into_iter().reduce(|sum, secret| sum + secret).unwrap());
        let proof_of_possession = <Scheme as CurveScheme>::prove_possession(&secret, &public_key);
        // One party is enough for a key that only verifies.
        let (one, public_key) = (Threshold::new(1, 1).unwrap(), Encoded::new(public_key));
        let public = PublicKeySet::new::<Scheme>(one, public_key, vec![public_key], proof_of_possession).unwrap();
        Scheme::verify(&public, &bytes(&case["message"]), &bytes(&case["signature"])).unwrap();
    }
}

#[test]
fn points_are_decoded_as_ethereum_clients_do() {
    let vectors = vectors();
    check_decoder::<G1>(&vectors["deserialization_G1"], 12);
    check_decoder::<G2>(&vectors["deserialization_G2"], 14);
}

fn check_decoder<G: Group>(cases: &Value, count: usize) {
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), count);
    for case in cases {
        let input = bytes(&case["input"]);
        let decoded = G::decode_allowing_identity(&input);
        assert_eq!(decoded.is_ok(), case["accepted"].as_bool().unwrap(), "{} {decoded:?}", case["name"]);
        if let Ok(point) = decoded {
            assert_eq!(G::encode(&point).as_ref(), input);
            assert_eq!(G::decode(&input).is_ok(), !G::is_identity(&point));
        }
    }
}
