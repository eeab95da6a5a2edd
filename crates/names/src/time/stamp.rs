//! Whether a file has changed.

use core::time::Duration;
use std::{
    fs::{self, Metadata},
    path::Path,
};

use super::WallTime;

/// What tells a file from the one that was there before, without reading it: its number on its file system, its length, and the time of
/// its last change. Whoever reads a file again when it changes looks at it before: then a change is seen twice rather than never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// 0 on systems whose files have none.
    number: u64,
    len: u64,
    /// `None` on systems that do not keep it.
    modified: Option<WallTime>,
}

impl FileStamp {
    /// Of the file with this path, or the one that it leads to; `None` if there is none, or this process may not know.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        let modified = data.modified().ok().map(WallTime::from);
        Some(Self { number: number(&data), len: data.len(), modified })
    }

    /// Whether the file had changed so shortly before `now` that it may change again without another stamp: times of files are coarse on
    /// some systems. A time that is not known, or in the future, counts as now.
    #[must_use]
    pub fn is_fresh(&self, now: WallTime, within: Duration) -> bool {
        self.modified.and_then(|modified| now.since(modified)).is_none_or(|since| since < within)
    }
}

#[cfg(unix)]
fn number(data: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(data)
}

#[cfg(not(unix))]
const fn number(_: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_file_is_told_from_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("file"), folder.path().join("other"));
        assert_eq!(FileStamp::of(&path), None);
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let write = |path: &Path, text: &str, seconds| {
            fs::write(path, text).unwrap();
            File::options().write(true).open(path).unwrap().set_modified(at(seconds)).unwrap();
        };
        write(&path, "one", 1_000);
        let first = FileStamp::of(&path).unwrap();
        assert_eq!(FileStamp::of(&path), Some(first));
        write(&path, "one", 1_001);
        let touched = FileStamp::of(&path).unwrap();
        write(&path, "four", 1_001);
        let longer = FileStamp::of(&path).unwrap();
        assert!(first != touched && touched != longer);
        // Of the same length and time, put in the place of the other.
        write(&other, "five", 1_001);
        fs::rename(&other, &path).unwrap();
        assert_eq!(FileStamp::of(&path).unwrap() == longer, cfg!(not(unix)));
    }

    #[test]
    fn what_changed_just_now_is_fresh() {
        let time = |seconds| WallTime::since_1970(Duration::from_secs(seconds));
        let fresh =
            |modified, now| FileStamp { number: 1, len: 2, modified }.is_fresh(time(now), Duration::from_secs(2));
        assert!(fresh(Some(time(100)), 100) && fresh(Some(time(100)), 101) && !fresh(Some(time(100)), 102));
        assert!(fresh(Some(time(100)), 99), "in the future");
        assert!(fresh(None, 1_000));
    }
}
