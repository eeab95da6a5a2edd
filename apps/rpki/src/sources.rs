//! The files that an agent knows its registry from, and when they change.

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs, io,
    path::{Path, PathBuf},
};

use theta_names::FileStamp;

use crate::{
    files::{self, FileError, Links},
    overrides::{Overrides, Overriding, shown},
    registry::{Pool, Registry, RegistryError},
    statements::{Stated, StatementError},
    verified::{Folder, Verified},
};

/// The most bytes of the registry's data, of the pool, and of all statements of a member.
pub const MOST_FILE: u64 = 64 << 20;
/// The most bytes of a statement and of an override.
pub const MOST_STATEMENT: u64 = 1 << 20;
/// The most files in the folder of a member.
pub const MOST_STATEMENTS: usize = 10_000;
/// The most files in the folder of overrides.
pub const MOST_OVERRIDES: usize = 1_000;
/// The most characters that are said of why a file counts for nothing.
const MOST_REASON: usize = 300;

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
    pub(crate) fn read(path: &Path, reason: &impl Display) -> Self {
        Self::Read { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// What tells sources from what they were before, by their paths.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stamps(BTreeMap<PathBuf, Option<FileStamp>>);

impl Stamps {
    /// Adds a file, which settles when it has looked the same as before for a while.
    fn add(&mut self, path: &Path, before: Option<&Self>) {
        let before = before.and_then(|before| before.0.get(path)?.as_ref());
        self.0.insert(path.to_owned(), FileStamp::after(path, before));
    }
}

/// What is in the files.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) registry: Registry,
    pub(crate) stated: Stated,
    pub(crate) overrides: Overrides,
    pub(crate) pool: Pool,
    /// What the files were before they were read: then a change is seen twice rather than never.
    pub(crate) stamps: Stamps,
    /// What came of each statement's file, so that one that has not changed is not verified again.
    pub(crate) verified: Verified,
}

/// A file that the operator has named.
fn named(path: &Path) -> Result<String, SourceError> {
    let bytes = files::read(path, Links::Followed, MOST_FILE).map_err(|error| SourceError::read(path, &error))?;
    String::from_utf8(bytes).map_err(|error| SourceError::read(path, &error))
}

/// A file of a folder, if it is a text of the length that it may have. What it says may be wrong, but what cannot be read is not guessed.
pub(crate) fn found(path: &Path) -> Result<Result<String, String>, SourceError> {
    match files::read(path, Links::Refused, MOST_STATEMENT) {
        Ok(bytes) => Ok(String::from_utf8(bytes).map_err(|error| error.to_string())),
        Err(error @ FileError::Long(_)) => Ok(Err(error.to_string())),
        Err(error) => Err(SourceError::read(path, &error)),
    }
}

/// The files of a folder that end with .toml, in order; `None` if it has more files than so many.
pub(crate) fn list(folder: &Path, most: usize) -> io::Result<Option<Vec<PathBuf>>> {
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

/// Says why a file counts for nothing.
pub(crate) fn complain(path: &Path, reason: &impl Display) {
    say_of(path, reason, "it counts for nothing");
}

/// Says what is wrong with a file, and what comes of that. Others than the operator write the file, and its name: neither may look like lines of the log, or fill it.
pub(crate) fn say_of(path: &Path, reason: &impl Display, so: &str) {
    let reason = in_line(&reason.to_string().chars().take(MOST_REASON).collect::<String>());
    tracing::warn!("{}: {reason}; {so}", shown(path));
}

/// A path in one line of the log.
pub(crate) fn shown(path: &Path) -> String {
    in_line(&path.to_string_lossy())
}

fn in_line(text: &str) -> String {
    let shown = |char: char| if char.is_control() { char.escape_debug().to_string() } else { char.to_string() };
    text.chars().map(shown).collect()
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

    fn own(&self, before: Option<&Stamps>) -> Stamps {
        let mut stamps = Stamps::default();
        [&self.registry, &self.pool].into_iter().for_each(|path| stamps.add(path, before));
        stamps
    }

    /// What the files are now, if the folders can be listed, and were before.
    pub(crate) fn stamps(&self, registry: &Registry, before: &Stamps) -> Option<Stamps> {
        let before = Some(before);
        Some(stamps(self.own(before), &self.folders(registry).ok()?, &self.override_files().ok()?, before))
    }

    /// Reads all. A statement or an override that is wrong counts for nothing and is complained of: a member must not be able to stop the
    /// others. One that cannot be read might be right, so without it nothing is known. What was verified `before` by the same data stands while its file has not
    /// changed.
    pub(crate) fn load(&self, before: Option<&Verified>, last: Option<&Stamps>) -> Result<Known, SourceError> {
        let own = self.own(last);
        let wrong = |reason| SourceError::Registry { path: self.registry.clone(), reason };
        let text = named(&self.registry)?;
        let registry = Registry::parse(&text).map_err(wrong)?;
        let wrong = |line| SourceError::Pool { path: self.pool.clone(), line };
        let pool = Pool::parse(&named(&self.pool)?).map_err(wrong)?;
        self.misplaced()?;
        let (folders, files) = (self.folders(&registry)?, self.override_files()?);
        let stamps = stamps(own, &folders, &files, last);
        let mut stated = Stated::default();
        let mut verified = Verified::by(&text);
        let before = before.filter(|before| before.is_by_the_same_data(&verified));
        for folder in &folders {
            stated.members.insert(folder.member.to_owned(), verified.statements(folder, &registry, before)?);
        }
        let overrides = overrides(&files, &registry)?;
        take_up(&overrides, &mut stated, &registry);
        let statements = stated.members.values().map(|stated| stated.counting.len()).sum::<usize>();
        let members = registry.members.len();
        tracing::info!(members, statements, "the registry's data are read");
        Ok(Known { registry, stated, overrides, pool, stamps, verified })
    }

    /// Reads what an issuer has to know as well: the registry's data, what its members have stated, and operators in their places, and the keys of objects. Of
    /// operators' statements it takes those that all registries see, and, where a folder of overrides is named, those of them alone that this registry has taken
    /// up. What was verified the last time is taken from there, and kept for the next time.
    ///
    /// # Errors
    /// [`SourceError`].
    pub fn read(&self, last: &mut Option<Verified>) -> Result<(Registry, Stated, Pool), SourceError> {
        let Known { registry, mut stated, pool, verified, .. } = self.load(last.as_ref(), None)?;
        // Who may write into that folder does not stop what is published of everybody. Members in whose place something has counted are unsettled meanwhile.
        let seen = shown::look_once(&self.store, registry.operators.as_ref()).unwrap_or_else(|error| {
            let folder = self.store.join(shown::FOLDER);
            tracing::error!("overrides that all registries see cannot be read, {}: {error}", shown(&folder));
            Overrides::default()
        });
        stated.shown = seen.statements.iter().map(|one| one.counted().digest).collect();
        stated.follows = self.overrides.is_none();
        if stated.follows {
            take_up(&seen, &mut stated, &registry);
        }
        *last = Some(verified);
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

fn stamps(mut all: Stamps, folders: &[Folder<'_>], overrides: &[PathBuf], before: Option<&Stamps>) -> Stamps {
    for Folder { path, files, .. } in folders {
        match files {
            Some(files) => files.iter().for_each(|file| all.add(file, before)),
            None => {
                all.0.insert(path.clone(), None);
            }
        }
    }
    overrides.iter().for_each(|file| all.add(file, before));
    all
}

fn overrides(files: &[PathBuf], registry: &Registry) -> Result<Overrides, SourceError> {
    let mut overrides = Vec::new();
    for path in files {
        let read = found(path)?
            .and_then(|text| Overriding::signed(&text, registry.operators.as_ref()).map_err(|error| error.to_string()));
        match read {
            Ok(one) => {
                if let Err(error) = one.fits(registry) {
                    complain(path, &error);
                }
                overrides.push(one);
            }
            Err(reason) => complain(path, &reason),
        }
    }
    Ok(overrides.iter().collect())
}

/// Gives each member what operators state in its place. What the member does not hold is granted by nobody.
fn take_up(overrides: &Overrides, stated: &mut Stated, registry: &Registry) {
    for one in &overrides.statements {
        let Some(of_member) = stated.members.get_mut(&one.statement().member) else { continue };
        match one.statement().fits(registry) {
            Ok(_) => of_member.operators.counting.push(one.clone()),
            Err(StatementError::Overclaim { .. }) => of_member.operators.overclaimed.push(one.clone()),
            Err(_) => {}
        }
    }
}
