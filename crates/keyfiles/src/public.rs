//! The `.pub` file: readable TOML with hexadecimal fields, safe to publish.

use core::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;
use theta_groups::Group;
use theta_sharing::{Encoded, Threshold};

use super::{CurveScheme, KeyFileError, KeyName, PublicKeySet, PublicMaterial};
use crate::Suite;

/// The format that this build writes and reads.
pub(crate) const FORMAT: u64 = 1;

/// The fields as they stand in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublicKeyFile<'a> {
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

impl<'a> PublicKeyFile<'a> {
    /// The fields, and the suite which decides how to read them.
    pub(super) fn parse(text: &'a str) -> Result<(Self, KeyName, Suite), KeyFileError> {
        let file: Self = fields(text)?;
        check_format(file.format)?;
        let (name, suite) = (file.name.parse()?, file.suite.parse()?);
        Ok((file, name, suite))
    }

    /// The key, fully checked.
    pub(super) fn decode<S: CurveScheme>(&self) -> Result<Arc<PublicKeySet<S::KeyGroup>>, KeyFileError> {
        let threshold = Threshold::new(self.k, self.n).map_err(|error| KeyFileError::Threshold(error.to_string()))?;
        let public_key = element::<S::KeyGroup>("public_key", self.public_key)?;
        let verification_keys = (1..)
            .zip(&self.verification_keys)
            .map(|(i, text)| element::<S::KeyGroup>(&format!("verification_keys, entry {i}"), text))
            .collect::<Result<_, _>>()?;
        let possession = self.proof_of_possession.map(|text| unhex("proof_of_possession", text)).transpose()?;
        let set = PublicKeySet::new::<S>(threshold, public_key, verification_keys, possession)?;
        let expected = set.key_id().to_string();
        if self.key_id != expected {
            return Err(KeyFileError::KeyId { found: one_line(self.key_id), expected });
        }
        Ok(Arc::new(set))
    }
}

/// The file of a key.
pub(super) fn write<G: Group>(name: &KeyName, set: &PublicKeySet<G>) -> String {
    let mut text = head(name, set);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "public_key = \"{}\"", hex::encode(set.public_key_bytes()));
    if let Some(proof) = set.possession() {
        let _ = writeln!(text, "proof_of_possession = \"{}\"", hex::encode(proof));
    }
    text.push_str("verification_keys = [\n");
    for key in set.verification_keys() {
        let _ = writeln!(text, "  \"{}\",", hex::encode(key.bytes()));
    }
    text.push_str("]\n");
    text
}

/// What the files of all keys begin with.
pub(crate) fn head(name: &KeyName, key: &impl PublicMaterial) -> String {
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

/// The suite that a file names, which decides what its fields are; `None` if it names none.
pub(super) fn suite(text: &str) -> Option<Suite> {
    #[derive(Deserialize)]
    struct Head<'a> {
        suite: &'a str,
    }
    toml::from_str::<Head<'_>>(text).ok()?.suite.parse().ok()
}

/// The fields of a file, or what is wrong with them and where.
pub(crate) fn fields<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, KeyFileError> {
    toml::from_str(text)
        .map_err(|error| KeyFileError::Syntax { line: line_of(text, error.span()), problem: one_line(error.message()) })
}

/// Refuses what another release wrote.
pub(crate) const fn check_format(format: u64) -> Result<(), KeyFileError> {
    if format == FORMAT { Ok(()) } else { Err(KeyFileError::Format(format)) }
}

/// The line of a byte range, counted from 1.
pub(super) fn line_of(text: &str, span: Option<core::ops::Range<usize>>) -> usize {
    let end = span.map_or(0, |span| span.start);
    1 + text.bytes().take(end).filter(|byte| *byte == b'\n').count()
}

/// Text from a file or library, fit for one line.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().take(120).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

pub(crate) fn unhex(field: &str, text: &str) -> Result<Vec<u8>, KeyFileError> {
    hex::decode(text).map_err(|_| KeyFileError::Hex { field: field.to_owned() })
}

fn element<G: Group>(field: &str, text: &str) -> Result<Encoded<G>, KeyFileError> {
    Encoded::decode(&unhex(field, text)?).map_err(|error| KeyFileError::Encoding { field: field.to_owned(), error })
}
