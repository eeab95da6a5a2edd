//! Keys from seeds and stored primes, and the answers of their holders.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_groups::Secret;
use theta_groups::modular::Integer;
use theta_keyfiles::{KeyShareText as _, PublicKeyText as _};
use theta_schemes::ciphers::{Aead, PayloadDigest, PayloadKey};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyKind, KeyName, deal_any, deal_rsa_primes};
use theta_schemes::signatures::sh00::RsaPrimes;
use theta_schemes::{Purpose, StatementBytes, Suite};
use theta_sharing::Threshold;

pub(crate) fn name() -> KeyName {
    "files-2.a_b".parse().unwrap()
}

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn threshold(k: u16, n: u16) -> Threshold {
    Threshold::new(k, n).unwrap()
}

pub(crate) fn curve_suites() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| suite.key_kind() == KeyKind::Curve)
}

pub(crate) fn rsa_suites() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| suite.key_kind() == KeyKind::Rsa)
}

/// Whether keys of the suite carry a proof of possession.
pub(crate) fn has_proof_of_possession(suite: Suite) -> bool {
    suite.name().contains("bls04")
}

/// A key on a curve.
pub(crate) fn key(suite: Suite, k: u16, n: u16, seed: u64) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    deal_any(suite, threshold(k, n), &mut rng(seed))
}

/// An RSA key.
pub(crate) fn rsa_key(suite: Suite, bits: u32, k: u16, n: u16, seed: u64) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    deal_rsa_primes(suite, primes(bits), threshold(k, n), &mut rng(seed)).unwrap()
}

/// The stored primes of a modulus of 1024, 2048, 3072 or 4096 bits.
pub(crate) fn primes(bits: u32) -> &'static RsaPrimes {
    static STORED: [OnceLock<RsaPrimes>; 4] = [const { OnceLock::new() }; 4];
    STORED[bits as usize / 1024 - 1].get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/sh00/safe_primes.json");
        let stored: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let prime = |name: &str| {
            let digits = stored["primes"][bits.to_string()][name].as_str().unwrap();
            Secret::new(Integer::from_be_bytes(&hex::decode(digits).unwrap()))
        };
        RsaPrimes::new(prime("p"), prime("q")).unwrap()
    })
}

/// The key and its shares, read from their files; checks that writing them again gives the same files.
pub(crate) fn written_and_read(public: &AnyPublicKey, keys: &[AnyKeyShare]) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    let text = public.to_text(&name());
    let (read_name, read) = AnyPublicKey::from_text(&text).unwrap();
    assert_eq!((&read_name, &read), (&name(), public));
    assert_eq!(read.to_text(&name()), text);
    let read_share = |key: &AnyKeyShare| {
        let text = key.to_text(&name());
        let (read_name, share) = AnyKeyShare::from_text(text.expose(), &read).unwrap();
        assert_eq!((read_name, share.index()), (name(), key.index()));
        assert_eq!(share.to_text(&name()).expose(), text.expose());
        share
    };
    let read_keys = keys.iter().map(read_share).collect();
    (read, read_keys)
}

/// Uses the key with all of these holders; panics if that fails.
pub(crate) fn use_key(public: &AnyPublicKey, keys: &[AnyKeyShare]) {
    let statement = match public.suite().purpose() {
        Purpose::Decrypt => {
            let digest = PayloadDigest::new([5; 32], 9);
            let key = PayloadKey::random(&mut rng(1));
            StatementBytes::Decapsulate(public.encapsulate(&key, Aead::default(), &digest, b"label").unwrap().into())
        }
        Purpose::Sign => StatementBytes::Sign(b"message".to_vec().into()),
        Purpose::Coin => StatementBytes::FlipCoin(b"coin".to_vec().into()),
    };
    let share = |key: &AnyKeyShare| (key.index(), public.create_share(key, &statement, &mut rng(99)).unwrap());
    let shares: Vec<_> = keys.iter().map(share).collect();
    let shares: Vec<_> = shares.iter().map(|(index, share)| (*index, &share[..])).collect();
    public.combine(&statement, &shares, &mut rng(2)).unwrap();
}

/// The text with the value of a field replaced.
pub(crate) fn with(text: &str, field: &str, value: &str) -> String {
    let start = format!("{field} = ");
    let lines = text
        .lines()
        .map(|line| if line.starts_with(&start) { format!("{start}{value}\n") } else { format!("{line}\n") });
    lines.collect()
}
