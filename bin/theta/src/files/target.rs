//! Where a result goes.

use std::{
    fs::{self, OpenOptions},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use super::{
    draft::Draft,
    is_dash,
    source::{FileId, Source},
};
use crate::exit::Failure;

/// Where a result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// A file, replaced as a whole.
    File(PathBuf),
    /// A file that nobody asked for by its name: what is called so is never replaced.
    NewFile(PathBuf),
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
            (None, Some(path)) if path.symlink_metadata().is_ok() => Err(taken(&path)),
            (None, Some(path)) => Ok(Self::NewFile(path)),
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

    /// Refuses to write the result of an input over it: the input would be lost.
    pub(crate) fn check_input(&self, input: &Source) -> Result<(), Failure> {
        let Some(read) = input.file else { return Ok(()) };
        let written = match self {
            Self::Stdout => FileId::of_stream(&io::stdout()),
            Self::File(path) => fs::metadata(path).ok().and_then(|found| FileId::of(&found)),
            Self::NewFile(_) | Self::Stream(_) => None,
        };
        if written != Some(read) {
            return Ok(());
        }
        let (output, input) = (self.name(), &input.name);
        Err(Failure::Usage(format!(
            "{} is the input, {}, and would be lost: name another output with -o",
            output.display(),
            input.display()
        )))
    }

    /// Whether somebody looks at what is written.
    pub(crate) fn is_terminal(&self) -> bool {
        *self == Self::Stdout && io::stdout().is_terminal()
    }

    /// Refuses bytes that no terminal can show. `what` is what they are.
    pub(crate) fn check_terminal(&self, what: &str) -> Result<(), Failure> {
        if self.is_terminal() {
            return Err(Failure::Usage(format!(
                "{what} is binary, and standard output is a terminal: name a file with -o, or pipe it"
            )));
        }
        Ok(())
    }

    /// Where to write bytes as they come, if that is how this target takes them.
    pub(crate) fn stream(&self) -> Result<Option<Box<dyn Write>>, Failure> {
        match self {
            Self::File(_) | Self::NewFile(_) => Ok(None),
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
            Self::File(path) | Self::NewFile(path) | Self::Stream(path) => path.clone(),
        }
    }

    /// Starts writing. With `private` the file is readable by its owner only.
    pub(crate) fn draft(&self, private: bool) -> Result<Draft, Failure> {
        Draft::of(self, private)
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

/// A name that follows from the input's, and is not free.
pub(super) fn taken(path: &Path) -> Failure {
    let path = path.display();
    Failure::Usage(format!("{path} exists already: name the output with -o (-o {path} overwrites it)"))
}
