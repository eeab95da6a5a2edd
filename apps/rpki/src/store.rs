//! Where contents and objects are found that a signature covers by their digest alone. Whoever asks for signatures puts them there; they are
//! believed for what they are, since they have to hash to what was asked for.

use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::{
    files::{self, Links},
    memory::Digest,
    objects::MOST_BYTES,
};

/// A source of contents and objects.
pub trait Store: Send + Sync {
    /// The bytes with this SHA-256.
    ///
    /// # Errors
    /// Why they cannot be had, in words.
    fn content(&self, digest: &Digest) -> Result<Vec<u8>, String>;

    /// What is published at an address (`rsync://host/module/path`).
    ///
    /// # Errors
    /// Why it cannot be had, in words.
    fn published(&self, address: &str) -> Result<Vec<u8>, String>;
}

/// A folder: `sha256/DIGITS` for contents, `rsync/HOST/MODULE/PATH` for what is published.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at this path.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX);
    files::read(path, Links::Refused, most).map_err(|reason| format!("cannot read {}: {reason}", path.display()))
}

impl Store for Folder {
    fn content(&self, digest: &Digest) -> Result<Vec<u8>, String> {
        let path = self.0.join("sha256").join(hex::encode(digest));
        let bytes = read(&path)?;
        if Sha256::digest(&bytes).as_slice() == digest {
            Ok(bytes)
        } else {
            Err(format!("{} has another SHA-256 than its name says", path.display()))
        }
    }

    fn published(&self, address: &str) -> Result<Vec<u8>, String> {
        let good = |part: &str| !part.is_empty() && part != "." && part != "..";
        let path = address.strip_prefix("rsync://").filter(|path| path.split('/').all(good));
        let path = path.ok_or_else(|| format!("{address} is no address of a file"))?;
        read(&self.0.join("rsync").join(path))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn contents_are_what_they_hash_to() {
        let folder = tempfile::tempdir().unwrap();
        let digest: Digest = Sha256::digest(b"content").into();
        fs::create_dir(folder.path().join("sha256")).unwrap();
        let file = folder.path().join("sha256").join(hex::encode(digest));
        let store = Folder::new(folder.path().to_owned());
        assert!(store.content(&digest).unwrap_err().contains("cannot read"));
        fs::write(&file, b"content").unwrap();
        assert_eq!(store.content(&digest).unwrap(), b"content");
        fs::write(&file, b"another").unwrap();
        assert!(store.content(&digest).unwrap_err().contains("another SHA-256"));
        fs::write(&file, vec![0; MOST_BYTES + 1]).unwrap();
        assert!(store.content(&digest).unwrap_err().contains("more than"));
        fs::remove_file(&file).unwrap();
        fs::write(folder.path().join("elsewhere"), b"content").unwrap();
        symlink(folder.path().join("elsewhere"), &file).unwrap();
        assert!(store.content(&digest).unwrap_err().contains("cannot read"), "a link leads to files of others");
        for address in ["rsync://host/../x", "rsync://host//x", "https://host/x", "rsync://"] {
            assert!(store.published(address).unwrap_err().contains("is no address"), "{address}");
        }
    }
}
