//! The objects of a repository, by their rsync URIs.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io::{self, Read as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use rpki::uri::Rsync;
use rustix::{
    fs::{Dir, DirEntry, FileType, Mode, OFlags, openat},
    io::Errno,
};

/// The most bytes of an object, as many as the registries' agents look at (`spec/rpki.md`).
pub const MOST_BYTES: u64 = 4 << 20;

/// Why objects cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system said no.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The name of a file makes no URI.
    #[error("{}: its place in the folder is no rsync URI ({reason}); it would be HOST/MODULE/.../FILE", .path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// What is wrong with the URI.
        reason: String,
    },
    /// Neither a file nor a folder: a link, a socket, a device.
    #[error("{}: neither a file nor a folder; objects are plain files", .path.display())]
    Kind {
        /// The path.
        path: PathBuf,
    },
    /// A file is too long.
    #[error("{}: it has more than {MOST_BYTES} bytes; objects have fewer", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
}

/// One object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Object {
    /// Where relying parties find it.
    pub uri: Rsync,
    /// Its DER.
    pub bytes: Bytes,
}

/// Objects in the order of their URIs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Objects(BTreeMap<String, Object>);

impl Objects {
    /// Reads a folder in which the object `rsync://HOST/MODULE/PATH` is the file `HOST/MODULE/PATH`. Names that begin with a dot are passed
    /// over: issuers write files under such names before they give them their own. No link is followed, but for the folder itself.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, is no plain file, is longer than [`MOST_BYTES`], or is where no URI leads.
    pub fn read(folder: &Path) -> Result<Self, ReadError> {
        let mut objects = Self::default();
        let top = rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let entries = top.and_then(Dir::new).map_err(|error| failed(folder, error))?;
        let mut folders = vec![Folder { entries, path: folder.to_owned(), uri: "rsync:/".to_owned() }];
        while let Some(folder) = folders.last_mut() {
            let Some(entry) = folder.entries.next() else {
                folders.pop();
                continue;
            };
            let entry = entry.map_err(|error| failed(&folder.path, error))?;
            let name = entry.file_name().to_bytes();
            if name.starts_with(b".") {
                continue;
            }
            let path = folder.path.join(OsStr::from_bytes(name));
            let Ok(name) = std::str::from_utf8(name) else {
                return Err(ReadError::Name { path, reason: "not ASCII".to_owned() });
            };
            let uri = format!("{}/{name}", folder.uri);
            let found = folder.open(&entry, &path)?;
            match found {
                Found::Folder(entries) => folders.push(Folder { entries, path, uri }),
                Found::File(bytes) => {
                    objects.insert(uri, bytes).map_err(|reason| ReadError::Name { path, reason })?;
                }
            }
        }
        Ok(objects)
    }

    /// Puts an object at a URI, in the place of the one that was there.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the URI. It has only letters, digits and `-._~:/`: it becomes a path here and at every relying party.
    pub fn insert(&mut self, uri: String, bytes: Bytes) -> Result<(), String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
        if !uri.bytes().all(plain) {
            return Err("it has other characters than letters, digits and -._~:/".to_owned());
        }
        let parsed = Rsync::from_string(uri.clone()).map_err(|error| error.to_string())?;
        // The parser takes the part before the path as it is, and a path that is a folder.
        let rest = uri.get("rsync://".len()..).unwrap_or_default();
        if rest.split('/').any(|segment| segment.is_empty() || segment.starts_with('.')) {
            return Err("a part of it is empty or begins with a dot".to_owned());
        }
        self.0.insert(uri, Object { uri: parsed, bytes });
        Ok(())
    }

    /// Takes an object out.
    pub fn remove(&mut self, uri: &Rsync) -> Option<Object> {
        self.0.remove(uri.as_str())
    }

    /// The object at a URI.
    pub fn get(&self, uri: &Rsync) -> Option<&Object> {
        self.0.get(uri.as_str())
    }

    /// All objects, in the order of their URIs.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        self.0.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A folder that is being read.
struct Folder {
    entries: Dir,
    path: PathBuf,
    /// The URI of what is in it, up to the slash.
    uri: String,
}

/// What an entry of a folder is.
enum Found {
    Folder(Dir),
    File(Bytes),
}

impl Folder {
    /// Opens what an entry names, by the folder that it was read from: whoever puts a link in the place of a folder meanwhile leads nowhere.
    /// No pipe holds the run up, and no device is touched.
    fn open(&self, entry: &DirEntry, path: &Path) -> Result<Found, ReadError> {
        // Some file systems do not say what an entry is before it is opened.
        if !matches!(entry.file_type(), FileType::RegularFile | FileType::Directory | FileType::Unknown) {
            return Err(ReadError::Kind { path: path.to_owned() });
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = self.entries.fd().and_then(|folder| openat(folder, entry.file_name(), flags, Mode::empty()));
        let file = match opened {
            Ok(opened) => File::from(opened),
            // A link, and a socket.
            Err(Errno::LOOP | Errno::NXIO) => return Err(ReadError::Kind { path: path.to_owned() }),
            Err(error) => return Err(failed(path, error)),
        };
        let kind = file.metadata().map_err(|error| failed(path, error))?.file_type();
        if kind.is_dir() {
            return Dir::new(OwnedFd::from(file)).map(Found::Folder).map_err(|error| failed(path, error));
        }
        if !kind.is_file() {
            return Err(ReadError::Kind { path: path.to_owned() });
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(ReadError::TooLong { path: path.to_owned() });
        }
        Ok(Found::File(Bytes::from(bytes)))
    }
}

fn failed(path: &Path, error: impl Into<io::Error>) -> ReadError {
    ReadError::File { path: path.to_owned(), source: error.into() }
}
