//! Files of the folder that are no objects.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::PathBuf,
};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;
use theta_rpki_publication::objects::{MOST_BYTES, Objects, ReadError};

/// A folder of objects with one in it, and the place of a second one.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("host.example.net/module");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("first.roa"), "first").unwrap();
    assert_eq!(Objects::read(folder.path()).unwrap().len(), 1);
    let second = place.join("second.roa");
    (folder, second)
}

#[test]
fn links_are_not_followed() {
    let (folder, second) = folder();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("secret"), "secret").unwrap();
    for target in [elsewhere.path().join("secret"), elsewhere.path().to_owned()] {
        symlink(target, &second).unwrap();
        let refused = Objects::read(folder.path());
        assert!(matches!(&refused, Err(ReadError::Kind { path }) if *path == second), "{refused:?}");
        fs::remove_file(&second).unwrap();
    }
    // The folder itself may be one.
    let link = elsewhere.path().join("link");
    symlink(folder.path(), &link).unwrap();
    assert_eq!(Objects::read(&link).unwrap().len(), 1);
}

/// A pipe that nobody writes to would hold up whoever opens it.
#[test]
fn a_pipe_is_refused_at_once() {
    let (folder, second) = folder();
    mknodat(CWD, second.as_path(), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let refused = Objects::read(folder.path());
    assert!(matches!(&refused, Err(ReadError::Kind { path }) if *path == second), "{refused:?}");
}

#[test]
fn objects_have_a_most_of_bytes() {
    let (folder, second) = folder();
    let file = File::create(&second).unwrap();
    file.set_len(MOST_BYTES).unwrap();
    assert_eq!(Objects::read(folder.path()).unwrap().len(), 2);
    file.set_len(MOST_BYTES + 1).unwrap();
    let refused = Objects::read(folder.path());
    assert!(matches!(&refused, Err(ReadError::TooLong { path }) if *path == second), "{refused:?}");
}

#[test]
fn folders_below_folders_are_read() {
    let (folder, second) = folder();
    let deep = second.with_file_name("a").join("b").join("c");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("third.roa"), "third").unwrap();
    fs::write(&second, "second").unwrap();
    let objects = Objects::read(folder.path()).unwrap();
    let uris: Vec<_> = objects.iter().map(|object| object.uri.as_str()).collect();
    let module = "rsync://host.example.net/module";
    let expected = ["a/b/c/third.roa", "first.roa", "second.roa"].map(|path| format!("{module}/{path}"));
    assert_eq!(uris, expected);
}
