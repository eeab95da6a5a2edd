//! A key of a member or an operator, and what it signs.

use std::path::Path;

use theta_rpki::signatures::{KeySet, Signed};
use theta_statements::SigningKey;

use super::{failure::Failure, files};

/// A private key, with its public key as the registry's data have it.
pub(crate) struct Signer {
    key: SigningKey,
    digits: String,
    /// The set of this key alone.
    alone: KeySet,
}

impl Signer {
    /// Reads a private key: Ed25519, PKCS #8 in PEM.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let secret = files::read_secret(path)?;
        let text = std::str::from_utf8(secret.expose()).unwrap_or_default();
        let key = SigningKey::from_pem(text).map_err(|reason| Failure::Key { path: path.to_owned(), reason })?;
        let digits = digits(&key);
        let alone = KeySet::parse(std::slice::from_ref(&digits), 1)?;
        Ok(Self { key, digits, alone })
    }

    /// Its public key, 64 hexadecimal digits.
    pub(crate) fn digits(&self) -> &str {
        &self.digits
    }

    /// Checks that it is one of the keys that sign, which are those of `of`.
    pub(crate) fn belongs_to(&self, keys: &KeySet, of: &str) -> Result<(), Failure> {
        if keys.keys().any(|key| key == self.digits) {
            return Ok(());
        }
        Err(Failure::Foreign { key: self.digits.clone(), of: of.to_owned() })
    }

    /// Whether a good signature of it is among these.
    pub(crate) fn has_signed(&self, bytes: &[u8], signatures: &[Signed]) -> bool {
        self.alone.enough(bytes, signatures)
    }

    /// A file with its signature of these bytes at the end. Whoever writes it reads it first: a file may have its signatures in another form.
    pub(crate) fn append(&self, text: &str, bytes: &[u8]) -> String {
        let signature = hex::encode(self.key.sign(bytes).as_bytes());
        format!("{}\n\n[[signature]]\nkey = \"{}\"\nsignature = \"{signature}\"\n", text.trim_end(), self.digits)
    }
}

/// A public key as the registry's data have it.
pub(crate) fn digits(key: &SigningKey) -> String {
    hex::encode(key.verifying_key().as_bytes())
}
