//! What a shard is told.

use std::{sync::Arc, time};

use rand_core::CryptoRng;
use theta_rounds::PartyId;
use theta_schemes::StatementBytes;
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use super::{backlog::Early, ending::Ending};
use crate::{InstanceId, InstanceSnapshot, KeyEntry, Seed, SubmitError, quota::Permit};

/// What a shard is told. Time comes as ticks in the same queue, so that a shard that is behind does not take its own delay
/// for the silence of others.
pub(crate) enum Command {
    /// A request from the application.
    Submit(Box<Submission>),
    /// A protocol message from a peer.
    Message { instance: InstanceId, message: Early },
    /// A peer asks for what was sent in an instance.
    Resend { from: PartyId, instance: InstanceId },
    /// Somebody wants to wait for an instance.
    Ending(InstanceId, oneshot::Sender<Option<Ending>>),
    /// Somebody wants to know how an instance is.
    Status(InstanceId, oneshot::Sender<Option<InstanceSnapshot>>),
    /// Somebody wants to see how an instance goes.
    Watch(InstanceId, oneshot::Sender<Option<watch::Receiver<InstanceSnapshot>>>),
    /// A computation that needs a CPU.
    Compute(Computation),
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
    pub(crate) statement: StatementBytes,
    pub(crate) seed: Option<Seed>,
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

/// The way back to whoever sent a request.
pub(crate) type Reply = oneshot::Sender<Result<Ending, SubmitError>>;
