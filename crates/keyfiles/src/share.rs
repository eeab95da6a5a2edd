//! The `.share` file: readable TOML with one party's secret.

use core::fmt::Write as _;

use serde::Deserialize;
use theta_groups::{DecodeError, Secret};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName, ShareError};
use theta_sharing::ShareIndex;

use crate::KeyFileError;
use crate::fields::{FORMAT, check_format, line_of};

/// The fields as they stand in the file. The secret stays in the caller's text; no copy is made.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShareFile<'a> {
    format: u64,
    #[serde(borrow)]
    name: &'a str,
    suite: &'a str,
    key_id: &'a str,
    index: u64,
    secret: &'a str,
}

/// Reads a `.share` file and checks that it belongs to `public`.
pub(crate) fn read(text: &str, public: &AnyPublicKey) -> Result<(KeyName, AnyKeyShare), KeyFileError> {
    let (file, name, suite) = ShareFile::parse(text)?;
    if suite != public.suite() || file.key_id != public.key_id().to_string() {
        return Err(file.other_key(public));
    }
    let index = file.index(public)?;
    let secret = file.secret_bytes(public.share_secret_len())?;
    let share = AnyKeyShare::from_secret(public, index, secret.expose()).map_err(|error| match error {
        ShareError::Encoding(error) => secret_error(error),
        ShareError::Mismatch(index) => KeyFileError::ShareMismatch(index),
    })?;
    Ok((name, share))
}

impl<'a> ShareFile<'a> {
    fn parse(text: &'a str) -> Result<(Self, KeyName, Suite), KeyFileError> {
        let file: Self = toml::from_str(text).map_err(|error| {
            // The library's messages may quote values; only those that name a missing field are shown.
            let problem = Some(error.message()).filter(|message| message.starts_with("missing field")).map_or_else(
                || "not a share file: it has the fields format, name, suite, key_id, index, secret".to_owned(),
                str::to_owned,
            );
            KeyFileError::Syntax { line: line_of(text, error.span()), problem }
        })?;
        check_format(file.format)?;
        let (name, suite) = (file.name.parse()?, file.suite.parse()?);
        Ok((file, name, suite))
    }

    /// The party, if the key has such a party.
    fn index(&self, public: &AnyPublicKey) -> Result<ShareIndex, KeyFileError> {
        let unknown = || KeyFileError::Index { found: self.index, n: public.threshold().n() };
        u16::try_from(self.index)
            .ok()
            .and_then(|index| ShareIndex::try_from(index).ok())
            .filter(|index| public.threshold().contains(*index))
            .ok_or_else(unknown)
    }

    /// The error that the two files are not of one key.
    fn other_key(&self, public: &AnyPublicKey) -> KeyFileError {
        KeyFileError::OtherKey {
            share: self.key_id.chars().take(8).filter(char::is_ascii_hexdigit).collect(),
            share_suite: self.suite.to_owned(),
            public: public.key_id().abbreviated(),
            public_suite: public.suite().to_string(),
        }
    }

    /// The secret's `expected` bytes.
    fn secret_bytes(&self, expected: usize) -> Result<Secret<Vec<u8>>, KeyFileError> {
        if self.secret.len() != 2 * expected {
            return Err(secret_error(DecodeError::Length { expected, got: self.secret.len() / 2 }));
        }
        let mut bytes = Secret::new(vec![0; expected]);
        hex::decode_to_slice(self.secret, bytes.expose_mut())
            .map_err(|_| KeyFileError::Hex { field: "secret".to_owned() })?;
        Ok(bytes)
    }
}

/// An error about the field `secret`.
fn secret_error(error: DecodeError) -> KeyFileError {
    KeyFileError::Encoding { field: "secret".to_owned(), error }
}

/// Writes the file of a share.
pub(crate) fn write(name: &KeyName, share: &AnyKeyShare) -> Secret<String> {
    let encoding = share.secret_bytes();
    let digits = encoding.expose();
    // Reserved at once: a string that grows leaves copies of its content behind.
    let mut text = Secret::new(String::with_capacity(512 + 2 * digits.len()));
    let out = text.expose_mut();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "# SECRET share of party {index} of key {name}. Whoever holds k of these holds the key.\n\
         format = {FORMAT}\n\
         name = \"{name}\"\n\
         suite = \"{suite}\"\n\
         key_id = \"{id}\"\n\
         index = {index}\n\
         secret = \"",
        suite = share.suite(),
        index = share.index(),
        id = share.key_id(),
    );
    for byte in digits {
        let _ = write!(out, "{byte:02x}");
    }
    out.push_str("\"\n");
    text
}
