//! Overrides that all registries see, whether they have taken them up or not: those in a folder of the store, which all agents read. An agent permits by none that is not
//! there.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak, mpsc},
    thread,
    time::Duration,
};

use sha2::{Digest as _, Sha256};

use super::{MOST_TEXT, Overrides, Overriding};
use crate::{
    files::{self, Links},
    signatures::KeySet,
    sources::{MOST_OVERRIDES, complain, list, shown},
};

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

/// For so many looks what was seen last stands while the folder cannot be read.
const GRACE: u32 = 30;

/// What came of each file, by its content, so that one that has not changed is not verified, or complained of, again.
#[derive(Default)]
struct Seen {
    operators: Option<KeySet>,
    files: BTreeMap<PathBuf, ([u8; 32], Option<Overriding>)>,
}

impl Seen {
    /// Looks at the folder. Who has shown nothing has none.
    fn look(&mut self, folder: &Path, operators: Option<KeySet>) -> io::Result<()> {
        let files = match list(folder, MOST_OVERRIDES) {
            Ok(files) => files.ok_or_else(|| io::Error::other(format!("it has more than {MOST_OVERRIDES} files")))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        if self.operators != operators {
            *self = Self { operators, files: BTreeMap::new() };
        }
        let read = files.into_iter().map(|path| {
            let read = self.file(&path);
            (path, read)
        });
        self.files = read.collect();
        Ok(())
    }

    fn file(&self, path: &Path) -> ([u8; 32], Option<Overriding>) {
        let content = files::read(path, Links::Refused, u64::try_from(MOST_TEXT).unwrap_or(u64::MAX))
            .map_err(|error| error.to_string());
        let digest = match &content {
            Ok(bytes) => Sha256::new().chain_update([0]).chain_update(bytes),
            Err(reason) => Sha256::new().chain_update([1]).chain_update(reason),
        };
        let digest: [u8; 32] = digest.finalize().into();
        if let Some(before) = self.files.get(path).filter(|(before, _)| *before == digest) {
            return before.clone();
        }
        let text = content.and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
        let read =
            text.and_then(|text| Overriding::signed(&text, self.operators.as_ref()).map_err(|error| error.to_string()));
        (digest, read.inspect_err(|reason| complain(path, reason)).ok())
    }

    fn overrides(&self) -> Overrides {
        self.files.values().filter_map(|(_, one)| one.as_ref()).collect()
    }
}

/// What is in the folder of a store now, for somebody who looks once.
pub(crate) fn look_once(store: &Path, operators: Option<&KeySet>) -> io::Result<Overrides> {
    let mut seen = Seen::default();
    seen.look(&store.join(FOLDER), operators.cloned())?;
    Ok(seen.overrides())
}

/// Looks at the folder for as long as somebody wants to know, in a thread of its own: a store may stop answering, and what needs nothing of it is decided all the
/// same. While the folder cannot be read what was seen last stands for 30 looks; then there is none, as one may have been withdrawn. While reading hangs what was seen
/// last stands: each registry has its own folder, without which an override permits nothing. Returns after the first look, or when that takes longer than `patience`:
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
                        last = Overrides::default();
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
