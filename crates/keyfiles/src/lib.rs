//! Key files: the public files and share files of a group's members and clients, and private keys that were made elsewhere.
//!
//! - [`PublicKeyText`] writes and reads the `.pub` file of a key, [`KeyShareText`] the `.share` file of one party.
//! - [`public_key_info`] writes a public key as other software reads it.
//! - [`import_key`] shares a private key that OpenSSL, `ssh-keygen` or another tool wrote.
//!
//! This crate knows the formats of files alone: what stores and ledgers have is binary
//! ([`AnyPublicKey::to_bytes`], [`AnyKeyShare::to_bytes`]). `theta-schemes` knows the parts of a key and checks that they belong together
//! ([`theta_schemes::keys::PublicParts`]).

mod error;
mod fields;
mod import;
mod info;
mod public;
mod share;

pub use error::KeyFileError;
pub use import::{ImportError, KeyFormat, UnknownFormat, import_key};
pub use info::public_key_info;
use theta_groups::Secret;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName};

/// Public keys that are written as the text of a `.pub` file.
pub trait PublicKeyText: Sized {
    /// The text of the `.pub` file.
    fn to_text(&self, name: &KeyName) -> String;

    /// Reads a `.pub` file and checks everything in it.
    ///
    /// # Errors
    /// The [`KeyFileError`] that names the first mistake.
    fn from_text(text: &str) -> Result<(KeyName, Self), KeyFileError>;
}

impl PublicKeyText for AnyPublicKey {
    fn to_text(&self, name: &KeyName) -> String {
        public::write(name, self)
    }

    fn from_text(text: &str) -> Result<(KeyName, Self), KeyFileError> {
        public::read(text)
    }
}

/// Key shares that are written as the text of a `.share` file.
pub trait KeyShareText: Sized {
    /// The text of the `.share` file. Write it where its owner alone can read it.
    fn to_text(&self, name: &KeyName) -> Secret<String>;

    /// Reads a `.share` file and checks that it belongs to `public`. The caller has to wipe the text; no copy of the secret
    /// digits is made.
    ///
    /// # Errors
    /// The [`KeyFileError`] that names the first mistake.
    fn from_text(text: &str, public: &AnyPublicKey) -> Result<(KeyName, Self), KeyFileError>;
}

impl KeyShareText for AnyKeyShare {
    fn to_text(&self, name: &KeyName) -> Secret<String> {
        share::write(name, self)
    }

    fn from_text(text: &str, public: &AnyPublicKey) -> Result<(KeyName, Self), KeyFileError> {
        share::read(text, public)
    }
}
