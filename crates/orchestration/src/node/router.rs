//! Carries messages from the network to the shards, the custodian and the certifier.

use std::sync::Arc;

use bytes::Bytes;
use prometheus_client::metrics::counter::Counter;
use theta_names::NodeId;
use theta_network::Inbound;
use tokio::sync::mpsc;

use super::{
    custody::Order,
    mail::{Mail, MailLimits, Put},
    slots::SlotsInbox,
};
use crate::{
    Culprit, InstanceId, OrchestratorConfig,
    instances::{Command, Content, Early, Shared},
};

/// Shorter payloads may be views into a larger buffer of the network. In bytes.
const LONG: usize = 64 << 10;
/// The most messages that are taken from the network at once.
const BATCH: usize = 64;

/// The inboxes of all shards.
pub(crate) type Inboxes = Arc<[mpsc::Sender<Command>]>;

/// The waiting messages for each shard.
pub(crate) type ShardMail = Arc<[Mail<Command>]>;

/// The waiting messages for the custodian.
pub(crate) type CustodyMail = Arc<Mail<Order>>;

/// The most bytes of one peer's messages that wait for the custodian: ceremonies of large groups take some megabytes
/// from each.
const CUSTODY_BYTES: usize = 8 << 20;

/// Room for the messages of all peers to every shard: each peer has as much as in the backlog.
pub(crate) fn shard_mail(config: &OrchestratorConfig) -> ShardMail {
    let shards = config.thread_count();
    let share = |limit: usize| limit.div_ceil(shards);
    let limits =
        MailLimits { messages: share(config.backlog_messages_per_peer), bytes: share(config.backlog_bytes_per_peer) };
    (0..shards).map(|_| Mail::new(limits)).collect()
}

/// Room for the messages of all peers to the custodian.
pub(crate) fn custody_mail(config: &OrchestratorConfig) -> CustodyMail {
    Arc::new(Mail::new(MailLimits { messages: config.custody_inbox, bytes: CUSTODY_BYTES }))
}

/// A message with its destination.
pub(crate) enum Sorted {
    /// The shard of an instance.
    Shard(InstanceId, Command),
    /// The custodian.
    Custodian { from: NodeId, bytes: Bytes },
    /// The certifier.
    Slots { from: NodeId, bytes: Bytes },
}

/// The number of an instance's shard, among so many.
pub(crate) fn place_of(id: &InstanceId, shards: usize) -> Option<usize> {
    let [first, second, ..] = id.0;
    usize::from(u16::from_be_bytes([first, second])).checked_rem(shards)
}

/// The inbox of an instance's shard.
pub(crate) fn inbox_of<'a>(inboxes: &'a Inboxes, id: &InstanceId) -> Option<&'a mpsc::Sender<Command>> {
    inboxes.get(place_of(id, inboxes.len())?)
}

/// Decodes a message. `None` if it is no envelope; then its sender has been recorded as a culprit.
///
/// This comes before the turns in which peers are served, so it takes a short time whatever the message is: reading takes as long for long
/// messages as for short ones, and of a peer that goes on sending what is no envelope the messages are counted, and no more.
pub(crate) fn sort(inbound: Inbound, shared: &Shared) -> Option<Sorted> {
    let (from, channel) = (inbound.from, inbound.channel);
    match Content::decode(inbound.bytes) {
        Ok(Content::Message { instance, slot, payload }) => {
            let message = Early { from, slot, channel, payload: own(payload) };
            Some(Sorted::Shard(instance, Command::Message { instance, message }))
        }
        Ok(Content::Announcement { instance, announcement }) => {
            Some(Sorted::Shard(instance, Command::Announced { from, instance, announcement }))
        }
        Ok(Content::Resend { instance }) => Some(Sorted::Shard(instance, Command::Resend { from, instance })),
        Ok(Content::Custody { payload }) => Some(Sorted::Custodian { from, bytes: own(payload) }),
        Ok(Content::Slots { payload }) => Some(Sorted::Slots { from, bytes: own(payload) }),
        Err(error) => {
            shared.blame_for_noise(&Culprit { party: from, offence: error.into(), instance: InstanceId::NONE });
            None
        }
    }
}

/// Gives a short payload a buffer of its own: it is a view into all that was read with it, and would keep that alive
/// while it waits, far beyond what is counted. Long payloads have their own buffers.
fn own(payload: Bytes) -> Bytes {
    if payload.len() < LONG { Bytes::copy_from_slice(&payload) } else { payload }
}

/// Notifies a thread that messages wait, unless it has been. Returns `false` if the thread has stopped.
fn knock<T>(put: Put, inbox: &mpsc::Sender<T>, mail: T, refused: &Counter) -> bool {
    match put {
        Put::Waits => true,
        // A thread whose inbox is full looks at its messages before it sleeps.
        Put::Tell => !matches!(inbox.try_send(mail), Err(mpsc::error::TrySendError::Closed(_))),
        Put::Refused => {
            refused.inc();
            true
        }
    }
}

/// The destinations of messages.
pub(crate) struct Ways {
    pub(crate) inboxes: Inboxes,
    pub(crate) shard_mail: ShardMail,
    pub(crate) custodian: Option<(mpsc::Sender<Order>, CustodyMail)>,
    pub(crate) slots: Option<SlotsInbox>,
}

/// Carries every message to its destination without waiting: each peer has its own room at each thread, and messages
/// without room are dropped and counted. Shares are asked for again; custodians and certifiers send theirs again. Ends
/// when the network or the shards stop.
pub(crate) async fn route(
    mut inbound: mpsc::Receiver<Inbound>,
    Ways { inboxes, shard_mail, custodian, slots }: Ways,
    shared: Arc<Shared>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    while inbound.recv_many(&mut batch, BATCH).await > 0 {
        for message in batch.drain(..) {
            let (from, bytes) = (message.from, message.bytes.len());
            let Some(sorted) = sort(message, &shared) else { continue };
            let metrics = &shared.metrics;
            let open = match sorted {
                Sorted::Shard(id, command) => {
                    let place = place_of(&id, inboxes.len());
                    let shard = place.and_then(|place| Some((inboxes.get(place)?, shard_mail.get(place)?)));
                    let Some((inbox, mail)) = shard else { return };
                    knock(mail.put(from, bytes, command), inbox, Command::Mail, &metrics.mail_dropped)
                }
                Sorted::Custodian { from, bytes: payload } => custodian.as_ref().is_none_or(|(inbox, mail)| {
                    let put = mail.put(from, bytes, Order::Message { from, bytes: payload });
                    // If the custodian has stopped, requests still go on.
                    knock(put, inbox, Order::Mail, &metrics.custody_dropped);
                    true
                }),
                Sorted::Slots { from, bytes } => {
                    if slots.as_ref().is_some_and(|slots| !slots.post(from, bytes)) {
                        metrics.slots_dropped.inc();
                    }
                    true
                }
            };
            if !open {
                return;
            }
        }
        // An endless stream of messages leaves the other tasks of this thread a turn.
        tokio::task::yield_now().await;
    }
}
