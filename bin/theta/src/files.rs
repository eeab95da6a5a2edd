//! Files and the standard streams behind `-`.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use theta_schemes::groups::Secret;

use crate::exit::Failure;

/// Bytes to read: a file or standard input.
pub struct Source {
    /// How messages call it.
    pub(crate) name: PathBuf,
    /// The bytes.
    pub(crate) reader: Box<dyn Read + Send>,
    /// How many there are, if known.
    pub(crate) length: Option<u64>,
}

/// Whether a path stands for the standard streams.
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Source {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if is_dash(path) {
            let name = PathBuf::from("standard input");
            return Ok(Self { name, reader: Box::new(io::stdin()), length: None });
        }
        let file = File::open(path).map_err(|error| Failure::reading(path, &error))?;
        let metadata = file.metadata().map_err(|error| Failure::reading(path, &error))?;
        if metadata.is_dir() {
            return Err(Failure::Usage(format!("{} is a directory: name a file", path.display())));
        }
        let length = metadata.is_file().then_some(metadata.len());
        Ok(Self { name: path.to_owned(), reader: Box::new(file), length })
    }

    /// Reads a secret, which must not be more than `limit` bytes, into memory that is wiped.
    pub(crate) fn read_secret(mut self, limit: usize) -> Result<Secret<Vec<u8>>, Failure> {
        // Reserved at once: a vector that grows leaves copies of its content behind.
        let mut bytes = Secret::new(Vec::with_capacity(limit + 1));
        let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let read = self.reader.by_ref().take(bound).read_to_end(bytes.expose_mut());
        read.map_err(|error| Failure::reading(&self.name, &error))?;
        if bytes.expose().len() > limit {
            let name = self.name.display();
            return Err(Failure::Usage(format!("{name} is longer than {limit} bytes: this is not a private key")));
        }
        Ok(bytes)
    }

    /// Reads everything, which must not be more than `limit` bytes.
    pub fn read_all(mut self, limit: usize, hint: &str) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let read = self.reader.by_ref().take(bound).read_to_end(&mut bytes);
        read.map_err(|error| Failure::reading(&self.name, &error))?;
        if bytes.len() > limit {
            let name = self.name.display();
            return Err(Failure::Usage(format!("{name} is longer than {limit} bytes: {hint}")));
        }
        Ok(bytes)
    }
}

/// Reads a small text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = Source::open(path)?.read_all(1 << 20, "this is not the file that was meant")?;
    String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{} is not a text file", path.display())))
}

/// Writes a file that must not exist. With `private` nobody but its owner can read it.
pub(crate) fn write_new(path: &Path, bytes: &[u8], private: bool) -> Result<(), Failure> {
    let mode = if private { 0o600 } else { 0o644 };
    let written = (|| -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        // The mode at creation is subject to the umask; this one is not.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(bytes)
    })();
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::Usage(format!("{} exists already, and is left as it is", path.display()))
        }
        _ => Failure::writing(path, &error),
    })
}

/// Makes a directory for its owner alone.
pub(crate) fn new_directory(path: &Path) -> Result<(), Failure> {
    fs::DirBuilder::new().mode(0o700).create(path).map_err(|error| Failure::writing(path, &error))
}

/// Where a result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file, replaced as a whole.
    File(PathBuf),
    /// A device or a named pipe: written as it is, never replaced by a file.
    Stream(PathBuf),
}

impl Target {
    /// The target that was asked for, or else the one that follows from the input's name.
    ///
    /// A name that was asked for is overwritten; one that was not must be free.
    pub fn choose(asked: Option<&Path>, derived: Option<PathBuf>) -> Result<Self, Failure> {
        match (asked, derived) {
            (Some(path), _) if is_dash(path) => Ok(Self::Stdout),
            (Some(path), _) => Self::named(path),
            (None, None) => Ok(Self::Stdout),
            (None, Some(path)) if path.exists() => Err(Failure::Usage(format!(
                "{path} exists already: name the output with -o (-o {path} overwrites it)",
                path = path.display()
            ))),
            (None, Some(path)) => Ok(Self::File(path)),
        }
    }

    fn named(path: &Path) -> Result<Self, Failure> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                Err(Failure::Usage(format!("{} is a directory: name a file in it", path.display())))
            }
            Ok(found) if !found.is_file() => Ok(Self::Stream(path.to_owned())),
            // What a symbolic link points to is replaced, not the link.
            Ok(_) if path.is_symlink() => {
                fs::canonicalize(path).map(Self::File).map_err(|error| Failure::writing(path, &error))
            }
            _ => Ok(Self::File(path.to_owned())),
        }
    }

    /// Where to write bytes as they come, if that is how this target takes them.
    pub(crate) fn stream(&self) -> Result<Option<Box<dyn Write>>, Failure> {
        match self {
            Self::File(_) => Ok(None),
            Self::Stdout => Ok(Some(Box::new(io::stdout().lock()))),
            Self::Stream(path) => {
                let opened = OpenOptions::new().write(true).open(path);
                let file = opened.map_err(|error| Failure::writing(path, &error))?;
                Ok(Some(Box::new(file)))
            }
        }
    }

    /// Refuses JSON on the stream that carries the result already.
    pub(crate) fn check_json(&self, json: bool) -> Result<(), Failure> {
        if json && *self == Self::Stdout {
            return Err(Failure::Usage(
                "--json writes to standard output, where the result goes already: name a file with -o".to_owned(),
            ));
        }
        Ok(())
    }

    /// How messages call it.
    pub(crate) fn name(&self) -> PathBuf {
        match self {
            Self::Stdout => PathBuf::from("standard output"),
            Self::File(path) | Self::Stream(path) => path.clone(),
        }
    }

    /// Starts writing. With `private` the file is readable by its owner only.
    pub(crate) fn draft(&self, private: bool) -> Result<Draft, Failure> {
        let directory = match self {
            Self::Stdout | Self::Stream(_) => std::env::temp_dir(),
            Self::File(path) => parent(path),
        };
        let mode = if private || !matches!(self, Self::File(_)) { 0o600 } else { 0o666 };
        let mut builder = tempfile::Builder::new();
        let file = builder.prefix(".theta-").permissions(fs::Permissions::from_mode(mode)).tempfile_in(&directory);
        let file = file.map_err(|error| match self {
            Self::File(path) => Failure::writing(path, &error),
            Self::Stdout | Self::Stream(_) => Failure::writing(&directory, &error),
        })?;
        Ok(Draft { file, target: self.clone() })
    }

    /// Writes a small result.
    pub fn write(&self, bytes: &[u8], private: bool) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::writing(&self.name(), &error);
        if let Some(mut stream) = self.stream()? {
            return stream.write_all(bytes).and_then(|()| stream.flush()).map_err(failed);
        }
        let mut draft = self.draft(private)?;
        draft.file().write_all(bytes).map_err(failed)?;
        draft.commit()
    }
}

/// A result in the making: visible under its name when it is complete, and gone when it never is.
pub(crate) struct Draft {
    file: NamedTempFile,
    target: Target,
}

impl Draft {
    /// The file to write.
    pub(crate) fn file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Where it is meanwhile.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Puts the finished file in its place, or copies it to where a stream goes.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        let name = self.target.name();
        let failed = |error: io::Error| Failure::writing(&name, &error);
        let Some(stream) = self.target.stream()? else {
            return self.file.persist(&name).map(drop).map_err(|error| failed(error.error));
        };
        let file = self.file.as_file_mut();
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut stream = BufWriter::with_capacity(1 << 16, stream);
        io::copy(file, &mut stream).and_then(|_| stream.flush()).map_err(failed)
    }
}

/// The directory that a file is in.
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The name with a suffix: `a.txt` and `theta` give `a.txt.theta`; nothing for standard input.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> Option<PathBuf> {
    if is_dash(path) {
        return None;
    }
    let mut name = OsString::from(path);
    name.push(".");
    name.push(suffix);
    Some(PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derived_name_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(Target::choose(None, Some(path.clone())), Ok(Target::File(path.clone())));
        fs::write(&path, b"x").unwrap();
        assert!(matches!(Target::choose(None, Some(path.clone())), Err(Failure::Usage(_))));
        assert_eq!(Target::choose(Some(&path), None), Ok(Target::File(path)));
        assert_eq!(Target::choose(Some(Path::new("-")), None), Ok(Target::Stdout));
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        let null = Target::choose(Some(Path::new("/dev/null")), None).unwrap();
        assert_eq!(null, Target::Stream("/dev/null".into()));
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().canonicalize().unwrap().join("a"), dir.path().join("link"));
        fs::write(&path, b"x").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Target::choose(Some(&link), None).unwrap().write(b"y", false).unwrap();
        assert!(link.is_symlink() && fs::read(&path).unwrap() == b"y");
        assert!(matches!(Target::choose(Some(dir.path()), None), Err(Failure::Usage(_))));
    }

    #[test]
    fn an_abandoned_draft_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let target = Target::File(dir.path().join("out"));
        drop(target.draft(true).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        target.write(b"secret", true).unwrap();
        let mode = fs::metadata(dir.path().join("out")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn too_long_input_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        fs::write(&path, [0; 11]).unwrap();
        assert!(Source::open(&path).unwrap().read_all(10, "shorten it").is_err());
        assert_eq!(Source::open(&path).unwrap().read_all(11, "").unwrap().len(), 11);
    }
}
