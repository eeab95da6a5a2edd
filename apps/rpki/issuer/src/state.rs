//! What was asked for, written before it is asked: so that numbers and keys are not used twice, and what is withdrawn is revoked.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// There is none, and one that was lost is not begun anew in silence.
    #[error("there is no {}: bring it back from where it is; only where nothing was ever issued begin a new one (--new-state)", .0.display())]
    Missing(PathBuf),
    /// A new one was to be begun in the place of another.
    #[error("there is a {} already: it goes on without --new-state", .0.display())]
    Exists(PathBuf),
    /// Another issuer has it.
    #[error("another issuer uses {}", .0.display())]
    Busy(PathBuf),
    /// The file cannot be read or written.
    #[error("cannot use {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The file is none that an issuer writes.
    #[error("{}: {reason}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// A certificate that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certified {
    /// Its serial number.
    pub serial: u64,
    /// The file that it is for, or is in.
    pub file: String,
    /// When it begins, in seconds since 1970.
    pub from: i64,
    /// When it ends, in seconds since 1970.
    pub until: i64,
    /// The name of the certified key, if it is one of the pool.
    pub key: String,
    /// Whether it was signed. One that was not may be known to agents all the same.
    pub is_signed: bool,
    /// Whether a list revokes it to make room for another one of the same file.
    pub is_revoked: bool,
}

/// An object that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// SHA-256 of the file, in hexadecimal digits.
    pub digest: String,
    /// When its certificate ends, in seconds since 1970.
    pub until: i64,
}

/// The manifest that is published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Current {
    /// When it begins, in seconds since 1970.
    pub from: i64,
    /// When the next one is due.
    pub until: i64,
    /// Its files with their digests, but for the list.
    pub files: BTreeMap<String, String>,
    /// The serial numbers that its list revokes of what is published no more.
    pub withdrawn: BTreeSet<u64>,
    /// The digest of the list.
    pub list: String,
    /// The digest of the manifest's content.
    pub content: String,
    /// The digest of the manifest.
    pub manifest: String,
}

/// What was asked for of one authority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// The last number of a list and a manifest.
    pub number: u64,
    /// When the last manifest that was asked for begins, in seconds since 1970.
    pub from: i64,
    /// The certificates that have not ended.
    pub certificates: Vec<Certified>,
    /// The objects, by their files.
    pub objects: BTreeMap<String, Kept>,
    /// What is published.
    pub current: Option<Current>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The version of this file.
    pub format: u32,
    /// By authorities.
    pub authorities: BTreeMap<String, Issued>,
    /// What keys of the pool are for: the SHA-256 of a content, or `manifests of` an authority.
    pub keys: BTreeMap<String, String>,
    /// The digests that the last run needed.
    pub needed: BTreeSet<String>,
}

/// The version that this program writes.
const FORMAT: u32 = 1;

impl State {
    /// What is known of an authority.
    pub fn of(&mut self, authority: &str) -> &mut Issued {
        self.authorities.entry(authority.to_owned()).or_default()
    }
}

/// A state with its file, which no other issuer has meanwhile.
#[derive(Debug)]
pub struct StateFile {
    /// What is in it once it is [saved](StateFile::save).
    pub state: State,
    path: PathBuf,
    _lock: File,
}

impl StateFile {
    /// Opens the state, or begins a new one.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(path: &Path, begin: bool) -> Result<Self, StateError> {
        let failed = |reason| StateError::File { path: path.to_owned(), reason };
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let lock = File::options().create(true).append(true).open(lock).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StateError::Busy(path.to_owned())),
            Err(TryLockError::Error(reason)) => return Err(failed(reason)),
        }
        let state = match (fs::read_to_string(path), begin) {
            (Ok(_), true) => return Err(StateError::Exists(path.to_owned())),
            (Ok(text), false) => read(&text).map_err(|reason| StateError::Text { path: path.to_owned(), reason })?,
            (Err(error), true) if error.kind() == io::ErrorKind::NotFound => {
                State { format: FORMAT, ..State::default() }
            }
            (Err(error), false) if error.kind() == io::ErrorKind::NotFound => {
                return Err(StateError::Missing(path.to_owned()));
            }
            (Err(error), _) => return Err(failed(error)),
        };
        let opened = Self { state, path: path.to_owned(), _lock: lock };
        opened.save()?;
        Ok(opened)
    }

    /// Brings it to the disk, all of it or nothing.
    ///
    /// # Errors
    /// [`StateError::File`].
    pub fn save(&self) -> Result<(), StateError> {
        let failed = |reason| StateError::File { path: self.path.clone(), reason };
        let text = serde_json::to_vec(&self.state).map_err(|error| failed(error.into()))?;
        crate::output::write(&self.path, &text).map_err(failed)
    }
}

fn read(text: &str) -> Result<State, String> {
    let state: State = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if state.format == FORMAT { Ok(state) } else { Err(format!("this program reads format {FORMAT} alone")) }
}

/// Writes to the disk before it returns.
pub(crate) fn put_whole(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}
