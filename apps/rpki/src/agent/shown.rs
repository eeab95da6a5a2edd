//! Overrides that all registries see, whether they have taken them up or not: those in a folder of the store, which all agents read. An agent permits by none that is not
//! there.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use crate::{
    overrides::Override,
    signatures::KeySet,
    sources::{MOST_OVERRIDES, complain, found, list},
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
    fn take(&mut self, shown: Vec<Override>);
}

type Texts = BTreeMap<PathBuf, String>;

/// What is in the folder. Who has shown nothing has none.
fn read(folder: &Path) -> Option<Texts> {
    let files = match list(folder, MOST_OVERRIDES) {
        Ok(files) => files?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Texts::new()),
        Err(_) => return None,
    };
    let text = |path: PathBuf| found(&path).ok()?.ok().map(|text| (path, text));
    Some(files.into_iter().filter_map(text).collect())
}

fn signed(texts: &Texts, operators: Option<&KeySet>) -> Vec<Override> {
    let read = texts
        .iter()
        .filter_map(|(path, text)| Override::signed(text, operators).inspect_err(|reason| complain(path, reason)).ok());
    read.collect()
}

/// Looks at the folder for as long as somebody wants to know, in a thread of its own: a store may stop answering, and what needs nothing of it is decided all the
/// same. While it cannot be read what was seen last stands.
pub(crate) fn watch<L: Looks>(folder: PathBuf, who: &Arc<Mutex<L>>, pause: Duration) -> io::Result<()> {
    let who = Arc::downgrade(who);
    let look = move || {
        let mut last = None;
        loop {
            let texts = read(&folder);
            let Some(who) = who.upgrade() else { return };
            let operators = who.lock().unwrap_or_else(PoisonError::into_inner).operators();
            if let Some(now) = texts.map(|texts| (texts, operators))
                && last.as_ref() != Some(&now)
            {
                let shown = signed(&now.0, now.1.as_ref());
                who.lock().unwrap_or_else(PoisonError::into_inner).take(shown);
                last = Some(now);
            }
            drop(who);
            thread::sleep(pause.max(PAUSE));
        }
    };
    thread::Builder::new().name("overrides".to_owned()).spawn(look).map(drop)
}
