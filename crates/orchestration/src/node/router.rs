//! From the network to the shards and the custodian.

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

/// Payloads that the network reads in pieces are shorter.
const LONG: usize = 64 << 10;
/// Messages taken from the network at once.
const BATCH: usize = 64;

/// The inboxes of all shards.
pub(crate) type Inboxes = Arc<[mpsc::Sender<Command>]>;

/// What waits for each of the shards.
pub(crate) type ShardMail = Arc<[Mail<Command>]>;

/// What waits for the custodian.
pub(crate) type CustodyMail = Arc<Mail<Order>>;

/// Bytes of one peer's messages that wait for the custodian: ceremonies of large groups take some megabytes from each.
const CUSTODY_BYTES: usize = 8 << 20;

/// Room for the messages of all peers to every shard: each peer has as much of it as it has in the backlog.
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

/// Whom a message is for.
pub(crate) enum Sorted {
    /// The shard of an instance.
    Shard(InstanceId, Command),
    /// The custodian.
    Custodian { from: NodeId, bytes: Bytes },
    /// The certifier.
    Slots { from: NodeId, bytes: Bytes },
}

/// The place of the shard that an instance belongs to, among so many.
pub(crate) fn place_of(id: &InstanceId, shards: usize) -> Option<usize> {
    let [first, second, ..] = id.0;
    usize::from(u16::from_be_bytes([first, second])).checked_rem(shards)
}

/// The inbox of an instance's shard.
pub(crate) fn inbox_of<'a>(inboxes: &'a Inboxes, id: &InstanceId) -> Option<&'a mpsc::Sender<Command>> {
    inboxes.get(place_of(id, inboxes.len())?)
}

/// Reads a message. `None` if it is good for nothing; then its sender has been taken down.
pub(crate) fn sort(inbound: Inbound, shared: &Shared) -> Option<Sorted> {
    let (from, channel) = (inbound.from, inbound.channel);
    match Content::decode(inbound.bytes) {
        Ok(Content::Message { instance, slot, payload }) => {
            let message = Early { from, slot, channel, payload: own(payload) };
            Some(Sorted::Shard(instance, Command::Message { instance, message }))
        }
        Ok(Content::Resend { instance }) => Some(Sorted::Shard(instance, Command::Resend { from, instance })),
        Ok(Content::Custody { payload }) => Some(Sorted::Custodian { from, bytes: own(payload) }),
        Ok(Content::Slots { payload }) => Some(Sorted::Slots { from, bytes: own(payload) }),
        Err(error) => {
            shared.blame(Culprit { party: from, misdeed: error.into(), instance: InstanceId::NONE });
            None
        }
    }
}

/// A payload by itself. What is short is a view into all that was read with it: as long as it waits, it would keep that alive,
/// far beyond what is counted. What is long has a buffer of its own.
fn own(payload: Bytes) -> Bytes {
    if payload.len() < LONG { Bytes::copy_from_slice(&payload) } else { payload }
}

/// What a thread is told that has mail; it need not be told twice.
fn knock<T>(put: Put, inbox: &mpsc::Sender<T>, mail: T, refused: &Counter) -> bool {
    match put {
        Put::Waits => true,
        // A thread whose inbox is full looks at its mail before it sleeps.
        Put::Tell => !matches!(inbox.try_send(mail), Err(mpsc::error::TrySendError::Closed(_))),
        Put::Refused => {
            refused.inc();
            true
        }
    }
}

/// Where messages go.
pub(crate) struct Ways {
    pub(crate) inboxes: Inboxes,
    pub(crate) shard_mail: ShardMail,
    pub(crate) custodian: Option<(mpsc::Sender<Order>, CustodyMail)>,
    pub(crate) slots: Option<SlotsInbox>,
}

/// Brings every message to where it belongs, and waits for nobody: each peer has room of its own at each thread, and what does
/// not fit in is dropped and counted. Shares are asked for again, ceremonies and certifiers say what they have said again. Ends
/// with the network or with the shards.
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
                    // A custodian that is gone takes no request with it.
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
        // What comes without end leaves the other tasks of this thread a turn.
        tokio::task::yield_now().await;
    }
}
