//! What this client has checked of the group's ledger: kept over restarts, and brought up to date when something does not fit.
//!
//! Nobody is believed. A client has the members of the founding, from its group file, and takes an entry if a quorum of the members at
//! that height voted for it, as `spec/ledger.md` has it. What was checked once is kept in a file beside the client's own, and the client
//! asks for what comes after it.

mod checkpoint;
mod file;
mod follow;
mod genesis;
mod history;
mod keys;
mod turns;

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::{
        OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use theta_ledger::{CertifiedEntry, Digest, Genesis, LedgerError, LedgerState};
use theta_names::{Epoch, KeyName, Version};
use theta_network::group::GroupFile;
use theta_schemes::keys::AnyPublicKey;
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

use self::file::Locked;
pub use self::follow::Followed;
pub use self::genesis::{GenesisFileError, genesis_of};
use self::history::{Heads, History};
pub(crate) use self::keys::Certified;
use self::keys::Ids;
use self::turns::Turns;
use crate::Checkpoint;

/// For how long a client waits until another process has written its file.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it looks meanwhile.
const AGAIN: Duration = Duration::from_millis(20);

/// The ledger of a client's group, as far as the client has checked it.
#[derive(Debug)]
pub(crate) struct Book {
    /// `None` if a node of the group has no identity to vote with: then there is no ledger.
    genesis: Option<Genesis>,
    place: Option<PathBuf>,
    /// Where the true history goes through, as far as it is known before any of it is read.
    checkpoint: Option<Checkpoint>,
    /// What stands for the entries up to there, once a node has shown it.
    heads: RwLock<Heads>,
    /// Read when it is first needed.
    pages: OnceLock<RwLock<Pages>>,
    /// Public keys that were decoded, since that takes arithmetic.
    decoded: RwLock<HashMap<(KeyName, Version, Epoch), AnyPublicKey>>,
    /// The versions by their ids.
    ids: RwLock<Ids>,
    /// Held by the one that asks the nodes; others wait for what it learns.
    turns: Mutex<Turns>,
    /// Whether the lock of the file's folder was waited for in vain, so that nobody waits for it again.
    in_vain: AtomicBool,
}

/// What was checked, and how the file has it.
#[derive(Debug)]
struct Pages {
    state: LedgerState,
    encoded: Vec<u8>,
    /// Whether the file lacks something.
    unkept: bool,
}

impl Book {
    /// The ledger of this group, kept at `place`.
    pub(crate) fn new(group: &GroupFile, place: Option<PathBuf>) -> Self {
        Self {
            genesis: genesis_of(group).ok(),
            place,
            checkpoint: None,
            heads: RwLock::default(),
            pages: OnceLock::new(),
            decoded: RwLock::default(),
            ids: RwLock::default(),
            turns: Mutex::new(Turns::new(Instant::now())),
            in_vain: AtomicBool::new(false),
        }
    }

    /// The same for a client that takes no other history than the one that goes through here.
    pub(crate) fn since(self, checkpoint: Option<Checkpoint>) -> Self {
        Self { checkpoint, ..self }
    }

    /// The checkpoint, if this client has not read as far. Until then its file says who the members are.
    pub(crate) fn ahead(&self) -> Option<Checkpoint> {
        let height = self.look(LedgerState::height)?;
        self.checkpoint.filter(|checkpoint| height < checkpoint.height)
    }

    /// With what the ledger begins; `None` if the group keeps none.
    pub(crate) const fn genesis(&self) -> Option<&Genesis> {
        self.genesis.as_ref()
    }

    fn pages(&self) -> Option<&RwLock<Pages>> {
        let genesis = self.genesis.as_ref()?;
        Some(self.pages.get_or_init(|| {
            let kept = self.place.as_deref().and_then(file::load).unwrap_or_default();
            // What does not reach the checkpoint may be another history.
            let reaches = |at: &Checkpoint| file::digest_at(&kept, &genesis.id(), at.height) == Some(at.entry);
            let kept = if self.checkpoint.as_ref().is_none_or(reaches) { kept } else { Vec::new() };
            let (state, end) = file::read(&kept, genesis);
            let behind = |at: &Checkpoint| state.height() < at.height;
            let (state, end) =
                if self.checkpoint.as_ref().is_some_and(behind) { file::read(&[], genesis) } else { (state, end) };
            let encoded = kept.get(..end).map_or_else(|| file::empty(&genesis.id()), <[u8]>::to_vec);
            RwLock::new(Pages { state, encoded, unkept: false })
        }))
    }

    /// Looks at what was checked so far; `None` if the group keeps no ledger.
    pub(crate) fn look<T>(&self, at: impl FnOnce(&LedgerState) -> T) -> Option<T> {
        let pages = self.pages()?.read().unwrap_or_else(PoisonError::into_inner);
        Some(at(&pages.state))
    }

    /// Writes what is new into the file, unless another process has written more. A client that cannot write there goes on, and asks for the
    /// same again after its next start.
    async fn keep(&self) {
        let Some(place) = self.place.as_deref().filter(|_| self.is_unkept()) else { return };
        let locked = self.locked(place).await;
        self.write(place, locked);
    }

    /// The same if nobody else has the lock of the file's folder now.
    fn keep_now(&self) {
        let Some(place) = self.place.as_deref().filter(|_| self.is_unkept()) else { return };
        self.write(place, file::lock(place));
    }

    fn is_unkept(&self) -> bool {
        self.pages().is_some_and(|pages| pages.read().unwrap_or_else(PoisonError::into_inner).unkept)
    }

    fn write(&self, place: &Path, locked: io::Result<Option<Locked>>) {
        let (Some(genesis), Some(pages)) = (self.genesis(), self.pages()) else { return };
        let written = locked.and_then(|locked| {
            let Some(locked) = locked else { return Ok(()) };
            let (encoded, height) = {
                let mut pages = pages.write().unwrap_or_else(PoisonError::into_inner);
                pages.unkept = false;
                (pages.encoded.clone(), pages.state.height())
            };
            // A longer file is looked at: what is certified in it counts, and not what anybody has written behind that.
            let has_more = |kept: &[u8]| kept.len() > encoded.len() && file::read(kept, genesis).0.height() > height;
            file::save(&locked, place, &encoded, has_more)
        });
        if let Err(error) = written {
            tracing::debug!(place = %place.display(), %error, "the ledger was not kept");
        }
    }

    /// The lock of the file's folder; `None` if another process keeps it. It is waited for until that has been in vain once: whoever may read
    /// the folder can hold its lock for ever, and must not hold up this client.
    async fn locked(&self, place: &Path) -> io::Result<Option<Locked>> {
        let patience = if self.in_vain.load(Relaxed) { Duration::ZERO } else { PATIENCE };
        let deadline = Instant::now() + patience;
        loop {
            if let Some(locked) = file::lock(place)? {
                self.in_vain.store(false, Relaxed);
                return Ok(Some(locked));
            }
            if Instant::now() >= deadline {
                if !self.in_vain.swap(true, Relaxed) {
                    let folder = file::folder(place).display();
                    tracing::warn!(
                        "what this client has read of the group's ledger is not kept, and will be read again: another program holds the lock of \
                         {folder} (`fuser -v {folder}` shows which): end it, or give this client a folder that nobody else may read"
                    );
                }
                return Ok(None);
            }
            sleep(AGAIN).await;
        }
    }
}

/// What a kept history (`spec/client.md`) leads to as far as it is certified, and where the last entry of that ends in the file. Any bytes are
/// taken: what is no history of the group that began so is an empty one, and its end may lie behind the file's.
#[must_use]
pub fn read_kept_ledger(bytes: &[u8], genesis: &Genesis) -> (LedgerState, usize) {
    file::read(bytes, genesis)
}

impl History for &Book {
    fn height(&self) -> u64 {
        self.look(LedgerState::height).unwrap_or_default()
    }

    fn head(&self) -> Option<Digest> {
        self.look(|state| *state.head())
    }

    fn digest(&self, certified: &CertifiedEntry) -> Option<Digest> {
        self.look(|state| certified.entry.digest(state.id()))
    }

    fn take(&mut self, certified: CertifiedEntry) -> Result<(), LedgerError> {
        let Some(pages) = self.pages() else { return Ok(()) };
        let mut pages = pages.write().unwrap_or_else(PoisonError::into_inner);
        pages.state.advance(&certified)?;
        // What does not fit into the file any more is asked for again after a restart.
        if file::append(&mut pages.encoded, &certified) {
            pages.unkept = true;
        }
        Ok(())
    }
}
