//! How items and questions travel.

use core::convert::Infallible;

use bytes::Bytes;
use theta_rounds::{Channel, Effect, Recipient, Slot};

use super::{Effects, ITEMS, SUMMARY};
use crate::bulletin_board::Item;
use crate::evidence::CeremonyEvidence;
use crate::outcome::Outcome;
use crate::wellformed::MESSAGE_BYTES;

/// How messages travel: to all, or to the one that asked.
pub(super) const fn channel_of(slot: Slot) -> Option<Channel> {
    match slot {
        ITEMS | SUMMARY => Some(Channel::Broadcast),
        _ => None,
    }
}

pub(super) fn effect(to: Recipient, slot: Slot, payload: Vec<u8>) -> Effect<Outcome, CeremonyEvidence, Infallible> {
    Effect::Send { to, slot, channel: Channel::Broadcast, payload: Bytes::from(payload) }
}

pub(super) fn send(to: Recipient, items: &[Item], out: &mut Effects) {
    let sent = messages(items).into_iter();
    out.extend(sent.map(|payload| Effect::Send { to, slot: ITEMS, channel: Channel::Broadcast, payload }));
}

/// Items in messages, few enough in each.
pub(super) fn messages(items: &[Item]) -> Vec<Bytes> {
    let (mut messages, mut payload) = (Vec::new(), Vec::new());
    for item in items {
        let len = payload.len();
        item.encode_into(&mut payload);
        if payload.len() > MESSAGE_BYTES && len > 0 {
            let rest = payload.split_off(len);
            messages.push(Bytes::from(core::mem::replace(&mut payload, rest)));
        }
    }
    if !payload.is_empty() {
        messages.push(Bytes::from(payload));
    }
    messages
}
