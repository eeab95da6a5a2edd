//! A publisher of what authorities leave in a folder.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use rpki::uri::Https;
use tempfile::TempDir;
use theta_rpki_publication::{
    check::CheckError,
    disk,
    objects::Objects,
    publication::{Outcome, PublicationError, Report, Settings, publish},
};

use crate::repository::{Files, leave};

pub(crate) struct Publisher {
    pub(crate) objects: TempDir,
    pub(crate) output: TempDir,
    pub(crate) settings: Settings,
}

impl Publisher {
    pub(crate) fn new() -> Self {
        let settings = Settings {
            base: Https::from_string("https://rpki.example.net/rrdp/".to_owned()).unwrap(),
            new_session: false,
            without: Vec::new(),
            grace: Duration::from_secs(600),
            most_deltas: 10,
        };
        Self { objects: tempfile::tempdir().unwrap(), output: tempfile::tempdir().unwrap(), settings }
    }

    /// Leaves the files of an authority in the folder, in the place of those that it had.
    pub(crate) fn leave(&self, name: &str, files: &Files) {
        leave(files, self.objects.path(), name);
    }

    /// Publishes what is in the folder.
    pub(crate) fn run(&self, now: SystemTime) -> Result<Report, PublicationError> {
        publish(&disk::Files, self.objects.path(), self.output.path(), &self.settings, now)
    }

    /// Publishes these files of the authority `ca`, without a warning.
    pub(crate) fn publish(&self, files: &Files) -> Result<Outcome, PublicationError> {
        self.leave("ca", files);
        let report = self.run(SystemTime::now())?;
        assert!(report.warnings.is_empty(), "{report:?}");
        Ok(report.outcome)
    }

    pub(crate) fn served(&self) -> Objects {
        Objects::read(&self.output.path().join("rsync/current")).unwrap()
    }

    fn notification(&self) -> Vec<u8> {
        fs::read(self.output.path().join("rrdp/notification.xml")).unwrap()
    }

    /// Checks that what is in the folder is refused and the old state stays; returns why.
    pub(crate) fn refuses_at(&self, now: SystemTime) -> CheckError {
        let before = (self.notification(), self.served());
        let error = self.run(now).unwrap_err();
        assert!(before == (self.notification(), self.served()), "{error}");
        match error {
            PublicationError::Check(error) => error,
            error => panic!("{error}"),
        }
    }

    /// Checks that these files of the authority `ca` are refused now.
    pub(crate) fn refuses(&self, files: &Files) -> CheckError {
        self.leave("ca", files);
        self.refuses_at(SystemTime::now())
    }
}
