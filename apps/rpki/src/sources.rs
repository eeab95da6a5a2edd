//! The files that an agent knows its registry from, and when they change.

use std::{
    fmt::Display,
    fs, io,
    path::{Path, PathBuf},
};

use theta_names::FileStamp;

use crate::{
    files::{self, FileError, Links},
    overrides::Override,
    registry::{Pool, Registry, RegistryError},
    statements::{Stated, Statement, StatementError},
};

/// The most bytes of the registry's data, of the pool, and of all statements of a member.
pub const MOST_FILE: u64 = 64 << 20;
/// The most bytes of a statement and of an override.
pub const MOST_STATEMENT: u64 = 1 << 20;
/// The most files in the folder of a member.
pub const MOST_STATEMENTS: usize = 10_000;
/// The most files in the folder of overrides.
pub const MOST_OVERRIDES: usize = 1_000;

/// Where an agent finds what it knows.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The registry's data.
    pub registry: PathBuf,
    /// The folder with a folder for each member, by its handle, in which its statements are.
    pub statements: PathBuf,
    /// The folder of operators' overrides, if there are any.
    pub overrides: Option<PathBuf>,
    /// The keys of objects.
    pub pool: PathBuf,
    /// The folder of contents and of what is published.
    pub store: PathBuf,
}

/// Why an agent does not know its registry.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file or a folder cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Operators have too many overrides.
    #[error("{} has more than {MOST_OVERRIDES} files", .0.display())]
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

impl SourceError {
    fn read(path: &Path, reason: &impl Display) -> Self {
        Self::Read { path: path.to_owned(), reason: reason.to_string() }
    }
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
    pub(crate) stated: Stated,
    pub(crate) overrides: Vec<Override>,
    pub(crate) pool: Pool,
    /// What the files were before they were read: then a change is seen twice rather than never.
    pub(crate) stamps: Stamps,
}

/// The files of a member.
struct Folder<'a> {
    member: &'a str,
    path: PathBuf,
    /// `None`: there are too many.
    files: Option<Vec<PathBuf>>,
}

fn stamp(path: &Path) -> Stamp {
    (path.to_owned(), FileStamp::of(path))
}

/// A file that the operator has named.
fn named(path: &Path) -> Result<String, SourceError> {
    let bytes = files::read(path, Links::Followed, MOST_FILE).map_err(|error| SourceError::read(path, &error))?;
    String::from_utf8(bytes).map_err(|error| SourceError::read(path, &error))
}

/// A file of a folder, if it is a text of the length that it may have. What it says may be wrong, but what cannot be read is not guessed.
fn found(path: &Path) -> Result<Result<String, String>, SourceError> {
    match files::read(path, Links::Refused, MOST_STATEMENT) {
        Ok(bytes) => Ok(String::from_utf8(bytes).map_err(|error| error.to_string())),
        Err(error @ FileError::Long(_)) => Ok(Err(error.to_string())),
        Err(error) => Err(SourceError::read(path, &error)),
    }
}

/// The files of a folder that end with .toml, in order; `None` if it has more files than so many.
fn list(folder: &Path, most: usize) -> io::Result<Option<Vec<PathBuf>>> {
    let mut files = Vec::new();
    for (entry, before) in fs::read_dir(folder)?.zip(0..) {
        if before >= most {
            return Ok(None);
        }
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(Some(files))
}

fn complain(path: &Path, reason: &impl Display) {
    tracing::warn!("{}: {reason}; it counts for nothing", path.display());
}

impl Sources {
    fn folder<'a>(&self, member: &'a str) -> Result<Folder<'a>, SourceError> {
        let path = self.statements.join(member);
        let files = match list(&path, MOST_STATEMENTS) {
            Ok(files) => files,
            // Who has stated nothing has none.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Vec::new()),
            Err(error) => return Err(SourceError::read(&path, &error)),
        };
        Ok(Folder { member, path, files })
    }

    fn folders<'a>(&self, registry: &'a Registry) -> Result<Vec<Folder<'a>>, SourceError> {
        registry.members.keys().map(|member| self.folder(member)).collect()
    }

    fn override_files(&self) -> Result<Vec<PathBuf>, SourceError> {
        let Some(folder) = &self.overrides else { return Ok(Vec::new()) };
        let listed = list(folder, MOST_OVERRIDES).map_err(|error| SourceError::read(folder, &error))?;
        listed.ok_or_else(|| SourceError::Long(folder.clone()))
    }

    fn own(&self) -> [Stamp; 2] {
        [stamp(&self.registry), stamp(&self.pool)]
    }

    /// What the files are now, if the folders can be listed.
    pub(crate) fn stamps(&self, registry: &Registry) -> Option<Stamps> {
        let own = self.own();
        Some(stamps(own, &self.folders(registry).ok()?, &self.override_files().ok()?))
    }

    /// Reads all. A statement or an override that is wrong counts for nothing and is complained of: a member must not be able to stop the
    /// others. One that cannot be read might be right, so without it nothing is known.
    pub(crate) fn load(&self) -> Result<Known, SourceError> {
        let own = self.own();
        let wrong = |reason| SourceError::Registry { path: self.registry.clone(), reason };
        let registry = Registry::parse(&named(&self.registry)?).map_err(wrong)?;
        let wrong = |line| SourceError::Pool { path: self.pool.clone(), line };
        let pool = Pool::parse(&named(&self.pool)?).map_err(wrong)?;
        self.misplaced()?;
        let (folders, files) = (self.folders(&registry)?, self.override_files()?);
        let stamps = stamps(own, &folders, &files);
        let mut stated = Stated::default();
        for folder in &folders {
            stated.extend(statements(folder, &registry)?);
        }
        let overrides = overrides(&files, &registry)?;
        let (members, statements) = (registry.members.len(), stated.counting.len());
        tracing::info!(members, statements, "the registry's data are read");
        Ok(Known { registry, stated, overrides, pool, stamps })
    }

    /// Reads what an issuer has to know as well: the registry's data, what its members have stated, and the keys of objects.
    ///
    /// # Errors
    /// [`SourceError`].
    pub fn read(&self) -> Result<(Registry, Stated, Pool), SourceError> {
        let Known { registry, stated, pool, .. } = self.load()?;
        Ok((registry, stated, pool))
    }

    /// Complains of statements that are in no member's folder.
    fn misplaced(&self) -> Result<(), SourceError> {
        let listed = list(&self.statements, MOST_STATEMENTS);
        for path in listed.map_err(|error| SourceError::read(&self.statements, &error))?.unwrap_or_default() {
            complain(&path, &"it is in no member's folder");
        }
        Ok(())
    }
}

fn stamps(own: [Stamp; 2], folders: &[Folder<'_>], overrides: &[PathBuf]) -> Stamps {
    let mut all = Vec::from(own);
    for Folder { path, files, .. } in folders {
        match files {
            Some(files) => all.extend(files.iter().map(|file| stamp(file))),
            None => all.push((path.clone(), None)),
        }
    }
    all.extend(overrides.iter().map(|file| stamp(file)));
    Stamps(all)
}

/// What a member has stated, all of it or nothing: a part might lack what withdraws the rest.
fn statements(folder: &Folder<'_>, registry: &Registry) -> Result<Stated, SourceError> {
    let refuse = |limit: String| {
        let reason = format!("{} has more than {limit} of statements, so none of them is looked at", folder.member);
        tracing::error!("{}: {reason}", folder.path.display());
        Stated { refused: [(folder.member.to_owned(), reason)].into(), ..Stated::default() }
    };
    let Some(files) = &folder.files else { return Ok(refuse(format!("{MOST_STATEMENTS} files"))) };
    let mut stated = Stated::default();
    let mut bytes = 0_u64;
    for path in files {
        let text = match found(path)? {
            Ok(text) => text,
            Err(reason) => {
                complain(path, &reason);
                continue;
            }
        };
        bytes = bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        if bytes > MOST_FILE {
            return Ok(refuse(format!("{MOST_FILE} bytes")));
        }
        if let Err(reason) = take(&text, folder.member, registry, &mut stated) {
            complain(path, &reason);
        }
    }
    Ok(stated)
}

fn take(text: &str, member: &str, registry: &Registry, stated: &mut Stated) -> Result<(), StatementError> {
    let (statement, signatures) = Statement::parse(text)?;
    if statement.member != member {
        return Err(StatementError::Wrong("it is another member's than its folder is"));
    }
    match statement.check(registry, &signatures) {
        Ok(()) => stated.counting.push(statement),
        Err(error) => {
            if matches!(error, StatementError::Overclaim { .. }) {
                stated.overclaimed.push(statement);
            }
            return Err(error);
        }
    }
    Ok(())
}

fn overrides(files: &[PathBuf], registry: &Registry) -> Result<Vec<Override>, SourceError> {
    let mut overrides = Vec::new();
    for path in files {
        match found(path)?.and_then(|text| Override::read(&text, registry).map_err(|error| error.to_string())) {
            Ok(one) => overrides.push(one),
            Err(reason) => complain(path, &reason),
        }
    }
    Ok(overrides)
}
