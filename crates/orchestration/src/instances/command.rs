//! The commands that a shard takes from its inbox.

use std::{sync::Arc, time};

use rand_core::CryptoRng;
use theta_custody::{KeyEntry, KeyTable, ResolveError};
use theta_names::NodeId;
use theta_protocols::Supply;
use theta_schemes::keys::KeyName;
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use super::{backlog::Early, ending::Ending, envelope::Announcement};
use crate::{Asker, InstanceId, InstanceSnapshot, SubmitError, asked::Asked, quota::Permit};

/// A command to a shard. Ticks come in the same queue, so that a shard that is behind does not mistake its own delay
/// for the silence of others.
pub(crate) enum Command {
    /// A request from the application.
    Submit(Box<Submission>),
    /// An agent of this node refuses what a request is about.
    Refused(InstanceId),
    /// A protocol message from a peer.
    Message { instance: InstanceId, message: Early },
    /// The stock's answer to an instance that had to wait for it.
    Supply { instance: InstanceId, supply: Supply },
    /// A peer begins to fill the stocks of a key.
    Announced { from: NodeId, instance: InstanceId, announcement: Announcement },
    /// A peer asks for the messages that this node sent in an instance.
    Resend { from: NodeId, instance: InstanceId },
    /// A caller wants to wait for the end of an instance.
    Ending(InstanceId, oneshot::Sender<Option<Ending>>),
    /// A caller asks for the state of an instance.
    Status(InstanceId, oneshot::Sender<Option<InstanceSnapshot>>),
    /// A caller wants to follow an instance.
    Watch(InstanceId, oneshot::Sender<Option<watch::Receiver<InstanceSnapshot>>>),
    /// The entries of a key have changed.
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

impl Command {
    /// How long a request has waited until now; nothing for what is not timed, or not wanted any more.
    pub(crate) fn waited(&self) -> time::Duration {
        match self {
            Self::Submit(submission) if !submission.reply.is_closed() => submission.submitted.elapsed(),
            _ => time::Duration::ZERO,
        }
    }
}

/// A computation and the randomness that it is given.
pub(crate) type Computation = Box<dyn FnOnce(&mut dyn CryptoRng) + Send>;

/// A request on its way to its shard.
pub(crate) struct Submission {
    pub(crate) id: InstanceId,
    pub(crate) key: Arc<KeyEntry>,
    /// The generation of the key table when the key was looked up.
    pub(crate) generation: u64,
    pub(crate) asked: Asked,
    /// The client on whose account it runs, if any.
    pub(crate) asker: Option<Asker>,
    /// When the orchestrator was asked.
    pub(crate) submitted: time::Instant,
    /// Its place in the queue of requests.
    pub(crate) queued: Permit,
    /// Its part of the bytes that may wait or run.
    pub(crate) bytes: Permit,
    /// Whether the reply may wait until the instance ends, because the caller waits for that.
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

/// The id of a request's instance, and the instance's end.
pub(crate) type Taken = (InstanceId, Ending);

/// The sender for the answer to a request.
pub(crate) type Reply = oneshot::Sender<Result<Taken, SubmitError>>;
