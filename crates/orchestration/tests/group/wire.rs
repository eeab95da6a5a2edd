//! A network of channels with an attacker on the wire.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, RwLock},
    time::Duration,
};

use bytes::Bytes;
use prost::Message as _;
use theta_names::NodeId;
use theta_network::{Inbound, PeerState, PeerStatus, SendError, Transport};
use theta_wire::peer::{Envelope, INSTANCES};
use tokio::{runtime::Handle, sync::mpsc};

/// Returns what arrives instead of a message from one node to another.
pub(crate) type Hook = Box<dyn Fn(u16, u16, Bytes) -> Vec<Bytes> + Send + Sync>;

/// The wire between nodes 1 to n.
pub(crate) struct Wire {
    n: u16,
    inboxes: Mutex<HashMap<u16, mpsc::Sender<Inbound>>>,
    hook: RwLock<Option<Hook>>,
    /// How long each message takes, and what waits so long.
    delay: RwLock<Option<(Duration, Handle)>>,
}

/// One node's end of the wire.
pub(crate) struct Port {
    wire: Arc<Wire>,
    id: u16,
}

pub(crate) fn peer(id: u16) -> NodeId {
    NodeId::try_from(id).unwrap()
}

impl Wire {
    pub(crate) fn new(n: u16) -> Arc<Self> {
        Arc::new(Self { n, inboxes: Mutex::default(), hook: RwLock::new(None), delay: RwLock::new(None) })
    }

    /// Connects a node; an earlier one with this id is disconnected.
    pub(crate) fn attach(self: &Arc<Self>, id: u16) -> (Arc<Port>, mpsc::Receiver<Inbound>) {
        let (sender, receiver) = mpsc::channel(1 << 16);
        self.inboxes.lock().unwrap().insert(id, sender);
        (Arc::new(Port { wire: Arc::clone(self), id }), receiver)
    }

    /// Disconnects a node: messages to it are lost.
    pub(crate) fn detach(&self, id: u16) {
        self.inboxes.lock().unwrap().remove(&id);
    }

    /// Puts an attacker on the wire.
    pub(crate) fn tamper(&self, hook: impl Fn(u16, u16, Bytes) -> Vec<Bytes> + Send + Sync + 'static) {
        *self.hook.write().unwrap() = Some(Box::new(hook));
    }

    /// Lets each message take so long.
    pub(crate) fn delay(&self, delay: Duration) {
        *self.delay.write().unwrap() = Some((delay, Handle::current()));
    }

    /// Removes the attacker.
    pub(crate) fn restore(&self) {
        *self.hook.write().unwrap() = None;
    }

    /// Sends a message of node `from` that no orchestrator sent. Waits for room.
    pub(crate) async fn inject(&self, from: u16, to: u16, bytes: Bytes) {
        let inbox = self.inboxes.lock().unwrap().get(&to).cloned().unwrap();
        inbox.send(Inbound { from: peer(from), channel: theta_names::Channel::Private, bytes }).await.unwrap();
    }

    fn carry(&self, from: u16, to: u16, bytes: Bytes) -> Result<(), SendError> {
        let messages = match &*self.hook.read().unwrap() {
            Some(hook) => hook(from, to, bytes),
            None => vec![bytes],
        };
        let Some(inbox) = self.inboxes.lock().unwrap().get(&to).cloned() else { return Ok(()) };
        for bytes in messages {
            if let Some((delay, handle)) = &*self.delay.read().unwrap() {
                let (inbox, delay) = (inbox.clone(), *delay);
                handle.spawn(async move {
                    tokio::time::sleep(delay).await;
                    // Whoever is off gets nothing.
                    let _ =
                        inbox.send(Inbound { from: peer(from), channel: theta_names::Channel::Private, bytes }).await;
                });
                continue;
            }
            match inbox.try_send(Inbound { from: peer(from), channel: theta_names::Channel::Private, bytes }) {
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
                Err(mpsc::error::TrySendError::Full(_)) => return Err(SendError::QueueFull(peer(to))),
            }
        }
        Ok(())
    }
}

impl Transport for Port {
    fn local(&self) -> NodeId {
        peer(self.id)
    }

    fn peers(&self) -> Vec<NodeId> {
        (1..=self.wire.n).filter(|id| *id != self.id).map(peer).collect()
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        self.wire.carry(self.id, to.get(), message)
    }

    fn status(&self) -> Vec<PeerStatus> {
        let inboxes = self.wire.inboxes.lock().unwrap();
        let state = |peer: NodeId| {
            if inboxes.contains_key(&peer.get()) { PeerState::Connected } else { PeerState::Connecting }
        };
        let status = |peer| PeerStatus {
            peer,
            address: String::new(),
            state: state(peer),
            last_error: None,
            queued: 0,
            latency: Some(Duration::from_millis(1)),
        };
        self.peers().into_iter().map(status).collect()
    }
}

/// Reads a message as the peers do.
pub(crate) fn open(bytes: &Bytes) -> Envelope {
    Envelope::decode(bytes.clone()).unwrap()
}

/// Writes a message.
pub(crate) fn seal(envelope: &Envelope) -> Bytes {
    envelope.encode_to_vec().into()
}

/// Whether a message belongs to a protocol rather than to orchestration itself.
pub(crate) fn is_share(bytes: &Bytes) -> bool {
    let envelope = open(bytes);
    envelope.stream == INSTANCES && envelope.kind < u32::MAX - 1
}
