//! From the network to the shards and the custodian.

use std::sync::Arc;

use bytes::Bytes;
use theta_network::Inbound;
use theta_rounds::PartyId;
use tokio::sync::mpsc;

use super::{custody::Order, slots::SlotsInbox};
use crate::{
    Culprit, InstanceId,
    instances::{Command, Content, Early, Shared},
};

/// Messages taken from the network at once.
const BATCH: usize = 64;

/// The inboxes of all shards.
pub(crate) type Inboxes = Arc<[mpsc::Sender<Command>]>;

/// Whom a message is for.
pub(crate) enum Sorted {
    /// The shard of an instance.
    Shard(InstanceId, Command),
    /// The custodian.
    Custodian { from: PartyId, bytes: Bytes },
    /// The certifier.
    Slots { from: PartyId, bytes: Bytes },
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
    let from = PartyId::try_from(inbound.from.get()).ok()?;
    match Content::decode(inbound.bytes) {
        Ok(Content::Message { instance, slot, channel, payload }) => {
            let message = Early { from, slot, channel, payload };
            Some(Sorted::Shard(instance, Command::Message { instance, message }))
        }
        Ok(Content::Resend { instance }) => Some(Sorted::Shard(instance, Command::Resend { from, instance })),
        Ok(Content::Custody { payload }) => Some(Sorted::Custodian { from, bytes: payload }),
        Ok(Content::Slots { payload }) => Some(Sorted::Slots { from, bytes: payload }),
        Err(error) => {
            let culprit = Culprit { party: from, misbehaviour: error.to_string(), instance: InstanceId::NONE };
            shared.blame(culprit, error.name());
            None
        }
    }
}

/// Brings every message to its shard. When a shard's inbox is full it waits, and so, through the transport, do the senders.
/// A custodian or certifier whose inbox is full hears the same again later: they do not hold requests up. Ends with the network or
/// with the shards.
pub(crate) async fn route(
    mut inbound: mpsc::Receiver<Inbound>,
    inboxes: Inboxes,
    custodian: Option<mpsc::Sender<Order>>,
    slots: Option<SlotsInbox>,
    shared: Arc<Shared>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    while inbound.recv_many(&mut batch, BATCH).await > 0 {
        for message in batch.drain(..) {
            match sort(message, &shared) {
                Some(Sorted::Shard(id, command)) => {
                    let Some(inbox) = inbox_of(&inboxes, &id) else { return };
                    if inbox.send(command).await.is_err() {
                        return;
                    }
                }
                Some(Sorted::Custodian { from, bytes }) => {
                    if let Some(custodian) = &custodian
                        && custodian.try_send(Order::Message { from, bytes }).is_err()
                    {
                        shared.metrics.custody_dropped.inc();
                    }
                }
                Some(Sorted::Slots { from, bytes }) => {
                    if slots.as_ref().is_some_and(|slots| !slots.post(from, bytes)) {
                        shared.metrics.slots_dropped.inc();
                    }
                }
                None => {}
            }
        }
    }
}
