//! Whether a file has changed.

use core::time::Duration;
use std::{
    fs::{self, Metadata},
    path::Path,
    time::Instant,
};

use super::WallTime;

/// A file that was changed so recently may change again without another time: file systems count in steps of up to two seconds.
const RECENT: Duration = Duration::from_secs(2);

/// What tells a file from the one that was there before, without reading it: its number on its file system, its length, and the times of
/// its last change. Whoever reads a file again when it changes looks at it before: then a change is seen twice rather than never.
///
/// Two stamps are equal if the file is the same. One that was taken within two seconds of a change equals none, not even itself, as the next change may
/// have the same time: whoever compares reads the file again, until it has been left alone for a while. By the file's own time that is so when it is two
/// seconds old. A time may also lie in the future, by a clock that was ahead or a program that has set it, and then it is never so: whoever looks again and
/// again gives the stamp of before ([`FileStamp::after`]), and it is so when the file has looked the same for two seconds.
#[derive(Clone, Copy, Debug)]
pub struct FileStamp {
    /// 0 on systems whose files have none.
    number: u64,
    len: u64,
    /// `None` on systems that do not keep it.
    modified: Option<WallTime>,
    /// When anything about it changed last, which programs cannot set: seconds and nanoseconds, 0 on systems that do not keep it.
    changed: (i64, i64),
    is_recent: bool,
    /// When it was first seen to look like this.
    since: Instant,
}

impl PartialEq for FileStamp {
    fn eq(&self, other: &Self) -> bool {
        let is_settled = !self.is_recent && !other.is_recent;
        is_settled && self.looks_like(other)
    }
}

impl FileStamp {
    /// Whether nothing tells them apart. If one of them was taken soon after a change, another change may be behind that all the same.
    #[must_use]
    pub fn looks_like(&self, other: &Self) -> bool {
        let Self { number, len, modified, changed, is_recent: _, since: _ } = *self;
        (number, len, modified, changed) == (other.number, other.len, other.modified, other.changed)
    }

    /// Of the file with this path, or the one that it leads to; `None` if there is none, or this process may not know.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        Self::after(path, None)
    }

    /// The same, where the file's stamp was another one before. What looked the same then, two seconds ago or longer, has been left alone, whatever its time says:
    /// a change since would have a later time.
    #[must_use]
    pub fn after(path: &Path, before: Option<&Self>) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        let modified = data.modified().ok().map(WallTime::from);
        let ((number, changed), is_recent) = (kept_by_unix(&data), is_recent(modified, WallTime::now()));
        let stamp = Self { number, len: data.len(), modified, changed, is_recent, since: Instant::now() };
        let Some(before) = before.filter(|before| before.looks_like(&stamp)) else { return Some(stamp) };
        let is_left_alone = before.since.elapsed() >= RECENT;
        Some(Self { is_recent: is_recent && !is_left_alone, since: before.since, ..stamp })
    }
}

/// Whether a file had changed so shortly before `now` that it may change again without another time. A time that is not known, or in the future,
/// counts as now.
fn is_recent(modified: Option<WallTime>, now: WallTime) -> bool {
    modified.and_then(|modified| now.since(modified)).is_none_or(|since| since < RECENT)
}

/// Number, and time of the last change of anything.
#[cfg(unix)]
fn kept_by_unix(data: &Metadata) -> (u64, (i64, i64)) {
    use std::os::unix::fs::MetadataExt as _;
    (data.ino(), (data.ctime(), data.ctime_nsec()))
}

#[cfg(not(unix))]
const fn kept_by_unix(_: &Metadata) -> (u64, (i64, i64)) {
    (0, (0, 0))
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
    fn what_changed_just_now_is_recent() {
        let time = |seconds| WallTime::since_1970(Duration::from_secs(seconds));
        let recent = |modified, now| is_recent(modified, time(now));
        assert!(recent(Some(time(100)), 100) && recent(Some(time(100)), 101) && !recent(Some(time(100)), 102));
        assert!(recent(Some(time(100)), 99), "in the future");
        assert!(recent(None, 1_000));
    }

    /// A program, or a clock that was ahead, has set the file's time: it settles all the same.
    #[test]
    fn a_file_of_the_future_settles_when_it_has_been_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            let hour = std::time::SystemTime::now() + Duration::from_secs(3_600);
            File::options().write(true).open(&path).unwrap().set_modified(hour).unwrap();
        };
        write("one");
        let first = FileStamp::of(&path);
        let soon = FileStamp::after(&path, first.as_ref());
        assert_ne!(first, soon);
        std::thread::sleep(RECENT);
        assert_ne!(FileStamp::of(&path), first, "nobody has looked at it before");
        let settled = FileStamp::after(&path, soon.as_ref());
        assert_ne!(settled, soon, "what was read before it had settled is read again");
        assert_eq!(FileStamp::after(&path, settled.as_ref()), settled);
        write("two");
        let changed = FileStamp::after(&path, settled.as_ref());
        assert_ne!(changed, settled);
        assert_ne!(FileStamp::after(&path, changed.as_ref()), changed);
    }

    /// Two writes of one length in one step of the file system's clock look alike: the second is seen because the first was recent.
    #[test]
    fn a_stamp_that_was_taken_soon_after_a_change_equals_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let soon = FileStamp::of(&path).unwrap();
        let [itself, settled] = [soon, FileStamp { is_recent: false, ..soon }];
        assert!(soon != itself && Some(soon) != FileStamp::of(&path));
        assert!(soon.looks_like(&itself) && soon.looks_like(&settled));
        assert_eq!(settled, FileStamp { is_recent: false, ..soon });
        assert_ne!(settled, soon);
        assert_ne!(soon, settled);
    }
}
