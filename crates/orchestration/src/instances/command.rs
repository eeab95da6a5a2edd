//! The commands that a shard takes from its inbox.

use std::{sync::Arc, time};

use rand_core::CryptoRng;
use theta_custody::{KeyEntry, KeyTable, ResolveError};
use theta_names::NodeId;
use theta_protocols::frost::Supply;
use theta_schemes::keys::KeyName;
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use super::{asked::Asked, backlog::Early, ending::Ending};
use crate::{Asker, InstanceId, InstanceSnapshot, SubmitError, quota::Permit};

/// What a shard is told. Time comes as ticks in the same queue, so that a shard that is behind does not take its own delay
/// for the silence of others.
pub(crate) enum Command {
    /// A request from the application.
    Submit(Box<Submission>),
    /// A protocol message from a peer.
    Message { instance: InstanceId, message: Early },
    /// What an instance asked the stock of its key for, and had to wait for.
    Supply { instance: InstanceId, supply: Supply },
    /// A peer asks for what was sent in an instance.
    Resend { from: NodeId, instance: InstanceId },
    /// Somebody wants to wait for an instance.
    Ending(InstanceId, oneshot::Sender<Option<Ending>>),
    /// Somebody wants to know how an instance is.
    Status(InstanceId, oneshot::Sender<Option<InstanceSnapshot>>),
    /// Somebody wants to see how an instance goes.
    Watch(InstanceId, oneshot::Sender<Option<watch::Receiver<InstanceSnapshot>>>),
    /// The entries of a key are others now.
    KeyChanged(KeyName),
    /// A computation that needs a CPU.
    Compute(Computation),
    /// Messages of peers wait.
    Mail,
    /// The time.
    Tick(Instant),
    /// Stop.
    Stop,
}

/// A computation and the randomness that it is given.
pub(crate) type Computation = Box<dyn FnOnce(&mut dyn CryptoRng) + Send>;

/// A request on its way to its shard.
pub(crate) struct Submission {
    pub(crate) id: InstanceId,
    pub(crate) key: Arc<KeyEntry>,
    /// That of the key table when the key was looked up.
    pub(crate) generation: u64,
    pub(crate) asked: Asked,
    /// On whose account it is, if on anybody's.
    pub(crate) asker: Option<Asker>,
    /// When the orchestrator was asked.
    pub(crate) submitted: time::Instant,
    /// Its place among the requests that wait.
    pub(crate) queued: Permit,
    /// Its part of the bytes that wait or run.
    pub(crate) bytes: Permit,
    /// Whether the reply may wait until the instance ends, because the caller does.
    pub(crate) waits: bool,
    pub(crate) reply: Reply,
}

impl Submission {
    /// Looks the key up again if the table has changed since.
    pub(crate) fn refresh(&mut self, keys: &KeyTable) -> Result<(), ResolveError> {
        if keys.generation() != self.generation {
            self.generation = keys.generation();
            self.key = self.asked.resolve(keys)?;
            self.id = self.asked.id_under(&self.key);
        }
        Ok(())
    }
}

/// The id of the instance that a request has become, and its end.
pub(crate) type Taken = (InstanceId, Ending);

/// The way back to whoever sent a request.
pub(crate) type Reply = oneshot::Sender<Result<Taken, SubmitError>>;
