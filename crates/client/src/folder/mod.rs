//! What a client is opened from: its file, or the folder that `theta group init` writes.

mod file;
mod locked;

use std::{
    fs,
    path::{Path, PathBuf},
};

use theta_keyfiles::PublicKeyText as _;
use theta_network::{Identity, group::GroupFile};
use theta_schemes::keys::{AnyPublicKey, KeyName};

pub use self::{
    file::{Checkpoint, ClientFile, changed_since, check_group},
    locked::LockError,
};
use crate::OpenError;

/// The file of what was checked of the ledger.
const LEDGER: &str = "group.ledger";

/// What is secret in a folder, and what is not.
pub(crate) struct Parts {
    pub(crate) public: PublicParts,
    /// Absent for clients that show no certificate.
    pub(crate) identity: Option<Identity>,
}

/// What is not secret in a folder.
pub(crate) struct PublicParts {
    pub(crate) group: GroupFile,
    pub(crate) keys: Vec<(KeyName, AnyPublicKey)>,
    /// Where to keep the ledger.
    pub(crate) ledger: PathBuf,
    /// How far it was checked already.
    pub(crate) checkpoint: Option<Checkpoint>,
}

pub(crate) fn read(folder: &Path) -> Result<Parts, OpenError> {
    if folder.is_file() {
        return parts_of(ClientFile::load(folder)?, folder);
    }
    let public = read_public(folder)?;
    let (certificate, key) = (folder.join("client.crt"), folder.join("client.key"));
    let shows_one = certificate.exists() || key.exists();
    let identity = shows_one.then(|| Identity::load(&certificate, &key)).transpose()?;
    Ok(Parts { public, identity })
}

/// The same of a client file that was read.
pub(crate) fn parts_of(file: ClientFile, path: &Path) -> Result<Parts, OpenError> {
    let identity = file.connects_as(path)?;
    Ok(Parts { public: of_file(file, path), identity })
}

/// The same without its secrets.
pub(crate) fn read_public(folder: &Path) -> Result<PublicParts, OpenError> {
    if folder.is_file() {
        return Ok(of_file(ClientFile::load(folder)?, folder));
    }
    let group = GroupFile::load(&folder.join("group.toml"))?;
    Ok(PublicParts { group, keys: public_keys(&folder.join("keys"))?, ledger: folder.join(LEDGER), checkpoint: None })
}

fn of_file(file: ClientFile, path: &Path) -> PublicParts {
    let (ledger, checkpoint) = (file::ledger_beside(path), file.checkpoint);
    PublicParts { group: file.group, keys: file.public_keys, ledger, checkpoint }
}

/// Reads all `.pub` files. Without the folder there are none, and the nodes will be asked.
fn public_keys(folder: &Path) -> Result<Vec<(KeyName, AnyPublicKey)>, OpenError> {
    let unreadable =
        |path: &Path, reason: std::io::Error| OpenError::Read { path: path.to_owned(), reason: reason.to_string() };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(folder, error)),
    };
    let mut keys = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        if path.extension().is_some_and(|extension| extension == "pub") {
            let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
            let (name, public) =
                AnyPublicKey::from_text(&text).map_err(|reason| OpenError::Key { path: path.clone(), reason })?;
            if path.file_stem().is_none_or(|stem| stem != name.as_str()) {
                return Err(OpenError::OtherKey { path, inside: name });
            }
            keys.push((name, public));
        }
    }
    Ok(keys)
}

/// The group of a client file or client directory, without opening the client: no secret is kept, and nobody is asked.
///
/// # Errors
/// [`OpenError`] names the file that is wrong.
pub fn read_group(client: &Path) -> Result<GroupFile, OpenError> {
    if client.is_file() {
        return Ok(ClientFile::load(client)?.group);
    }
    Ok(GroupFile::load(&client.join("group.toml"))?)
}
