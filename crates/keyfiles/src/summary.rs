//! Summaries that tell keys apart, read from `.pub` files without the arithmetic that checks them.

use serde::Deserialize;
use theta_schemes::Suite;

use crate::KeyFileError;
use crate::fields::{check_format, fields};

/// The parts of a key that tell whether another key is the same, or has the same secret for another purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySummary {
    /// The suite.
    pub suite: Suite,
    /// The id that the file names, in hexadecimal.
    pub key_id: String,
    /// The public key, or an RSA key's modulus, in hexadecimal.
    pub material: String,
}

/// The fields that every file has; a key has either of the last two.
#[derive(Deserialize)]
struct Named<'a> {
    format: u64,
    #[serde(borrow)]
    suite: &'a str,
    key_id: &'a str,
    public_key: Option<&'a str>,
    modulus: Option<&'a str>,
}

impl KeySummary {
    /// The summary of the text of a `.pub` file that was checked when it was written. This does not check that its parts belong
    /// together.
    ///
    /// # Errors
    /// [`KeyFileError`]: a field is missing, or this build does not know the format or the suite.
    pub fn of_text(text: &str) -> Result<Self, KeyFileError> {
        let named: Named<'_> = fields(text)?;
        check_format(named.format)?;
        let missing = || KeyFileError::Syntax { line: 1, problem: "it has neither public_key nor modulus".to_owned() };
        let material = named.public_key.or(named.modulus).ok_or_else(missing)?;
        Ok(Self {
            suite: named.suite.parse()?,
            key_id: named.key_id.to_ascii_lowercase(),
            material: material.to_ascii_lowercase(),
        })
    }

    /// Whether both are the same key.
    #[must_use]
    pub fn is_same_key(&self, other: &Self) -> bool {
        self.key_id == other.key_id
    }

    /// Whether both have one secret for two purposes: an answer for one purpose could then help to attack the other.
    #[must_use]
    pub fn is_same_secret_for_another_purpose(&self, other: &Self) -> bool {
        self.suite.purpose() != other.suite.purpose() && self.material == other.material
    }
}
