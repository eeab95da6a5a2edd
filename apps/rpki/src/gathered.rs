//! What a decision needs of the store, which is read before the decision is made: the store may be a share that does not answer, and only whoever needs it
//! must wait for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Semaphore,
    task,
    time::{Instant, timeout_at},
};

use crate::{
    memory::Digest,
    objects::{Object, read_manifest},
    store::Store,
};

/// So many bytes are gathered for one decision at most.
const MOST_BYTES: usize = 64 << 20;
/// For so many requests something is gathered at once, and so many files are being read. One that is read for ever stays one of these.
const MOST_REQUESTS: usize = 4;
const MOST_READS: usize = 8;
/// What is said where there is too much in it.
const LONG: &str = "all that it covers has more than 64 MiB";
/// What is said where the store does not answer.
const SILENT: &str = "the store does not answer in time: is it a share whose server is gone?";

/// Something in the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wanted {
    Content(Digest),
    Published(String),
}

/// What has been read of the store for one decision. What has not is noted, and is not there.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    found: BTreeMap<Wanted, Result<Vec<u8>, String>>,
    bytes: usize,
    /// Whether a manifest is decided about: then whoever looks for one of its files looks for all.
    is_manifest: bool,
    /// The files on it.
    files: BTreeSet<Wanted>,
    missing: Mutex<BTreeSet<Wanted>>,
}

impl Gathered {
    /// Nothing yet, for a decision about bytes that are to be signed.
    pub(crate) fn about(bytes: &[u8]) -> Self {
        Self { is_manifest: matches!(Object::read(bytes), Some(Object::Attributes(_))), ..Self::default() }
    }

    fn get(&self, wanted: Wanted) -> Result<Vec<u8>, String> {
        self.found.get(&wanted).cloned().unwrap_or_else(|| {
            self.missing.lock().unwrap_or_else(PoisonError::into_inner).insert(wanted);
            Err("it has not been looked for".to_owned())
        })
    }

    /// What was looked for, and has not been read.
    pub(crate) fn missing(&self) -> BTreeSet<Wanted> {
        mem::take(&mut self.missing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What there is no room for is not there.
    fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Takes what was found.
    fn take(&mut self, wanted: Wanted, found: Result<Vec<u8>, String>) {
        self.bytes = self.bytes.saturating_add(found.as_ref().map_or(0, Vec::len));
        let found = if self.is_full() { Err(LONG.to_owned()) } else { found };
        if let (Wanted::Content(_), Ok(bytes), true) = (&wanted, &found, self.is_manifest && self.files.is_empty()) {
            self.files = files(bytes);
        }
        self.found.insert(wanted, found);
    }
}

/// The files on a manifest. What is no manifest has none.
fn files(bytes: &[u8]) -> BTreeSet<Wanted> {
    let Some(content) = read_manifest(bytes) else { return BTreeSet::new() };
    let digests = content.iter().filter_map(|entry| {
        let (_, digest) = entry.into_pair();
        let digest: &[u8] = digest.as_ref();
        Digest::try_from(digest).ok()
    });
    digests.map(Wanted::Content).collect()
}

impl Store for Gathered {
    fn content(&self, digest: &Digest) -> Result<Vec<u8>, String> {
        self.get(Wanted::Content(*digest))
    }

    fn published(&self, address: &str) -> Result<Vec<u8>, String> {
        self.get(Wanted::Published(address.to_owned()))
    }
}

/// Whoever reads from the store.
#[derive(Clone)]
pub(crate) struct Readers {
    store: Arc<dyn Store>,
    patience: Duration,
    requests: Arc<Semaphore>,
    reads: Arc<Semaphore>,
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Readers {
    /// They give up after so long.
    pub(crate) fn new(store: Arc<dyn Store>, patience: Duration) -> Self {
        let [requests, reads] = [MOST_REQUESTS, MOST_READS].map(|most| Arc::new(Semaphore::new(most)));
        Self { store, patience, requests, reads }
    }

    /// Until when something is gathered for a request that comes now.
    pub(crate) fn deadline(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.patience).unwrap_or(now)
    }

    /// Reads what is wanted. What has not come by the deadline is said not to be there.
    pub(crate) async fn gather(&self, into: &mut Gathered, mut wanted: BTreeSet<Wanted>, deadline: Instant) {
        let turn = timeout_at(deadline, self.requests.acquire()).await;
        let has_turn = matches!(turn, Ok(Ok(_)));
        if wanted.iter().any(|one| into.files.contains(one)) {
            wanted.extend(into.files.iter().cloned());
        }
        for next in wanted {
            let found = match (has_turn, into.is_full()) {
                _ if into.found.contains_key(&next) => continue,
                (true, false) => self.read(next.clone(), deadline).await,
                (true, true) => Err(LONG.to_owned()),
                (false, _) => Err(SILENT.to_owned()),
            };
            into.take(next, found);
        }
    }

    async fn read(&self, wanted: Wanted, deadline: Instant) -> Result<Vec<u8>, String> {
        let read = async {
            let place = Arc::clone(&self.reads).acquire_owned().await.map_err(|error| error.to_string())?;
            let store = Arc::clone(&self.store);
            // It has its place until it has ended, also when nobody waits for it any more.
            let reading = task::spawn_blocking(move || {
                let found = match wanted {
                    Wanted::Content(digest) => store.content(&digest),
                    Wanted::Published(address) => store.published(&address),
                };
                drop(place);
                found
            });
            reading.await.map_err(|error| error.to_string())?
        };
        timeout_at(deadline, read).await.unwrap_or_else(|_| Err(SILENT.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store that has everything, in one length.
    struct Long(usize);

    impl Store for Long {
        fn content(&self, _: &Digest) -> Result<Vec<u8>, String> {
            Ok(vec![0; self.0])
        }

        fn published(&self, _: &str) -> Result<Vec<u8>, String> {
            Err("it is not there".to_owned())
        }
    }

    #[tokio::test]
    async fn what_is_missing_is_read_to_a_bound() {
        let readers = Readers::new(Arc::new(Long(4 << 20)), Duration::from_secs(60));
        let mut gathered = Gathered::default();
        for number in 0..20 {
            assert!(gathered.content(&[number; 32]).is_err());
        }
        assert!(gathered.published("rsync://host/module/file").is_err());
        let missing = gathered.missing();
        assert_eq!((missing.len(), gathered.missing().len()), (21, 0));
        readers.gather(&mut gathered, missing, readers.deadline()).await;
        let found = (0..20).filter(|number| gathered.content(&[*number; 32]).is_ok()).count();
        assert_eq!((found, gathered.missing().len()), (16, 0), "64 MiB, and all has been looked for");
        assert!(gathered.published("rsync://host/module/file").is_err());
    }
}
