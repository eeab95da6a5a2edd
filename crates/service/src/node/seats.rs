//! The running node follows the members that the ledger has: it connects to those of now, and keeps its group file as they are.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
    time::Duration,
};

use theta_custody::{Card, Members, Standing};
use theta_names::NodeId;
use theta_network::{
    Fingerprint, GroupTransport,
    group::{CeremonyKey, GroupFile, GroupFileError, GroupNode},
    mesh::MeshPeer,
};
use theta_orchestration::Orchestrator;
use tokio::{sync::watch, task, time};

use super::archive::LedgerArchive;
use crate::config::NodeConfig;

/// For how long whoever has left the group may still read that it has.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a node connects to, and its group file.
pub(super) struct Seats {
    local: NodeId,
    path: PathBuf,
    /// What this node shows.
    own: Fingerprint,
    /// The file as this node knows it.
    file: GroupFile,
    /// The number of nodes, for those who ask.
    nodes: Arc<AtomicU16>,
    mesh: Weak<dyn GroupTransport>,
    archive: Weak<LedgerArchive>,
    orchestrator: Weak<Orchestrator>,
}

/// Why the group file is not what it should be.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Group(#[from] GroupFileError),
    #[error(transparent)]
    Disk(#[from] io::Error),
}

impl Seats {
    pub(super) fn new(
        (config, own): (&NodeConfig, Fingerprint),
        file: &GroupFile,
        (mesh, archive): (&Arc<dyn GroupTransport>, &Arc<LedgerArchive>),
        orchestrator: &Arc<Orchestrator>,
    ) -> Self {
        let nodes = Arc::new(AtomicU16::new(u16::try_from(file.nodes().len()).unwrap_or(u16::MAX)));
        let (local, path, file) = (NodeId::from(config.id), config.group.clone(), file.clone());
        let (mesh, archive) = (Arc::downgrade(mesh), Arc::downgrade(archive));
        Self { local, path, own, file, nodes, mesh, archive, orchestrator: Arc::downgrade(orchestrator) }
    }

    /// How many nodes the group has, from now on.
    pub(super) fn nodes(&self) -> Arc<AtomicU16> {
        Arc::clone(&self.nodes)
    }

    /// Follows the members until the node stops.
    pub(super) async fn follow(mut self, mut members: watch::Receiver<Option<Members>>) {
        loop {
            let now = members.borrow_and_update().clone();
            if let Some(now) = now
                && !self.take(&now).await
            {
                return;
            }
            if members.changed().await.is_err() {
                return;
            }
        }
    }

    /// Says whether the node still runs.
    async fn take(&mut self, members: &Members) -> bool {
        let (Some(mesh), Some(orchestrator)) = (self.mesh.upgrade(), self.orchestrator.upgrade()) else { return false };
        // A new machine's file is ahead of what it has read: it would leave those whom it has to ask.
        if members.height < self.file.members_at().unwrap_or(0) {
            return true;
        }
        let peers = self.peers(members);
        // Who has left reads that it has, from those who decided it.
        let leaves = |id: &NodeId| peers.iter().all(|peer| peer.id != *id);
        if members.standing != Standing::Gone && mesh.peers().iter().any(leaves) {
            time::sleep(FAREWELL).await;
        }
        if let Err(error) = mesh.set_peers(peers) {
            tracing::error!(%error, "this node cannot connect to the members that the group has now");
            return true;
        }
        orchestrator.follow_transport();
        if let Some(archive) = self.archive.upgrade() {
            // Who is no member itself tells nobody.
            let nobody = BTreeMap::new();
            let told = if members.standing == Standing::Member { &members.former } else { &nobody };
            archive.follow(told);
        }
        if self.is_superseded(members) {
            tracing::error!(
                height = members.height,
                "the group has another TLS key for this node than the one it shows: it serves no more"
            );
            orchestrator.stand_down(format!(
                "node {} has another TLS key in the group's ledger than the one that this machine shows: start it with that one",
                self.local
            ));
        }
        drop((mesh, orchestrator));
        if members.height > 0 && members.standing == Standing::Member {
            let listed = self.derived(members);
            self.nodes.store(u16::try_from(members.cards.len()).unwrap_or(u16::MAX), Relaxed);
            if let Err(error) = self.write(listed).await {
                let file = self.path.display();
                tracing::error!(%error, %file, "the group file cannot be written: it does not have the members of now, which the ledger has");
            }
        }
        true
    }

    /// Whether this machine is its member's and shows a TLS key that is not, since the member has renewed its card. Nobody speaks to it so.
    fn is_superseded(&self, members: &Members) -> bool {
        let other = |(node, card): &(NodeId, Card)| {
            *node == self.local && Fingerprint::from(card.content().tls_key) != self.own
        };
        members.height > 0 && members.standing == Standing::Member && members.cards.iter().any(other)
    }

    /// Whom this node connects to. Before any entry about members those of its file, which may name other addresses than their cards do.
    fn peers(&self, members: &Members) -> Vec<MeshPeer> {
        let others = |(node, _): &&(NodeId, Card)| *node != self.local;
        let listed = match (members.standing, members.height) {
            // Nobody speaks to it any more, and it has nothing to say.
            (Standing::Gone, _) => return Vec::new(),
            (_, 0) => self.file.mesh_peers(self.local),
            _ => members.cards.iter().filter(others).map(|(node, card)| peer_of(card, *node)).collect(),
        };
        // Under a warrant either machine is heard until the entry is there: the one that is said to be gone may live, and serve requests.
        let stand_ins = members.stand_ins.iter().filter(others).map(|(node, card)| peer_of(card, *node));
        let mut known = HashSet::from([self.own]);
        let mut peers: Vec<MeshPeer> = listed.into_iter().chain(stand_ins).collect();
        // Who names another's key cannot answer with it, and keeps nobody from following the rest.
        peers.retain(|peer| known.insert(peer.certificate));
        peers
    }

    fn derived(&self, members: &Members) -> Result<GroupFile, GroupFileError> {
        let nodes = members.cards.iter().map(|(node, card)| listed(*node, card)).collect();
        self.file.clone().with_members(nodes, members.height)
    }

    /// Writes the file if it is not so already. Whoever has edited it is told, and finds the edited one beside it.
    async fn write(&mut self, derived: Result<GroupFile, GroupFileError>) -> Result<(), WriteError> {
        let (path, before) = (self.path.clone(), self.file.clone());
        let derived = derived?;
        let written = task::spawn_blocking(move || {
            let there = GroupFile::load(&path);
            // Clients are the operator's own affair.
            let clients = there.as_ref().map_or_else(|_| before.clients().to_vec(), |there| there.clients().to_vec());
            let derived = derived.with_clients(clients)?;
            if there.as_ref().is_ok_and(|there| *there == derived) {
                return Ok::<_, WriteError>(derived);
            }
            if !there.is_ok_and(|there| there.nodes() == before.nodes()) {
                let copy = path.with_extension("toml.edited");
                fs::copy(&path, &copy)?;
                tracing::warn!(
                    copy = %copy.display(),
                    "the group file was edited by hand: members change by entries of the ledger (theta group --help), which count; the edited file is kept beside it"
                );
            }
            put(&path, &derived.to_text())?;
            Ok(derived)
        })
        .await
        .map_err(io::Error::from)?;
        self.file = written?;
        let (members, height) = (self.file.nodes().len(), self.file.members_at());
        tracing::info!(members, height, file = %self.path.display(), "the members of now");
        Ok(())
    }
}

fn peer_of(card: &Card, id: NodeId) -> MeshPeer {
    let content = card.content();
    MeshPeer { id, address: content.peer_address.to_string(), certificate: Fingerprint::from(content.tls_key) }
}

/// A member as the group file has it.
fn listed(id: NodeId, card: &Card) -> GroupNode {
    let content = card.content();
    GroupNode {
        id,
        name: Some(content.name.clone()),
        peer_address: content.peer_address.to_string(),
        api_address: content.api_address.to_string(),
        certificate: Fingerprint::from(content.tls_key),
        ceremony_key: Some(CeremonyKey::from(content.ceremony_key)),
    }
}

/// Writes a file whole or not at all.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension(format!("toml.new-{}", std::process::id()));
    let mut file = fs::File::create(&new)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // The error that matters is the first one.
        let _ = fs::remove_file(&new);
    }
    written
}
