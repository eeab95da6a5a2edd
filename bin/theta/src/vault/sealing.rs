//! The sealing of stores and backups as an argument: `file:PATH`, `passphrase-file:PATH`, `env:NAME`,
//! `credential:NAME`.

use std::{fmt, path::PathBuf, str::FromStr};

use theta_service::config::{Sealing, StoreOpenError};
use theta_store::SealingKey;

use crate::exit::Failure;

/// The part of `--help` about sealings.
pub(crate) const SEALING_HELP: &str = "\
How to seal: file:PATH (32 random bytes, or 64 hexadecimal digits), passphrase-file:PATH, env:NAME (a passphrase in an \
environment variable), credential:NAME (of systemd). Make a key file with: (umask 77; openssl rand -hex 32 > backup.key)";

/// A sealing as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SealWord(pub(crate) Sealing);

impl Default for SealWord {
    /// A key file beside each store.
    fn default() -> Self {
        Self(Sealing::File("store.key".into()))
    }
}

impl FromStr for SealWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').filter(|(_, rest)| !rest.is_empty()).unwrap_or((text, ""));
        let sealing = match (kind, rest) {
            (_, "") => None,
            ("file", path) => Some(Sealing::File(path.into())),
            ("passphrase-file", path) => Some(Sealing::PassphraseFile(path.into())),
            ("env", name) => Some(Sealing::Env(name.to_owned())),
            ("credential", name) => Some(Sealing::Credential(name.to_owned())),
            _ => None,
        };
        sealing.map(Self).ok_or_else(|| {
            format!("{text:?} is no way to seal: write file:PATH, passphrase-file:PATH, env:NAME or credential:NAME")
        })
    }
}

impl fmt::Display for SealWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = |path: &PathBuf| path.display().to_string();
        match &self.0 {
            Sealing::File(file) => write!(f, "file:{}", path(file)),
            Sealing::PassphraseFile(file) => write!(f, "passphrase-file:{}", path(file)),
            Sealing::Env(name) => write!(f, "env:{name}"),
            Sealing::Credential(name) => write!(f, "credential:{name}"),
        }
    }
}

impl SealWord {
    /// The sealing for use in other directories: the path of a passphrase's file is made absolute, that of a key file stays
    /// relative, so that each node has its own.
    pub(crate) fn made_absolute(self) -> Result<Self, Failure> {
        let Sealing::PassphraseFile(path) = &self.0 else { return Ok(self) };
        let absolute = path.canonicalize().map_err(|error| Failure::reading(path, &error))?;
        Ok(Self(Sealing::PassphraseFile(absolute)))
    }

    /// The key of something sealed.
    pub(crate) fn key(&self) -> Result<SealingKey, Failure> {
        self.0.key().map_err(in_words)
    }

    /// The key for something new.
    pub(crate) fn new_key(&self) -> Result<SealingKey, Failure> {
        self.0.new_key().map_err(in_words)
    }
}

fn in_words(error: StoreOpenError) -> Failure {
    match error {
        // The message about the configuration does not apply here.
        StoreOpenError::Sealing(error) => Failure::Usage(error.to_string()),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_nonsense_is_refused() {
        for word in ["file:store.key", "passphrase-file:/etc/x", "env:THETA_PASSPHRASE", "credential:theta"] {
            assert_eq!(word.parse::<SealWord>().unwrap().to_string(), word);
        }
        for bad in ["", "file", "file:", "store.key", "hsm:1", "ENV:X"] {
            assert!(bad.parse::<SealWord>().unwrap_err().contains("write file:PATH"), "{bad}");
        }
    }
}
