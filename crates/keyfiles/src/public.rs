//! The `.pub` file: readable TOML with hexadecimal fields, safe to publish. The suite's kind of key decides which fields it has.

use core::fmt::Write as _;

use serde::Deserialize;
use theta_groups::DecodeError;
use theta_schemes::Suite;
use theta_schemes::keys::{AnyPublicKey, KeyKind, KeyName, PartsError, PublicParts};
use theta_schemes::signatures::sh00::PUBLIC_EXPONENT;
use theta_sharing::{EncodedKey, Threshold};

use crate::KeyFileError;
use crate::fields::{FORMAT, check_format, fields, one_line};

/// The fields of a key on a curve as they stand in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CurveFile<'a> {
    format: u64,
    #[serde(borrow)]
    name: &'a str,
    suite: &'a str,
    key_id: &'a str,
    k: u16,
    n: u16,
    public_key: &'a str,
    proof_of_possession: Option<&'a str>,
    #[serde(borrow)]
    verification_keys: Vec<&'a str>,
}

/// The fields of an RSA key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RsaFile<'a> {
    format: u64,
    #[serde(borrow)]
    name: &'a str,
    suite: &'a str,
    key_id: &'a str,
    k: u16,
    n: u16,
    modulus: &'a str,
    exponent: u64,
    verification_base: &'a str,
    #[serde(borrow)]
    verification_keys: Vec<&'a str>,
}

/// The first fields of the files of all keys.
struct Head<'a> {
    name: KeyName,
    suite: Suite,
    key_id: &'a str,
    threshold: Threshold,
}

impl<'a> Head<'a> {
    fn new(name: &str, suite: &str, key_id: &'a str, (k, n): (u16, u16)) -> Result<Self, KeyFileError> {
        let (name, suite) = (name.parse()?, suite.parse()?);
        let threshold = Threshold::new(k, n).map_err(|error| KeyFileError::Threshold(error.to_string()))?;
        Ok(Self { name, suite, key_id, threshold })
    }

    /// The key with these parts, fully checked.
    fn assemble(self, parts: &PublicParts) -> Result<(KeyName, AnyPublicKey), KeyFileError> {
        let key = AnyPublicKey::from_parts(self.suite, parts).map_err(|error| match error {
            PartsError::Encoding { part, error } => KeyFileError::Encoding { field: part.to_string(), error },
            PartsError::Parts(error) => KeyFileError::Parts(error),
            PartsError::Kind(suite) => KeyFileError::Kind(suite),
        })?;
        let expected = key.key_id().to_string();
        if self.key_id != expected {
            return Err(KeyFileError::KeyId { found: one_line(self.key_id), expected });
        }
        Ok((self.name, key))
    }
}

/// Reads a `.pub` file and checks everything in it.
pub(crate) fn read(text: &str) -> Result<(KeyName, AnyPublicKey), KeyFileError> {
    // A file without a known suite is read as a curve's, which gives the error.
    match suite(text).map(Suite::key_kind) {
        Some(KeyKind::Rsa) => read_rsa(text),
        Some(KeyKind::Curve) | None => read_curve(text),
    }
}

/// The suite that a file names, which decides what its fields are; `None` if it names none.
fn suite(text: &str) -> Option<Suite> {
    #[derive(Deserialize)]
    struct Named<'a> {
        suite: &'a str,
    }
    toml::from_str::<Named<'_>>(text).ok()?.suite.parse().ok()
}

fn read_curve(text: &str) -> Result<(KeyName, AnyPublicKey), KeyFileError> {
    let file: CurveFile<'_> = fields(text)?;
    check_format(file.format)?;
    let head = Head::new(file.name, file.suite, file.key_id, (file.k, file.n))?;
    let parts = PublicParts::Curve(EncodedKey {
        threshold: head.threshold,
        public_key: unhex("public_key", file.public_key)?,
        verification_keys: unhex_list("verification_keys", &file.verification_keys)?,
        proof_of_possession: file.proof_of_possession.map(|text| unhex("proof_of_possession", text)).transpose()?,
    });
    head.assemble(&parts)
}

fn read_rsa(text: &str) -> Result<(KeyName, AnyPublicKey), KeyFileError> {
    let file: RsaFile<'_> = fields(text)?;
    check_format(file.format)?;
    let head = Head::new(file.name, file.suite, file.key_id, (file.k, file.n))?;
    if file.exponent != PUBLIC_EXPONENT {
        return Err(KeyFileError::Encoding { field: "exponent".to_owned(), error: DecodeError::NotCanonical });
    }
    let parts = PublicParts::Rsa {
        threshold: head.threshold,
        modulus: unhex("modulus", file.modulus)?,
        verification_base: unhex("verification_base", file.verification_base)?,
        verification_keys: unhex_list("verification_keys", &file.verification_keys)?,
    };
    head.assemble(&parts)
}

fn unhex(field: &str, text: &str) -> Result<Vec<u8>, KeyFileError> {
    hex::decode(text).map_err(|_| KeyFileError::Hex { field: field.to_owned() })
}

fn unhex_list(field: &str, list: &[&str]) -> Result<Vec<Vec<u8>>, KeyFileError> {
    (1..).zip(list).map(|(entry, text)| unhex(&format!("{field}, entry {entry}"), text)).collect()
}

/// Writes the file of a key.
pub(crate) fn write(name: &KeyName, key: &AnyPublicKey) -> String {
    let mut text = head(name, key);
    // Writing to a String cannot fail.
    let mut line = |field: &str, value: &[u8]| {
        let _ = writeln!(text, "{field} = \"{}\"", hex::encode(value));
    };
    let verification_keys = match key.parts() {
        PublicParts::Curve(EncodedKey { public_key, proof_of_possession, verification_keys, .. }) => {
            line("public_key", &public_key);
            if let Some(proof) = proof_of_possession {
                line("proof_of_possession", &proof);
            }
            verification_keys
        }
        PublicParts::Rsa { modulus, verification_base, verification_keys, .. } => {
            line("modulus", &modulus);
            let _ = writeln!(text, "exponent = {PUBLIC_EXPONENT}");
            let _ = writeln!(text, "verification_base = \"{}\"", hex::encode(verification_base));
            verification_keys
        }
    };
    text.push_str("verification_keys = [\n");
    for key in verification_keys {
        let _ = writeln!(text, "  \"{}\",", hex::encode(key));
    }
    text.push_str("]\n");
    text
}

fn head(name: &KeyName, key: &AnyPublicKey) -> String {
    let (suite, threshold) = (key.suite(), key.threshold());
    format!(
        "# Public key {name}: {threshold} parties {purpose}. Safe to publish.\n\
         format = {FORMAT}\n\
         name = \"{name}\"\n\
         suite = \"{suite}\"\n\
         key_id = \"{id}\"\n\
         k = {k}\n\
         n = {n}\n",
        purpose = suite.purpose(),
        id = key.key_id(),
        k = threshold.k(),
        n = threshold.n(),
    )
}
