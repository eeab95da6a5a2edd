//! Machines that are nobody's any more hear of it: each node lets them read the ledger up to the entry by which they left, and reads it at nodes
//! that have no connection with it.
//!
//! A machine that was replaced or removed while it was off is let in by nobody, and knows no reason. What it reads is certified by
//! members that it knows from its own last entry on, so that no node need be believed, and none can make it leave by a word. New machines read
//! in the same way all that they need to join (`theta node join --from`).

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock, Weak},
    time::Duration,
};

use bytes::Bytes;
use theta_network::{
    Fingerprint, GroupTransport, Identity,
    archive::{self, Archive, ArchiveError},
    mesh::MeshPeer,
};
use theta_orchestration::Orchestrator;
use theta_store::Store;
use tokio::time;

/// Bytes of the ledger that are read at once: they pass within the time that a handshake may take, over slow links, too.
const CHUNK: usize = 1 << 18;
/// The pause before nodes are asked that have no connection with this one, at first and then.
const FIRST_PAUSE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_secs(10);
/// How many of them are asked at once, others each time.
const ASKED: usize = 4;

/// The ledger of this node, for those who may read it at the address for nodes: members all of it, machines that have left as much as was
/// decided while they were members', with the entry that ended it.
#[derive(Debug)]
pub(super) struct LedgerArchive {
    store: Weak<Store>,
    /// The text of the group's founding; empty if it has none.
    founding: Bytes,
    former: RwLock<HashMap<Fingerprint, u64>>,
}

impl LedgerArchive {
    pub(super) fn new(store: &Arc<Store>, founding: Option<&str>) -> Arc<Self> {
        let founding = Bytes::copy_from_slice(founding.unwrap_or_default().as_bytes());
        Arc::new(Self { store: Arc::downgrade(store), founding, former: RwLock::default() })
    }

    /// These have left, by the entry of that height each.
    pub(super) fn follow(&self, former: &BTreeMap<[u8; 32], u64>) {
        let former = former.iter().map(|(key, height)| (Fingerprint::from(*key), *height)).collect();
        *self.former.write().unwrap_or_else(PoisonError::into_inner) = former;
    }

    fn left(&self, certificate: &Fingerprint) -> Option<u64> {
        self.former.read().unwrap_or_else(PoisonError::into_inner).get(certificate).copied()
    }
}

impl Archive for LedgerArchive {
    fn admits(&self, certificate: &Fingerprint) -> bool {
        self.left(certificate).is_some()
    }

    fn read(&self, certificate: &Fingerprint, is_peer: bool, after: u64) -> Vec<Bytes> {
        let until = if is_peer { Some(u64::MAX) } else { self.left(certificate) };
        let (Some(until), Some(store)) = (until, self.store.upgrade()) else { return Vec::new() };
        let entries = store.ledger_entries(after, CHUNK).unwrap_or_else(|error| {
            tracing::error!(%error, "the ledger cannot be read");
            Vec::new()
        });
        let heights = (1..).map(|place| after.saturating_add(place));
        let entries = entries.into_iter().zip(heights).take_while(|(_, height)| *height <= until);
        core::iter::once(self.founding.clone()).chain(entries.map(|(entry, _)| entry.into())).collect()
    }
}

/// Reads the ledger at nodes that this one has no connection with, until it stops.
pub(super) async fn catch_up(identity: Identity, mesh: Weak<dyn GroupTransport>, orchestrator: Weak<Orchestrator>) {
    let (mut turn, mut pause) = (0_usize, FIRST_PAUSE);
    loop {
        time::sleep(pause).await;
        pause = PAUSE;
        let Some(mut unreached) = mesh.upgrade().map(|mesh| mesh.unreached()) else { return };
        let first = turn.checked_rem(unreached.len()).unwrap_or(0);
        unreached.rotate_left(first);
        turn = turn.wrapping_add(ASKED);
        let asked = unreached.into_iter().take(ASKED).map(|peer| {
            let (identity, orchestrator) = (identity.clone(), orchestrator.clone());
            tokio::spawn(async move {
                if let Err(error) = read_at(&identity, &peer, &orchestrator).await {
                    tracing::debug!(peer = %peer.id, %error, "the ledger was not read at a node without a connection");
                }
            })
        });
        for task in asked.collect::<Vec<_>>() {
            // One that panics would be a fault of ours; the next turn comes.
            let _ = task.await;
        }
    }
}

/// Reads what one node has and this one lacks. The node that reads may stop meanwhile.
async fn read_at(identity: &Identity, peer: &MeshPeer, orchestrator: &Weak<Orchestrator>) -> Result<(), ArchiveError> {
    let Some(mut height) = take(orchestrator, Vec::new()).await else { return Ok(()) };
    loop {
        let mut records = archive::read(identity, &peer.address, Some(peer.certificate), height).await?.into_iter();
        let _founding = records.next();
        let Some(reached) = take(orchestrator, records.collect()).await.filter(|reached| *reached > height) else {
            return Ok(());
        };
        tracing::info!(peer = %peer.id, height = reached, "read the group's ledger at a node that has no connection with this one");
        height = reached;
    }
}

async fn take(orchestrator: &Weak<Orchestrator>, entries: Vec<Bytes>) -> Option<u64> {
    orchestrator.upgrade()?.take_entries(entries).await.ok()
}
