//! From the network to the shards.

use std::sync::Arc;

use theta_network::Inbound;
use theta_rounds::PartyId;
use tokio::sync::mpsc;

use super::{backlog::Early, command::Command, envelope::Content, shared::Shared};
use crate::{Culprit, InstanceId};

/// Messages taken from the network at once.
const BATCH: usize = 64;

/// The inboxes of all shards.
pub(crate) type Shards = Arc<[mpsc::Sender<Command>]>;

/// The shard that an instance belongs to.
pub(crate) fn shard_of<'a>(shards: &'a Shards, id: &InstanceId) -> Option<&'a mpsc::Sender<Command>> {
    let [first, second, ..] = id.0;
    let place = usize::from(u16::from_be_bytes([first, second])).checked_rem(shards.len())?;
    shards.get(place)
}

/// Brings every message to its shard. When a shard's inbox is full it waits, and so, through the transport, do the senders.
/// Ends with the network or with the shards.
pub(crate) async fn route(mut inbound: mpsc::Receiver<Inbound>, shards: Shards, shared: Arc<Shared>) {
    let mut batch = Vec::with_capacity(BATCH);
    while inbound.recv_many(&mut batch, BATCH).await > 0 {
        for Inbound { from, bytes } in batch.drain(..) {
            let Ok(from) = PartyId::try_from(from.get()) else { continue };
            let delivered = match Content::decode(bytes) {
                Ok(Content::Message { instance, slot, channel, payload }) => {
                    let message = Early { from, slot, channel, payload };
                    deliver(&shards, &instance, Command::Message { instance, message }).await
                }
                Ok(Content::Resend { instance }) => {
                    deliver(&shards, &instance, Command::Resend { from, instance }).await
                }
                Err(error) => {
                    let name = error.name();
                    let culprit = Culprit { party: from, misbehaviour: error.to_string(), instance: InstanceId::NONE };
                    shared.blame(culprit, name);
                    Some(())
                }
            };
            if delivered.is_none() {
                return;
            }
        }
    }
}

/// `None` if the shard is gone.
async fn deliver(shards: &Shards, id: &InstanceId, command: Command) -> Option<()> {
    shard_of(shards, id)?.send(command).await.ok()
}
