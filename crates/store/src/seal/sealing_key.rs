//! The key that opens a store: a passphrase, or 256 random bits.

use std::{
    env,
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::Path,
};

use theta_groups::{Secret, Transcript};

use crate::{StoreError, database::files};

/// Limit of a key file, in bytes: 64 digits and a line's end of two bytes.
const MOST_KEY_FILE: usize = 66;

/// The fewest characters of a passphrase that may seal a new store or backup.
const LEAST_PASSPHRASE: usize = 12;
/// The fewest different characters among them.
const LEAST_VARIETY: usize = 6;

/// The cost of Argon2id (RFC 9106).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argon2Cost {
    /// Memory in KiB, 8 to 1,048,576 and at least 8 a lane.
    pub memory: u32,
    /// Passes over it, 1 to 64.
    pub passes: u32,
    /// Lanes, 1 to 16.
    pub lanes: u32,
}

impl Default for Argon2Cost {
    /// The second recommended option of RFC 9106, section 4: 64 MiB, 3 passes, 4 lanes.
    fn default() -> Self {
        Self { memory: 64 << 10, passes: 3, lanes: 4 }
    }
}

impl Argon2Cost {
    /// Whether it is within its ranges: a tampered file must not make this process allocate all memory.
    pub(crate) const fn is_sane(self) -> bool {
        self.memory >= 8
            && self.memory <= 1 << 20
            && self.passes >= 1
            && self.passes <= 64
            && self.lanes >= 1
            && self.lanes <= 16
            && self.memory / 8 >= self.lanes
    }
}

/// What opens a store. It is wiped when dropped, and never printed.
#[derive(Debug)]
pub struct SealingKey(pub(super) Source);

#[derive(Debug)]
pub(super) enum Source {
    Passphrase { passphrase: Secret<String>, cost: Argon2Cost },
    Key(Secret<[u8; 32]>),
}

/// Why a sealing key cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SealingKeyError {
    /// An empty passphrase protects nothing.
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    /// The passphrase would be found by trying.
    #[error(
        "the passphrase is too easy to guess: it takes {LEAST_PASSPHRASE} characters, {LEAST_VARIETY} of them different; \
         five words drawn at random are good"
    )]
    WeakPassphrase,
    /// The cost is out of its ranges.
    #[error("Argon2id cost {0:?} is out of range: memory 8 to 1048576 KiB and 8 a lane, passes 1 to 64, lanes 1 to 16")]
    Cost(Argon2Cost),
    /// The variable is not set, or is not text.
    #[error("environment variable {0} is not set, or is not text")]
    Variable(String),
    /// systemd passed no credentials.
    #[error("CREDENTIALS_DIRECTORY is not set: add `LoadCredential={0}:...` to the unit")]
    NoCredentials(String),
    /// The text is not the name of a credential.
    #[error("{0:?} is not the name of a credential: it must not contain '/'")]
    CredentialName(String),
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] StoreError),
    /// The file is not a key.
    #[error("{0}: is not a key file: it has 32 bytes, or 64 hexadecimal digits and perhaps a line's end")]
    NotAKey(String),
}

impl SealingKey {
    /// A passphrase, stretched by Argon2id at the default cost.
    ///
    /// # Errors
    /// [`SealingKeyError::EmptyPassphrase`].
    pub fn passphrase(passphrase: Secret<String>) -> Result<Self, SealingKeyError> {
        Self::passphrase_with_cost(passphrase, Argon2Cost::default())
    }

    /// A passphrase, stretched at this cost when a new store or backup is sealed. Existing ones are opened at their own
    /// cost.
    ///
    /// # Errors
    /// [`SealingKeyError::EmptyPassphrase`], [`SealingKeyError::Cost`].
    pub fn passphrase_with_cost(passphrase: Secret<String>, cost: Argon2Cost) -> Result<Self, SealingKeyError> {
        if passphrase.expose().is_empty() {
            return Err(SealingKeyError::EmptyPassphrase);
        }
        if !cost.is_sane() {
            return Err(SealingKeyError::Cost(cost));
        }
        Ok(Self(Source::Passphrase { passphrase, cost }))
    }

    /// Refuses passphrases that should not seal anything new because they are obviously found by trying. Passing this
    /// check does not make a passphrase good. Existing stores are opened with any passphrase.
    ///
    /// # Errors
    /// [`SealingKeyError::WeakPassphrase`].
    pub fn check_new(&self) -> Result<(), SealingKeyError> {
        let Source::Passphrase { passphrase, .. } = &self.0 else { return Ok(()) };
        let characters = passphrase.expose().chars();
        let first_seen = characters.clone().enumerate().filter(|(at, found)| {
            // The characters are not collected, so that no copy of them remains in memory.
            !passphrase.expose().chars().take(*at).any(|before| before == *found)
        });
        let strong = characters.clone().count() >= LEAST_PASSPHRASE && first_seen.count() >= LEAST_VARIETY;
        if strong { Ok(()) } else { Err(SealingKeyError::WeakPassphrase) }
    }

    /// A uniformly random key.
    #[must_use]
    pub const fn key(key: Secret<[u8; 32]>) -> Self {
        Self(Source::Key(key))
    }

    /// A key from a file of 32 bytes, or of 64 hexadecimal digits, that only its owner may use.
    ///
    /// # Errors
    /// [`SealingKeyError::File`] if it cannot be read or others may use it; [`SealingKeyError::NotAKey`].
    pub fn from_file(path: &Path) -> Result<Self, SealingKeyError> {
        let place = path.display().to_string();
        let io_error = |error: io::Error| StoreError::io(place.as_str(), error);
        let file = File::open(path).map_err(io_error)?;
        files::check_private(path, &file)?;
        let mut content = Secret::new(Vec::with_capacity(80));
        // One byte more than the limit, to detect longer files.
        file.take(MOST_KEY_FILE as u64 + 1).read_to_end(content.expose_mut()).map_err(io_error)?;
        let mut key = Secret::new([0; 32]);
        if content.expose().len() == 32 {
            key.expose_mut().copy_from_slice(content.expose());
        } else {
            let digits = content.expose().trim_ascii_end();
            if content.expose().len() > MOST_KEY_FILE {
                return Err(SealingKeyError::NotAKey(place));
            }
            hex::decode_to_slice(digits, key.expose_mut()).map_err(|_| SealingKeyError::NotAKey(place))?;
        }
        Ok(Self::key(key))
    }

    /// The passphrase in an environment variable.
    ///
    /// # Errors
    /// [`SealingKeyError::Variable`], [`SealingKeyError::EmptyPassphrase`].
    pub fn from_env(variable: &str) -> Result<Self, SealingKeyError> {
        let passphrase = env::var(variable).map_err(|_| SealingKeyError::Variable(variable.to_owned()))?;
        Self::passphrase(Secret::new(passphrase))
    }

    /// A key from a credential of systemd (`LoadCredential=` or `LoadCredentialEncrypted=`), a file as for
    /// [`SealingKey::from_file`].
    ///
    /// # Errors
    /// As [`SealingKey::from_file`], and if there are no credentials.
    pub fn from_credential(name: &str) -> Result<Self, SealingKeyError> {
        let folder = env::var_os("CREDENTIALS_DIRECTORY");
        Self::from_credential_in(folder.as_deref(), name)
    }

    fn from_credential_in(folder: Option<&OsStr>, name: &str) -> Result<Self, SealingKeyError> {
        if name.is_empty() || name == ".." || name.contains('/') {
            return Err(SealingKeyError::CredentialName(name.to_owned()));
        }
        let folder = folder.ok_or_else(|| SealingKeyError::NoCredentials(name.to_owned()))?;
        Self::from_file(&Path::new(folder).join(name))
    }
}

/// The wrapping key, derived from 32 secret bytes for one kind of source.
pub(super) fn wrapping_key(kind: &'static [u8], secret: &Secret<[u8; 32]>) -> Secret<[u8; 32]> {
    Secret::new(
        Transcript::new("theta/store/wrapping-key/v1").with("kind", kind).with("secret", secret.expose()).finish32(),
    )
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn file(content: &[u8], mode: u32) -> tempfile::TempPath {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn bytes(key: &SealingKey) -> [u8; 32] {
        match &key.0 {
            Source::Key(key) => *key.expose(),
            Source::Passphrase { .. } => panic!("a passphrase"),
        }
    }

    #[test]
    fn what_is_found_by_trying_seals_nothing_new() {
        let check = |text: &str| SealingKey::passphrase(Secret::new(text.to_owned())).unwrap().check_new();
        for weak in ["short", "password123", "aaaaaaaaaaaaaaaaaaaa", "abcabcabcabcabc", "eleven char"] {
            assert!(matches!(check(weak), Err(SealingKeyError::WeakPassphrase)), "{weak}");
        }
        for good in ["correct horse", "überall zwölf", "x7#Qm2!vB9pL"] {
            assert!(check(good).is_ok(), "{good}");
        }
        SealingKey::key(Secret::new([0; 32])).check_new().unwrap();
    }

    #[test]
    fn key_files_are_raw_or_hexadecimal() {
        assert_eq!(bytes(&SealingKey::from_file(&file(&[9; 32], 0o600)).unwrap()), [9; 32]);
        let digits = "ab".repeat(32);
        for text in [digits.clone(), format!("{digits}\n"), format!("{digits}\r\n")] {
            assert_eq!(bytes(&SealingKey::from_file(&file(text.as_bytes(), 0o400)).unwrap()), [0xab; 32]);
        }
        for bad in ["", "ab", &"ab".repeat(31), &"ab".repeat(33), &"zz".repeat(32), &format!("{digits}\n\n\n")] {
            let error = SealingKey::from_file(&file(bad.as_bytes(), 0o600)).unwrap_err();
            assert!(matches!(error, SealingKeyError::NotAKey(_)), "{bad:?}: {error}");
        }
    }

    #[test]
    fn a_key_file_that_others_may_read_is_refused() {
        let error = SealingKey::from_file(&file(&[9; 32], 0o640)).unwrap_err();
        assert!(error.to_string().contains("mode 640"), "{error}");
    }

    #[test]
    fn credentials_are_files_in_their_folder() {
        let path = file(&[9; 32], 0o400);
        let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap());
        assert_eq!(bytes(&SealingKey::from_credential_in(Some(folder.as_os_str()), name).unwrap()), [9; 32]);
        assert!(matches!(SealingKey::from_credential_in(None, name), Err(SealingKeyError::NoCredentials(_))));
        for bad in ["", "..", "../key"] {
            let error = SealingKey::from_credential_in(Some(folder.as_os_str()), bad).unwrap_err();
            assert!(matches!(error, SealingKeyError::CredentialName(_)), "{error}");
        }
    }

    #[test]
    fn an_environment_variable_is_a_passphrase() {
        assert!(matches!(SealingKey::from_env("CARGO_PKG_NAME").unwrap().0, Source::Passphrase { .. }));
        assert!(matches!(SealingKey::from_env("THETA_NO_SUCH_VARIABLE"), Err(SealingKeyError::Variable(_))));
    }

    #[test]
    fn passphrases_are_never_shown() {
        let key = SealingKey::passphrase(Secret::new("correct horse".to_owned())).unwrap();
        assert!(!format!("{key:?}").contains("horse"));
        assert!(SealingKey::passphrase(Secret::new(String::new())).is_err());
    }
}
