//! The files that an agent knows its registry from, and when they change.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use theta_names::FileStamp;

use crate::{
    overrides::Override,
    registry::{Pool, Registry, RegistryError},
    statements::Statement,
};

/// The most bytes of a file.
pub const MOST_FILE: u64 = 64 << 20;
/// The most files of a folder.
pub const MOST_FILES: usize = 200_000;

/// Where an agent finds what it knows.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The registry's data.
    pub registry: PathBuf,
    /// The folder of members' statements.
    pub statements: PathBuf,
    /// The folder of operators' overrides, if there are any.
    pub overrides: Option<PathBuf>,
    /// The keys of objects.
    pub pool: PathBuf,
    /// The folder of contents and of what is published.
    pub store: PathBuf,
    /// The file of what was agreed to.
    pub memory: PathBuf,
}

/// Why an agent does not know its registry.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file or a folder cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// A file is too long, or a folder has too many.
    #[error("{} has more than {MOST_FILE} bytes, or more than {MOST_FILES} files", .0.display())]
    Long(PathBuf),
    /// The registry's data are wrong.
    #[error("{}: {reason}", path.display())]
    Registry {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: RegistryError,
    },
    /// A line of the pool is no key.
    #[error("{}: line {line} is no name with a SubjectPublicKeyInfo of RSA in base64, or the name was there before", path.display())]
    Pool {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

/// What tells a file from the one that was there before.
type Stamp = (PathBuf, Option<FileStamp>);

/// What tells sources from what they were before.
#[derive(Debug, PartialEq)]
pub(crate) struct Stamps(Vec<Stamp>);

/// What is in the files.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) registry: Registry,
    pub(crate) statements: Vec<Statement>,
    pub(crate) overrides: Vec<Override>,
    pub(crate) pool: Pool,
}

fn stamp(path: &Path) -> Stamp {
    (path.to_owned(), FileStamp::of(path))
}

fn read(path: &Path) -> Result<String, SourceError> {
    let failed = |reason| SourceError::Read { path: path.to_owned(), reason };
    if fs::metadata(path).map_err(failed)?.len() > MOST_FILE {
        return Err(SourceError::Long(path.to_owned()));
    }
    fs::read_to_string(path).map_err(failed)
}

/// The files of a folder that end with .toml, in order.
fn list(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let failed = |reason| SourceError::Read { path: folder.to_owned(), reason };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
        if files.len() > MOST_FILES {
            return Err(SourceError::Long(folder.to_owned()));
        }
    }
    files.sort();
    Ok(files)
}

impl Sources {
    /// The folders that can be listed; what cannot is complained of when it is read.
    fn files(&self) -> Vec<PathBuf> {
        let folders = [Some(&self.statements), self.overrides.as_ref()];
        folders.into_iter().flatten().flat_map(|folder| list(folder).unwrap_or_default()).collect()
    }

    pub(crate) fn stamps(&self) -> Stamps {
        let single = [self.registry.clone(), self.pool.clone()];
        Stamps(single.iter().chain(&self.files()).map(|path| stamp(path)).collect())
    }

    /// Reads all. A statement or an override that is wrong counts for nothing and is complained of: a member must not be able to stop the
    /// others.
    pub(crate) fn load(&self) -> Result<Known, SourceError> {
        let wrong = |reason| SourceError::Registry { path: self.registry.clone(), reason };
        let registry = Registry::parse(&read(&self.registry)?).map_err(wrong)?;
        let wrong = |line| SourceError::Pool { path: self.pool.clone(), line };
        let pool = Pool::parse(&read(&self.pool)?).map_err(wrong)?;
        let mut statements = Vec::new();
        for path in list(&self.statements)? {
            let text = read(&path).map_err(|error| error.to_string());
            match text.and_then(|text| Statement::read(&text, &registry).map_err(|error| error.to_string())) {
                Ok(statement) => statements.push(statement),
                Err(error) => tracing::warn!("{}: {error}; it counts for nothing", path.display()),
            }
        }
        let mut overrides = Vec::new();
        for path in self.overrides.as_deref().map(list).transpose()?.unwrap_or_default() {
            let text = read(&path).map_err(|error| error.to_string());
            match text.and_then(|text| Override::read(&text, &registry).map_err(|error| error.to_string())) {
                Ok(one) => overrides.push(one),
                Err(error) => tracing::warn!("{}: {error}; it counts for nothing", path.display()),
            }
        }
        tracing::info!(members = registry.members.len(), statements = statements.len(), "the registry's data are read");
        Ok(Known { registry, statements, overrides, pool })
    }
}
