//! Files and the standard streams behind `-`.

mod client;
mod draft;
mod source;
mod target;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

pub(crate) use self::client::{check_client, is_client};
pub(crate) use self::draft::{DraftDirectory, new_directory, write_new};
pub use self::{source::Source, target::Target};
use crate::exit::Failure;

/// Whether a path stands for the standard streams.
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a small text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = Source::open(path)?.read_all(1 << 20, "this is not the file that was meant")?;
    String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{} is not a text file", path.display())))
}

/// A text as TOML has it, which takes the escapes of JSON.
pub(crate) fn toml_text(text: &str) -> serde_json::Value {
    serde_json::Value::String(text.to_owned())
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
    use std::fs;

    use super::*;

    #[test]
    fn a_derived_name_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(Target::choose(None, Some(path.clone())), Ok(Target::NewFile(path.clone())));
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
    fn too_long_input_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("long");
        fs::write(&path, [0; 11]).unwrap();
        assert!(Source::open(&path).unwrap().read_all(10, "shorten it").is_err());
        assert_eq!(Source::open(&path).unwrap().read_all(11, "").unwrap().len(), 11);
    }
}
