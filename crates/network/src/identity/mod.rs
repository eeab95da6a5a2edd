//! The identity of this process: a certificate and its private key.

mod certificate;
mod error;
mod issue;
mod renewal;
mod shown;

use core::fmt;
use std::{fs::File, io::Read, path::Path, sync::Arc};

use rustls::{
    SignatureScheme,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use zeroize::Zeroizing;

pub use self::{
    certificate::Period,
    error::IdentityError,
    issue::{GeneratedIdentity, Subject},
};
use self::{
    error::PemKind,
    shown::{Certificate, Shown},
};
use crate::Fingerprint;

/// A private key and its certificate, ready for TLS. Cheap to clone; prints only the fingerprint. All clones show the same
/// certificate, also when it is [renewed](Self::renew).
#[derive(Clone)]
pub struct Identity {
    shown: Arc<Shown>,
    fingerprint: Fingerprint,
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

    /// What others pin.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// From when until when its certificate is valid, if the certificate says so in a way that is understood.
    #[must_use]
    pub fn period(&self) -> Option<Period> {
        self.shown.now().period
    }

    /// When its certificate ends, in seconds since 1970, if the certificate says so in a way that is understood.
    #[must_use]
    pub fn ends(&self) -> Option<u64> {
        self.period().map(|period| period.until)
    }

    /// What shows the certificate, the present one in each handshake.
    pub(crate) fn resolver(&self) -> Arc<Shown> {
        Arc::clone(&self.shown)
    }

    /// Signs a message by the first of these schemes that the key can do; returns its public key (SubjectPublicKeyInfo in DER) with it. `None`
    /// if it can do none of them.
    pub(crate) fn sign(
        &self,
        schemes: &[SignatureScheme],
        message: &[u8],
    ) -> Option<(Vec<u8>, SignatureScheme, Vec<u8>)> {
        self.shown.now().sign(schemes, message)
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
        // The parser's errors could quote the key, so they are dropped.
        let key = PrivateKeyDer::from_pem_slice(key_pem)
            .map_err(|_| malformed(PemKind::PrivateKey, key_path, "no readable section".to_owned()))?;
        let fingerprint = Fingerprint::of(&certificate)
            .map_err(|error| malformed(PemKind::Certificate, certificate_path, error.to_string()))?;
        let provider = aws_lc_rs::default_provider();
        let signing_key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|_| malformed(PemKind::PrivateKey, key_path, "no usable key in it".to_owned()))?;
        let certified_key = CertifiedKey::new(vec![certificate], signing_key);
        match certified_key.keys_match() {
            Ok(()) => Ok(Self { shown: Arc::new(Shown::new(Certificate::new(certified_key))), fingerprint }),
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
    // The buffer has its full size from the start: growing would leave an unwiped copy of a key behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1)));
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Checks the open file and not the path, so that the file that is checked is the one that is read.
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
    use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

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
