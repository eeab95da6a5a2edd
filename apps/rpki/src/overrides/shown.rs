//! Overrides that all registries see, whether they have taken them up or not: those in a folder of the store, which all agents read. An agent permits by none that is not
//! there.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak, mpsc},
    thread,
    time::Duration,
};

use super::{
    Overrides,
    seen::{GRACE, Seen},
};
use crate::{signatures::KeySet, sources::shown};

/// The folder, in the store.
pub(crate) const FOLDER: &str = "overrides";
/// It is looked at so often at most.
const PAUSE: Duration = Duration::from_millis(100);

/// Who wants to know of them.
pub(crate) trait Looks: Send + 'static {
    /// Whose signatures count, as the registry's data have it now.
    fn operators(&self) -> Option<KeySet>;

    /// Takes those that are there now and that enough operators have signed.
    fn take(&mut self, shown: Overrides);
}

/// What is in the folder of a store now, for somebody who looks once.
pub(crate) fn look_once(store: &Path, operators: Option<&KeySet>) -> io::Result<Overrides> {
    let mut seen = Seen::default();
    seen.look(&store.join(FOLDER), operators.cloned())?;
    Ok(seen.overrides())
}

/// Looks at the folder for as long as somebody wants to know, in a thread of its own: a store may stop answering, and what needs nothing of it is decided all the
/// same. While the folder cannot be read, or a file of it, what was seen last stands for 30 looks; then there is none, as one may have been withdrawn, and none comes
/// back that is not read anew. While reading hangs what was seen last stands: each registry has its own folder, without which an override permits nothing. Returns after the first look, or when that takes longer than `patience`:
/// what operators state in a member's place is not taken for missing only because nobody has looked yet.
pub(crate) fn watch<L: Looks>(
    folder: PathBuf,
    who: &Arc<Mutex<L>>,
    pause: Duration,
    patience: Duration,
) -> io::Result<()> {
    let (who, (has_looked, first)) = (Arc::downgrade(who), mpsc::channel());
    // Held for a moment alone: who ends lets go of its files, which its successor takes.
    let take = |who: &Weak<Mutex<L>>, all: Overrides| {
        if let Some(who) = who.upgrade() {
            who.lock().unwrap_or_else(PoisonError::into_inner).take(all);
        }
    };
    let look = move || {
        let (mut seen, mut last, mut failed) = (Seen::default(), Overrides::default(), 0_u32);
        while let Some(operators) =
            who.upgrade().map(|who| who.lock().unwrap_or_else(PoisonError::into_inner).operators())
        {
            match seen.look(&folder, operators) {
                Ok(()) => {
                    failed = 0;
                    // What was worth nothing before and is now costs nobody who decides anything.
                    let all = seen.overrides();
                    if all != last {
                        take(&who, all.clone());
                        last = all;
                    }
                }
                Err(error) => {
                    failed = failed.saturating_add(1);
                    if failed == 1 {
                        tracing::warn!("overrides that all registries see cannot be read, {}: {error}", shown(&folder));
                    } else if failed == GRACE {
                        tracing::warn!("overrides that all registries see cannot be read: none permits anything");
                        (seen, last) = (Seen::default(), Overrides::default());
                        take(&who, last.clone());
                    }
                }
            }
            // Only the first time somebody waits for it.
            let _ = has_looked.send(());
            thread::sleep(pause.max(PAUSE));
        }
    };
    thread::Builder::new().name("overrides".to_owned()).spawn(look)?;
    let _ = first.recv_timeout(patience);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Instant};

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    use super::*;
    use crate::overrides::seen::tests::Place;

    struct Who {
        operators: KeySet,
        shown: Overrides,
    }

    impl Looks for Who {
        fn operators(&self) -> Option<KeySet> {
            Some(self.operators.clone())
        }

        fn take(&mut self, shown: Overrides) {
            self.shown = shown;
        }
    }

    /// A folder cannot be read for so long that nothing of it counts any more, and when it can be again one of its files cannot: what it was is not back by that.
    #[test]
    fn what_counts_no_more_takes_reading_to_count_again() {
        let (place, elsewhere) = (Place::with("why"), tempfile::tempdir().unwrap());
        let (folder, other) = (place.folder.path(), elsewhere.path().join("other"));
        fs::write(&other, "no folder").unwrap();
        let who = Arc::new(Mutex::new(Who { operators: place.operators(), shown: Overrides::default() }));
        let count = || who.lock().unwrap().shown.objects.len();
        let until = |is_shown: bool| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while (count() == 1) != is_shown {
                assert!(Instant::now() < deadline, "{is_shown}");
                thread::sleep(Duration::from_millis(10));
            }
        };
        // At no moment there is none of the two.
        let exchange = || renameat_with(CWD, folder, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        watch(folder.to_owned(), &who, Duration::ZERO, Duration::from_secs(60)).unwrap();
        until(true);
        exchange();
        until(false);
        fs::write(other.join(place.file().file_name().unwrap()), "nonsense").unwrap();
        exchange();
        for _ in 0..100 {
            assert_eq!(count(), 0);
            thread::sleep(Duration::from_millis(10));
        }
        fs::write(place.file(), place.signed("why")).unwrap();
        until(true);
    }
}
