//! The store of a node, and what opens it.

use std::{
    fs::File,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use theta_schemes::groups::Secret;
use theta_store::{SealingKey, SealingKeyError, Store, StoreError};

/// The longest passphrase in a file, in bytes.
const MOST_PASSPHRASE: u64 = 4_096;

/// A node's store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// The file. Default `theta.redb`.
    pub path: PathBuf,
    /// What opens it. Default: the key file `store.key`.
    pub sealing: Sealing,
}

/// What seals a store, and where to find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sealing {
    /// A file of 32 random bytes, or of their 64 hexadecimal digits, that nobody but its owner may read.
    File(PathBuf),
    /// A file with a passphrase, that nobody but its owner may read.
    PassphraseFile(PathBuf),
    /// A passphrase in this environment variable.
    Env(String),
    /// A key file that systemd passes as the credential of this name.
    Credential(String),
}

/// Why a store cannot be opened or made.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// The sealing key is missing or wrong.
    #[error("{0}; see `store.sealing` in node.toml")]
    Sealing(#[from] SealingKeyError),
    /// The file of the passphrase cannot be used.
    #[error("the passphrase file {}: {reason}", path.display())]
    Passphrase {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The store itself does not open.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { path: "theta.redb".into(), sealing: Sealing::File("store.key".into()) }
    }
}

impl Sealing {
    /// Reads what opens the store.
    ///
    /// # Errors
    /// [`StoreOpenError`]: the key is missing, wrong, or readable by others.
    pub fn key(&self) -> Result<SealingKey, StoreOpenError> {
        Ok(match self {
            Self::File(path) => SealingKey::from_file(path)?,
            Self::PassphraseFile(path) => SealingKey::passphrase(passphrase(path)?)?,
            Self::Env(variable) => SealingKey::from_env(variable)?,
            Self::Credential(name) => SealingKey::from_credential(name)?,
        })
    }

    /// Reads the key for a new store or backup.
    ///
    /// # Errors
    /// As [`Sealing::key`], and for a passphrase that is too easy to guess.
    pub fn new_key(&self) -> Result<SealingKey, StoreOpenError> {
        let key = self.key()?;
        key.check_new()?;
        Ok(key)
    }

    /// The file that it names, if it names one.
    pub(super) const fn path_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::File(path) | Self::PassphraseFile(path) => Some(path),
            Self::Env(_) | Self::Credential(_) => None,
        }
    }
}

impl StoreConfig {
    /// Opens the store. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`].
    pub fn open(&self) -> Result<Store, StoreOpenError> {
        Ok(Store::open(&self.path, &self.sealing.key()?)?)
    }

    /// Makes a new store. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`].
    pub fn create(&self) -> Result<Store, StoreOpenError> {
        Ok(Store::create(&self.path, &self.sealing.new_key()?)?)
    }
}

/// Reads the first line of the file.
fn passphrase(path: &Path) -> Result<Secret<String>, StoreOpenError> {
    let failed = |reason: String| StoreOpenError::Passphrase { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let metadata = file.metadata().map_err(|error| failed(error.to_string()))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_file() && mode & 0o077 != 0 {
        return Err(failed(format!("others may read it (mode {mode:o}); run: chmod 600 {}", path.display())));
    }
    // Allocated in full, so that growing leaves no copy that is not wiped.
    let mut text = Secret::new(String::with_capacity(usize::try_from(MOST_PASSPHRASE).unwrap_or_default() + 1));
    file.take(MOST_PASSPHRASE).read_to_string(text.expose_mut()).map_err(|error| failed(error.to_string()))?;
    let end = text.expose().find(['\r', '\n']).unwrap_or(text.expose().len());
    text.expose_mut().truncate(end);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_passphrase_is_the_first_line_of_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passphrase");
        fs::write(&path, "correct horse\nbattery\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = Sealing::PassphraseFile(path.clone()).key().unwrap_err().to_string();
        assert!(error.contains("mode 644") && error.contains("chmod 600"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(passphrase(&path).unwrap().expose(), "correct horse");
        fs::write(&path, "\n").unwrap();
        let error = Sealing::PassphraseFile(path).key().unwrap_err().to_string();
        assert!(error.contains("empty") && error.contains("store.sealing"), "{error}");
    }

    #[test]
    fn a_store_opens_with_the_key_that_it_was_made_with() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let key = folder.path().join("store.key");
        fs::write(&key, "07".repeat(32)).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let config = StoreConfig { path: folder.path().join("theta.redb"), sealing: Sealing::File(key.clone()) };
        assert!(matches!(config.open(), Err(StoreOpenError::Store(StoreError::Missing(_)))));
        let id = config.create().unwrap().id();
        assert_eq!(config.open().unwrap().id(), id);
        fs::write(&key, "08".repeat(32)).unwrap();
        assert!(matches!(config.open(), Err(StoreOpenError::Store(_))));
    }
}
