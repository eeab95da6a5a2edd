//! Who this process is: a certificate and its private key.

use core::fmt;
use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};
use rustls::{
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use zeroize::Zeroizing;

use crate::Fingerprint;

/// A certificate and its private key, ready for TLS. Cheap to clone; prints only the fingerprint.
#[derive(Clone)]
pub struct Identity {
    certified_key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

/// A fresh identity as text, to be written to files.
pub struct GeneratedIdentity {
    /// The certificate, PEM.
    pub certificate_pem: String,
    /// The private key, PKCS#8 PEM; wiped when dropped. Write it with mode 0600.
    pub key_pem: Zeroizing<String>,
    /// What others pin.
    pub fingerprint: Fingerprint,
}

/// Why an identity could not be loaded or made. Each message is one line.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file could not be read.
    #[error("cannot read {what} {}: {source}", path.display())]
    Read {
        /// Which of the two files.
        what: PemKind,
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The private key can be read by others than its owner.
    #[error("the private key {} can be read by others (mode {mode:04o}); run: chmod 600 {}", path.display(), path.display())]
    KeyExposed {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A file holds something else.
    #[error("{} is not {what}: {reason}; it must be a PEM file with a {} section", path.display(), what.section())]
    Malformed {
        /// What the file should be.
        what: PemKind,
        /// The file, or what was given in its place.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The private key belongs to another certificate.
    #[error("{} is not the private key of the certificate {}; give the pair made together", key.display(), certificate.display())]
    Mismatch {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
    },
    /// The certificate could not be made.
    #[error("cannot make a certificate for {name:?}: {reason}")]
    Generate {
        /// For whom.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// One of the two files of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PemKind {
    /// The public part.
    Certificate,
    /// The secret part.
    PrivateKey,
}

impl PemKind {
    const fn section(self) -> &'static str {
        match self {
            Self::Certificate => "CERTIFICATE",
            Self::PrivateKey => "PRIVATE KEY",
        }
    }
}

impl fmt::Display for PemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "the certificate",
            Self::PrivateKey => "the private key",
        })
    }
}

/// An identity file is a few hundred bytes; more is a mistake.
const MAX_FILE_BYTES: u64 = 64 * 1024;

impl Identity {
    /// Loads a certificate and its private key from PEM files.
    ///
    /// # Errors
    /// [`IdentityError`]: a file is missing or malformed, the key is readable by others, or the two do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let certificate_pem = read(PemKind::Certificate, certificate)?;
        let key_pem = read(PemKind::PrivateKey, key)?;
        Self::from_bytes(&certificate_pem, &key_pem, certificate, key)
    }

    /// Takes a certificate and its private key from PEM text.
    ///
    /// # Errors
    /// [`IdentityError::Malformed`] or [`IdentityError::Mismatch`].
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self, IdentityError> {
        let (certificate, key) = (Path::new("the given certificate"), Path::new("the given key"));
        Self::from_bytes(certificate_pem.as_bytes(), key_pem.as_bytes(), certificate, key)
    }

    /// Makes a self-signed certificate (ECDSA P-256) for `name`, which is only a label: peers pin the fingerprint.
    ///
    /// It is valid from 2020 to 2120, because pinning makes dates irrelevant: membership ends by removing the pin.
    ///
    /// # Errors
    /// [`IdentityError::Generate`] if `name` is empty or longer than the 64 characters of an X.509 common name.
    pub fn generate(name: &str) -> Result<GeneratedIdentity, IdentityError> {
        let failed = |reason: String| IdentityError::Generate { name: name.to_owned(), reason };
        if name.is_empty() || name.chars().count() > 64 {
            return Err(failed("a certificate's name has 1 to 64 characters".to_owned()));
        }
        // Pins decide, not names; but libraries in other languages insist on a name that could be a host's.
        let host = name.to_lowercase().replace(|character: char| !character.is_ascii_alphanumeric(), "-");
        let mut params = CertificateParams::new(vec![host]).map_err(|error| failed(error.to_string()))?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2120, 1, 1);
        let pair = KeyPair::generate().map_err(|error| failed(error.to_string()))?;
        let certificate = params.self_signed(&pair).map_err(|error| failed(error.to_string()))?;
        Ok(GeneratedIdentity {
            fingerprint: Fingerprint::of(certificate.der()),
            certificate_pem: certificate.pem(),
            key_pem: Zeroizing::new(pair.serialize_pem()),
        })
    }

    /// What others pin.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// When the certificate ends, in seconds since 1970, if it says so in a way that is understood. Pins decide, not dates; but
    /// software of others may insist on it.
    #[must_use]
    pub fn ends(&self) -> Option<u64> {
        crate::validity::ends(self.certified_key.end_entity_cert().ok()?)
    }

    pub(crate) const fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.certified_key
    }

    fn from_bytes(
        certificate_pem: &[u8],
        key_pem: &[u8],
        certificate_path: &Path,
        key_path: &Path,
    ) -> Result<Self, IdentityError> {
        let malformed =
            |what, path: &Path, reason: String| IdentityError::Malformed { what, path: path.into(), reason };
        let certificate = CertificateDer::from_pem_slice(certificate_pem)
            .map_err(|error| malformed(PemKind::Certificate, certificate_path, error.to_string()))?;
        // The parser's errors could quote the key, so they are not passed on.
        let key = PrivateKeyDer::from_pem_slice(key_pem)
            .map_err(|_| malformed(PemKind::PrivateKey, key_path, "no readable section".to_owned()))?;
        let fingerprint = Fingerprint::of(&certificate);
        let provider = aws_lc_rs::default_provider();
        let signing_key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|_| malformed(PemKind::PrivateKey, key_path, "no usable key in it".to_owned()))?;
        let certified_key = CertifiedKey::new(vec![certificate], signing_key);
        match certified_key.keys_match() {
            Ok(()) => Ok(Self { certified_key: Arc::new(certified_key), fingerprint }),
            Err(rustls::Error::InconsistentKeys(_)) => {
                Err(IdentityError::Mismatch { certificate: certificate_path.into(), key: key_path.into() })
            }
            Err(error) => Err(malformed(PemKind::Certificate, certificate_path, error.to_string())),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl fmt::Debug for GeneratedIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratedIdentity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

fn read(what: PemKind, path: &Path) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
    let failed = |source| IdentityError::Read { what, path: path.into(), source };
    let file = File::open(path).map_err(failed)?;
    if what == PemKind::PrivateKey {
        refuse_exposed(&file, path)?;
    }
    let size = file.metadata().map_err(failed)?.len();
    if size > MAX_FILE_BYTES {
        let reason = format!("it has {size} bytes");
        return Err(IdentityError::Malformed { what, path: path.into(), reason });
    }
    // Sized beforehand, so that growing leaves no unwiped copy of a key behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1)));
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Looks at the open file, not at the path, so that the file checked is the file read.
#[cfg(unix)]
fn refuse_exposed(file: &File, path: &Path) -> Result<(), IdentityError> {
    use std::os::unix::fs::PermissionsExt;

    let metadata = file.metadata().map_err(|source| IdentityError::Read {
        what: PemKind::PrivateKey,
        path: path.into(),
        source,
    })?;
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_file() && mode & 0o077 != 0 {
        return Err(IdentityError::KeyExposed { path: path.into(), mode });
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_exposed(_file: &File, _path: &Path) -> Result<(), IdentityError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use tempfile::TempDir;

    use super::*;

    fn write(dir: &TempDir, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_generated_identity_loads() {
        let made = Identity::generate("node-1").unwrap();
        let dir = TempDir::new().unwrap();
        let certificate = write(&dir, "node.crt", &made.certificate_pem, 0o644);
        let key = write(&dir, "node.key", &made.key_pem, 0o600);
        let loaded = Identity::load(&certificate, &key).unwrap();
        assert_eq!(loaded.fingerprint(), made.fingerprint);
        assert!(!format!("{loaded:?} {made:?}").contains("PRIVATE"));
    }

    #[test]
    fn a_key_others_may_read_is_refused_with_the_remedy() {
        let made = Identity::generate("node-1").unwrap();
        let dir = TempDir::new().unwrap();
        let certificate = write(&dir, "node.crt", &made.certificate_pem, 0o644);
        for mode in [0o644, 0o640, 0o604, 0o620] {
            let key = write(&dir, "node.key", &made.key_pem, mode);
            let message = Identity::load(&certificate, &key).unwrap_err().to_string();
            assert!(message.contains(&format!("(mode {mode:04o}); run: chmod 600 {}", key.display())), "{message}");
        }
    }

    #[test]
    fn bad_files_are_refused_in_one_line() {
        let made = Identity::generate("node-1").unwrap();
        let other = Identity::generate("node-2").unwrap();
        let dir = TempDir::new().unwrap();
        let certificate = write(&dir, "node.crt", &made.certificate_pem, 0o644);
        let key = write(&dir, "node.key", &made.key_pem, 0o600);
        let other_key = write(&dir, "other.key", &other.key_pem, 0o600);
        let junk = write(&dir, "junk", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 0o600);
        let huge = write(&dir, "huge", &"x".repeat(70_000), 0o600);
        let absent = dir.path().join("absent");
        for (certificate, key, expected) in [
            (&absent, &key, "cannot read the certificate"),
            (&certificate, &absent, "cannot read the private key"),
            (&junk, &key, "is not the certificate"),
            (&certificate, &junk, "is not the private key"),
            (&certificate, &huge, "70000 bytes"),
            (&certificate, &certificate, "can be read by others"),
            (&certificate, &other_key, "is not the private key of the certificate"),
        ] {
            let message = Identity::load(certificate, key).unwrap_err().to_string();
            assert!(message.contains(expected), "{message} lacks {expected}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn impossible_names_are_refused() {
        assert!(Identity::generate("").is_err());
        assert!(Identity::generate(&"x".repeat(65)).is_err());
    }
}
