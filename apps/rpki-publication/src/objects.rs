//! The objects of a repository, by their rsync URIs.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use rpki::uri::Rsync;

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
    /// over: issuers write files under such names before they give them their own.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, is no plain file, or is where no URI leads.
    pub fn read(folder: &Path) -> Result<Self, ReadError> {
        let mut objects = Self::default();
        let mut folders = vec![(folder.to_owned(), String::from("rsync:/"))];
        while let Some((folder, prefix)) = folders.pop() {
            let failed = |source| ReadError::File { path: folder.clone(), source };
            for entry in fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let path = entry.path();
                let name = entry.file_name().into_string();
                let name = name.map_err(|_| ReadError::Name { path: path.clone(), reason: "not ASCII".to_owned() })?;
                if name.starts_with('.') {
                    continue;
                }
                let uri = format!("{prefix}/{name}");
                let kind = entry.file_type().map_err(|source| ReadError::File { path: path.clone(), source })?;
                if kind.is_dir() {
                    folders.push((path, uri));
                } else if kind.is_file() {
                    let bytes = fs::read(&path).map_err(|source| ReadError::File { path: path.clone(), source })?;
                    objects.insert(uri, Bytes::from(bytes)).map_err(|reason| ReadError::Name { path, reason })?;
                } else {
                    return Err(ReadError::Kind { path });
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
