//! A clock that a test sets ahead for all processes that are started under it, while they run: a day passes in a moment, and what a day later is due is due.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

const SOURCE: &str = include_str!("clock.c");
/// By which the library finds the file of the seconds.
const FILE: &str = "THETA_TEST_AHEAD";

pub(crate) const HOUR: i64 = 3_600;
pub(crate) const DAY: i64 = 24 * HOUR;

pub(crate) struct Clock {
    library: PathBuf,
    ahead: PathBuf,
}

impl Clock {
    /// One that is right, in this folder.
    pub(crate) fn new(folder: &Path) -> Self {
        let (source, library, ahead) = (folder.join("clock.c"), folder.join("clock.so"), folder.join("ahead"));
        fs::write(&source, SOURCE).unwrap();
        fs::write(&ahead, 0_i64.to_ne_bytes()).unwrap();
        let mut compiler = Command::new("cc");
        let made = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { library, ahead }
    }

    /// So many seconds pass. Processes have the file mapped, so it is written in place.
    pub(crate) fn advance(&self, seconds: i64) {
        let ahead = self.seconds() + seconds;
        let file = File::options().write(true).open(&self.ahead).unwrap();
        file.write_all_at(&ahead.to_ne_bytes(), 0).unwrap();
    }

    /// The time by it, in seconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        i64::try_from(real).unwrap() + self.seconds()
    }

    fn seconds(&self) -> i64 {
        i64::from_ne_bytes(fs::read(&self.ahead).unwrap().try_into().unwrap())
    }

    /// What a process under it has in its environment.
    pub(crate) fn environment(&self) -> [(&'static str, &Path); 2] {
        [("LD_PRELOAD", &self.library), (FILE, &self.ahead)]
    }
}
