//! The inputs from which the fuzz targets start: the known answers of `vectors/`, and seeds made of them.

pub mod ceremony;
pub mod group;
pub mod mesh;
pub mod mpc;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;
use theta_keyfiles::{KeyShareText as _, PublicKeyText as _};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};
use theta_schemes::{Purpose, StatementBytes, Suite};

/// A suite's known answers, decoded: a key, a statement, every party's share, the result.
pub struct Sample {
    /// The public key.
    pub public: AnyPublicKey,
    /// Its key file.
    pub public_text: String,
    /// The key shares of parties 1 to n.
    pub keys: Vec<AnyKeyShare>,
    /// Their key files.
    pub share_texts: Vec<String>,
    /// The statement that the shares are for.
    pub statement: StatementBytes,
    /// The shares of parties 1 to n; empty for a scheme of two rounds.
    pub shares: Vec<Vec<u8>>,
    /// Payload key, signature or coin value.
    pub result: Vec<u8>,
    /// The proof of the result; empty if the result proves itself.
    pub proof: Vec<u8>,
    /// For ciphers: header and payload.
    pub ciphertext: Vec<u8>,
    /// For ciphers: the plaintext.
    pub plaintext: Vec<u8>,
}

/// One sample of each suite that has known answers of this form.
pub static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| Suite::ALL.into_iter().filter_map(sample).collect());

/// Randomness that is the same in every run, so that findings can be reproduced.
pub fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(1)
}

fn sample(suite: Suite) -> Option<Sample> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors");
    let path = path.join(suite.scheme().to_lowercase()).join(format!("{suite}.json"));
    let known: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).expect("vectors are JSON");
    let text = |name: &str| known[name].as_str().unwrap_or_default().to_owned();
    let bytes = |name: &str| hex::decode(text(name)).expect("hexadecimal");
    let list = |name: &str| -> Vec<String> {
        known[name].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let public_text = text("public_key_file");
    let (_, public) = AnyPublicKey::from_text(&public_text).ok()?;
    let share_texts = list("share_files");
    let read = |text: &String| AnyKeyShare::from_text(text, &public).expect("a share of the key").1;
    let statement = bytes("statement");
    Some(Sample {
        keys: share_texts.iter().map(read).collect(),
        statement: match suite.purpose() {
            Purpose::Decrypt => StatementBytes::Decapsulate(statement.into()),
            Purpose::Sign => StatementBytes::Sign(statement.into()),
            Purpose::Coin => StatementBytes::FlipCoin(statement.into()),
        },
        shares: list("shares").iter().map(|share| hex::decode(share).expect("hexadecimal")).collect(),
        result: bytes("result"),
        proof: bytes("proof"),
        ciphertext: bytes("ciphertext"),
        plaintext: text("plaintext").into_bytes(),
        public,
        public_text,
        share_texts,
    })
}

/// Writes seeds into the target's corpus, where libFuzzer looks for them after a target's `init`.
pub fn plant(target: &str, seeds: impl IntoIterator<Item = Vec<u8>>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder).expect("a folder for the corpus");
    for (number, seed) in seeds.into_iter().enumerate() {
        fs::write(folder.join(format!("seed-{number}")), seed).expect("a seed in the corpus");
    }
}

/// The sample that the first byte of an input chooses, and the rest of the input.
pub fn choose(input: &[u8]) -> Option<(&'static Sample, &[u8])> {
    let (first, rest) = input.split_first()?;
    Some((SAMPLES.get(usize::from(*first) % SAMPLES.len())?, rest))
}

/// Inputs that [`choose`] reads as a sample, followed by bytes made from that sample.
pub fn seeds_by_sample(bytes: impl Fn(&Sample) -> Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let numbered = (0_u8..).zip(SAMPLES.iter());
    numbered
        .flat_map(|(number, sample)| bytes(sample).into_iter().map(move |bytes| [&[number], &*bytes].concat()))
        .collect()
}
