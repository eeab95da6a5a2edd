//! Turns existing private keys into shares. The public key stays the same: signatures of the group verify under it.
//!
//! [`import_key`] reads PKCS#8 (RFC 5958; for Ed25519 and Ed448 RFC 8410), `EC PRIVATE KEY` (RFC 5915), `RSA PRIVATE KEY`
//! (RFC 8017, appendix A.1.2), JSON Web Keys (RFC 7517), OpenSSH's own format, bare scalars, and the seeds of RFC 8032. A key is
//! imported only into suites of its own kind. The original file is still the whole key, which can be used without the group:
//! destroy it.
//!
//! Secrets that were read are kept in [`Secret`]s; no error shows any of them.

mod asn1;
mod error;
mod jwk;
mod openssh;
mod pem;
mod private_key;
mod seed;
#[cfg(test)]
mod tests;

use core::{fmt, str::FromStr};

use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};
use theta_sharing::Threshold;

pub use self::error::{ImportError, UnknownFormat};
use self::private_key::{Kind, PrivateKey};

/// The format of a file with a private key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyFormat {
    /// Recognised by the file's contents.
    #[default]
    Auto,
    /// PKCS#8, or the older formats for one algorithm, as PEM or DER: what OpenSSL writes.
    Pkcs8,
    /// The format that `ssh-keygen` writes.
    OpenSsh,
    /// A JSON Web Key (RFC 7517).
    Jwk,
    /// A secret scalar in the suite's own encoding, as bytes or hexadecimal digits.
    Raw,
    /// The seed of an Ed25519 or Ed448 key (RFC 8032 calls it the private key), as bytes or hexadecimal digits.
    Seed,
}

impl KeyFormat {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Auto, Self::Pkcs8, Self::OpenSsh, Self::Jwk, Self::Raw, Self::Seed];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Pkcs8 => "pkcs8",
            Self::OpenSsh => "openssh",
            Self::Jwk => "jwk",
            Self::Raw => "raw",
            Self::Seed => "seed",
        }
    }
}

impl fmt::Display for KeyFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KeyFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// Shares the private key in `file` among n parties so that any k can use it.
///
/// # Errors
/// [`ImportError`]: the file holds no such key, or the key does not fit the suite.
pub fn import_key(
    suite: Suite,
    format: KeyFormat,
    file: &Secret<Vec<u8>>,
    threshold: Threshold,
    rng: &mut dyn CryptoRng,
) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), ImportError> {
    read(suite, format, file.expose())?.deal(suite, threshold, rng)
}

/// The private key that is in a file.
fn read(suite: Suite, format: KeyFormat, file: &[u8]) -> Result<PrivateKey, ImportError> {
    let text = core::str::from_utf8(file).ok().filter(|text| text.contains(pem::BEGIN));
    match (format, text) {
        (KeyFormat::Auto | KeyFormat::Pkcs8 | KeyFormat::OpenSsh, Some(text)) => {
            let block = pem::private_key(text)?;
            let wanted = if block.label == openssh::LABEL { KeyFormat::OpenSsh } else { KeyFormat::Pkcs8 };
            if format != KeyFormat::Auto && format != wanted {
                return Err(ImportError::OtherFormat { asked: format, found: wanted });
            }
            block.read()
        }
        (KeyFormat::Jwk, _) => jwk::read(file),
        (KeyFormat::Auto, None) if jwk::looks_like(file) => jwk::read(file),
        (KeyFormat::Pkcs8, None) => asn1::any(file),
        (KeyFormat::OpenSsh, None) => Err(ImportError::Unrecognised),
        (KeyFormat::Raw, _) => Ok(PrivateKey::scalar(bare(file))),
        (KeyFormat::Seed, _) => seed_of(suite, &bare(file)),
        (KeyFormat::Auto, None) => guess(suite, file),
    }
}

/// Reads DER if it is that, else bare bytes if their number can mean only a scalar.
fn guess(suite: Suite, file: &[u8]) -> Result<PrivateKey, ImportError> {
    match asn1::any(file) {
        Err(ImportError::Unrecognised) => {}
        read => return read,
    }
    if file.starts_with(b"ssh-") || file.starts_with(b"ecdsa-") {
        return Err(ImportError::NotPrivate);
    }
    let bytes = bare(file);
    if Some(bytes.expose().len()) != suite.secret_key_len() {
        return Err(ImportError::Unrecognised);
    }
    if Kind::with_seed(suite).is_some() { Err(ImportError::Ambiguous) } else { Ok(PrivateKey::scalar(bytes)) }
}

fn seed_of(suite: Suite, bytes: &Secret<Vec<u8>>) -> Result<PrivateKey, ImportError> {
    let kind = Kind::with_seed(suite).ok_or(ImportError::NoSeeds(suite))?;
    PrivateKey::seed(kind, bytes.expose(), None)
}

/// The bytes of a file that may hold them as hexadecimal digits.
fn bare(file: &[u8]) -> Secret<Vec<u8>> {
    let digits = file.trim_ascii();
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    let mut bytes = Secret::new(vec![0; digits.len() / 2]);
    if !digits.is_empty() && hex::decode_to_slice(digits, bytes.expose_mut()).is_ok() {
        return bytes;
    }
    Secret::new(file.to_vec())
}
