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
    /// A file whose name was derived, not given: an existing file of this name is never replaced.
    NewFile(PathBuf),
    /// A device or a named pipe: it is written to, never replaced by a file.
    Stream(PathBuf),
}

impl Target {
    /// The target that was given, or else the one derived from the input's name.
    ///
    /// A given name is overwritten; a derived one must be free.
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
            // The file behind a symbolic link is replaced, not the link.
            Ok(_) if path.is_symlink() => {
                fs::canonicalize(path).map(Self::File).map_err(|error| Failure::writing(path, &error))
            }
            _ => Ok(Self::File(path.to_owned())),
        }
    }

    /// Refuses to overwrite the input with its result.
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

    /// Whether this is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        *self == Self::Stdout && io::stdout().is_terminal()
    }

    /// Refuses to write bytes to a terminal. `what` names them in the message.
    pub(crate) fn check_terminal(&self, what: &str) -> Result<(), Failure> {
        if self.is_terminal() {
            return Err(Failure::Usage(format!(
                "{what} is binary, and standard output is a terminal: name a file with -o, or pipe it"
            )));
        }
        Ok(())
    }

    /// The stream, for targets to which bytes are written as they come.
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

    /// Refuses JSON on a stream that already carries the result.
    pub(crate) fn check_json(&self, json: bool) -> Result<(), Failure> {
        if json && *self == Self::Stdout {
            return Err(Failure::Usage(
                "--json writes to standard output, where the result goes already: name a file with -o".to_owned(),
            ));
        }
        Ok(())
    }

    /// The name in messages.
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

/// The error for a derived name that is not free.
pub(super) fn taken(path: &Path) -> Failure {
    let path = path.display();
    Failure::Usage(format!("{path} exists already: name the output with -o (-o {path} overwrites it)"))
}
