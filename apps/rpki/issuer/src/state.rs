//! What was asked for, written before it is asked: so that numbers and keys are not used twice, and what is withdrawn is revoked.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use theta_rpki::{
    memory::{Entry, Memory, Number},
    statements::{Authorised, Stated},
};

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// There is none, and one that was lost is not begun anew in silence.
    #[error("there is no {}: bring it back from where it is; if it is lost, begin a new one with what an agent remembers (--new-state --from-memory FILE); only where nothing was ever issued begin one without", .0.display())]
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

/// The serial number of a certificate, in 40 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SerialNumber(pub Number);

impl TryFrom<String> for SerialNumber {
    type Error = hex::FromHexError;

    fn try_from(digits: String) -> Result<Self, hex::FromHexError> {
        let mut number = [0; 20];
        hex::decode_to_slice(digits, &mut number)?;
        Ok(Self(number))
    }
}

impl From<SerialNumber> for String {
    fn from(SerialNumber(number): SerialNumber) -> Self {
        hex::encode(number)
    }
}

/// A certificate that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certified {
    /// Its serial number.
    pub serial: SerialNumber,
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
    /// Whether it is known from an agent's memory: somebody else, or a state that was lost, has asked for it.
    pub is_learnt: bool,
    /// Whether a list that was signed revokes it.
    pub is_revoked: bool,
}

impl Certified {
    /// One that is to be asked for.
    pub(crate) fn asked(serial: SerialNumber, file: String, (from, until): (i64, i64), key: String) -> Self {
        Self { serial, file, from, until, key, is_signed: false, is_learnt: false, is_revoked: false }
    }
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
    /// The certificates that have not ended, or not long ago.
    pub certificates: Vec<Certified>,
    /// The objects, by their files.
    pub objects: BTreeMap<String, Kept>,
    /// The SHA-256 of the last certificates of the authorities below, in hexadecimal digits, by their files.
    pub children: BTreeMap<String, String>,
    /// What is published.
    pub current: Option<Current>,
    /// Serial numbers that agents have missed on a list, and when their certificates end at the latest, in seconds since 1970.
    pub told: BTreeMap<SerialNumber, i64>,
    /// What was said last against what is asked for again and again, by files.
    pub objections: BTreeMap<String, String>,
    /// The SHA-256 of contents that agents have taken a key for, in hexadecimal digits: they permit so many.
    pub contents: BTreeSet<String>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The version of this file.
    pub format: u32,
    /// When the last run was, in seconds since 1970; 0 if there was none.
    pub ran: i64,
    /// By authorities.
    pub authorities: BTreeMap<String, Issued>,
    /// What keys of the pool are for: the SHA-256 of a content, or `manifests of` an authority.
    pub keys: BTreeMap<String, String>,
    /// Keys that agents have refused for what they were to be for, with the times in seconds since 1970: others are taken before them.
    pub doubted: BTreeMap<String, i64>,
    /// Which statements of members have decided, as an agent's memory has them, by members and what they are about.
    pub counted: BTreeMap<String, String>,
    /// The digests that the last run needed.
    pub needed: BTreeSet<String>,
}

/// The version that this program writes.
const FORMAT: u32 = 3;

impl State {
    /// What is known of an authority.
    pub fn of(&mut self, authority: &str) -> &mut Issued {
        self.authorities.entry(authority.to_owned()).or_default()
    }

    /// Notes that a statement has decided, in the place of the one about the same before it.
    pub(crate) fn count(&mut self, entry: &Entry) {
        if let Entry::Statement { member, subject, .. } = entry {
            self.counted.insert(format!("{member} {subject}"), entry.to_string());
        }
    }

    /// The statements that have decided.
    pub(crate) fn statements(&self) -> Memory {
        let mut memory = Memory::default();
        self.counted.values().filter_map(|line| line.parse().ok()).for_each(|entry| memory.learn(entry));
        memory
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
    /// Opens the state, or begins a new one, which is there when it is [saved](Self::save) first.
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
        Ok(Self { state, path: path.to_owned(), _lock: lock })
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

    /// What members have authorised at a time, in seconds since 1970. What has decided before is known, as agents know it, so that nothing comes back
    /// or goes with a file.
    ///
    /// # Errors
    /// [`StateError::File`].
    pub fn authorised(&mut self, stated: &Stated, now: i64) -> Result<Authorised, StateError> {
        let (standing, entries) = stated.standing(&self.state.statements(), now, None);
        entries.iter().for_each(|entry| self.state.count(entry));
        if !entries.is_empty() {
            self.save()?;
        }
        Ok(standing.authorised)
    }
}

fn read(text: &str) -> Result<State, String> {
    let state: State = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if state.format != FORMAT {
        return Err(format!("this program reads format {FORMAT} alone"));
    }
    match state.counted.values().find(|line| !matches!(line.parse(), Ok(Entry::Statement { .. }))) {
        Some(line) => Err(format!("{line} is no statement that has decided")),
        None => Ok(state),
    }
}

/// Writes to the disk before it returns.
pub(crate) fn put_whole(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}
