//! gossipsub as this crate uses it: one topic, messages checked before they are passed on, neighbours judged by what they pass on.

use std::{
    collections::{HashMap, HashSet},
    io,
    time::Duration,
};

use libp2p_gossipsub::{
    Behaviour, ConfigBuilder, DataTransform, IdentTopic, Message, MessageAuthenticity, MessageId, PeerScoreParams,
    PeerScoreThresholds, RawMessage, TopicHash, TopicScoreParams, ValidationMode, WhitelistSubscriptionFilter,
};
use sha2::{Digest, Sha256};

use crate::{
    bundle::{HEADERS_BYTES, SIGNED_BYTES},
    config::{Degree, GossipError, GossipLimits},
};

pub(crate) type Mesh = Behaviour<OneTopic, WhitelistSubscriptionFilter>;

/// Refuses messages of other topics, before the library remembers them: else whoever passes on somebody's message under another topic
/// first would have made it one that has come already.
#[derive(Clone, Debug)]
pub(crate) struct OneTopic(TopicHash);

impl DataTransform for OneTopic {
    fn inbound_transform(&self, raw: RawMessage) -> io::Result<Message> {
        if raw.topic != self.0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let RawMessage { source, data, sequence_number, topic, .. } = raw;
        Ok(Message { source, data, sequence_number, topic })
    }

    fn outbound_transform(&self, _: &TopicHash, data: Vec<u8>) -> io::Result<Vec<u8>> {
        Ok(data)
    }
}

/// How long a message is remembered as one that has come. Older ones are known by their authors' numbers.
const REMEMBERED_FOR: Duration = Duration::from_secs(30);
/// For how long a neighbour that was let go is not asked again.
const PRUNE_BACKOFF: Duration = Duration::from_secs(10);
/// Heartbeats for which messages are kept for neighbours that missed them, and in which they are announced.
const KEPT_HEARTBEATS: (usize, usize) = (8, 3);
/// What the library's bound has to leave room for beside a message: it compares all bytes that it has read and not taken yet (`gossipsub` 0.50.1,
/// `protocol.rs`), and it reads 8 KiB at once. Without this a stream ends when a second message comes close behind a long one.
const READ_AHEAD_BYTES: usize = 16 << 10;

/// The topic of a group.
pub(crate) fn topic(group: &str) -> IdentTopic {
    let digest: [u8; 32] = Sha256::digest(group.as_bytes()).into();
    let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    IdentTopic::new(format!("theta-gossip/1/{name}"))
}

/// The longest message: a bundle, or a bundle of one long frame, and its signature.
pub(crate) fn message_bytes(limits: &GossipLimits, frame_bytes: usize) -> usize {
    limits.bundle_bytes.max(frame_bytes.saturating_add(HEADERS_BYTES)).saturating_add(SIGNED_BYTES)
}

/// The id of a message: its topic and content alone decide, so that two that are equal are one, whoever passes them on.
fn id_of(message: &Message) -> MessageId {
    let mut hasher = Sha256::new_with_prefix(message.topic.as_str());
    hasher.update([0]);
    hasher.update(&message.data);
    let digest: [u8; 32] = hasher.finalize().into();
    MessageId::from(&digest[..20])
}

/// Joins a group of n.
pub(crate) fn join(
    topic: &IdentTopic,
    n: usize,
    limits: &GossipLimits,
    frame_bytes: usize,
) -> Result<Mesh, GossipError> {
    let degree = Degree::of(n);
    let (history, announced) = KEPT_HEARTBEATS;
    let config = ConfigBuilder::default()
        .mesh_n(degree.aim)
        .mesh_n_low(degree.low)
        .mesh_n_high(degree.high)
        .mesh_outbound_min(degree.low.min(degree.aim / 2).min(2))
        .gossip_lazy(degree.aim)
        .heartbeat_interval(limits.heartbeat)
        .heartbeat_initial_delay(limits.heartbeat / 4)
        .prune_backoff(PRUNE_BACKOFF)
        .unsubscribe_backoff(PRUNE_BACKOFF)
        .duplicate_cache_time(REMEMBERED_FOR)
        .history_length(history)
        .history_gossip(announced)
        .max_transmit_size(message_bytes(limits, frame_bytes).saturating_add(READ_AHEAD_BYTES))
        // Nodes of this crate say one at a time. Many in one would cost the reader more than the bytes that it counts.
        .max_publish_messages(1)
        .connection_handler_queue_len(limits.neighbour_messages)
        .validation_mode(ValidationMode::Anonymous)
        .validate_messages()
        .message_id_fn(id_of)
        .build()
        .map_err(refused)?;
    let only = WhitelistSubscriptionFilter(HashSet::from([topic.hash()]));
    let mut mesh = Behaviour::new_with_subscription_filter_and_transform(
        MessageAuthenticity::Anonymous,
        config,
        only,
        OneTopic(topic.hash()),
    )
    .map_err(refused)?;
    mesh.with_peer_score(score(topic.hash()), thresholds()).map_err(refused)?;
    mesh.subscribe(topic).map_err(refused)?;
    Ok(mesh)
}

fn refused(error: impl std::fmt::Display) -> GossipError {
    GossipError::Gossipsub(error.to_string())
}

/// A neighbour's score falls by messages that their authors have not signed, with the square of their number, and by asking for more than it may. It does not fall by
/// silence, or by being slow: a group may have nothing to say.
fn score(topic: TopicHash) -> PeerScoreParams {
    let of_topic = TopicScoreParams {
        topic_weight: 1.0,
        time_in_mesh_weight: 0.0,
        first_message_deliveries_weight: 0.0,
        mesh_message_deliveries_weight: 0.0,
        mesh_failure_penalty_weight: 0.0,
        invalid_message_deliveries_weight: -1.0,
        invalid_message_deliveries_decay: 0.9,
        ..TopicScoreParams::default()
    };
    PeerScoreParams {
        topics: HashMap::from([(topic, of_topic)]),
        app_specific_weight: 0.0,
        // Nodes may share an address.
        ip_colocation_factor_weight: 0.0,
        behaviour_penalty_threshold: 6.0,
        slow_peer_weight: 0.0,
        ..PeerScoreParams::default()
    }
}

/// From ten false messages within a few seconds on nothing is announced to a neighbour; with some thirty it is heard no more. Before that this crate leaves it.
fn thresholds() -> PeerScoreThresholds {
    PeerScoreThresholds {
        gossip_threshold: -100.0,
        publish_threshold: -500.0,
        graylist_threshold: -1_000.0,
        accept_px_threshold: 0.0,
        opportunistic_graft_threshold: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody's message under another topic is refused before anything is kept of it, and is another message.
    #[test]
    fn a_message_is_of_its_topic() {
        let (own, other) = (topic("group").hash(), topic("another").hash());
        let transform = OneTopic(own.clone());
        let raw = |topic: &TopicHash| RawMessage {
            source: None,
            data: vec![7; 40],
            sequence_number: None,
            topic: topic.clone(),
            signature: None,
            key: None,
            validated: false,
        };
        let message = transform.inbound_transform(raw(&own)).unwrap();
        assert!(transform.inbound_transform(raw(&other)).is_err());
        assert_ne!(id_of(&message), id_of(&Message { topic: other, ..message.clone() }));
        assert_ne!(id_of(&message), id_of(&Message { data: vec![8; 40], ..message.clone() }));
    }

    #[test]
    fn groups_of_all_sizes_can_be_joined() {
        let limits = GossipLimits::default();
        for n in [1, 2, 3, 4, 7, 31, 1_000, 60_000] {
            join(&topic("group"), n, &limits, 32 << 10).unwrap();
        }
        assert_ne!(topic("group").hash(), topic("another").hash());
    }

    #[test]
    fn equal_messages_have_equal_ids() {
        let message = |data: &[u8], number| Message {
            source: None,
            data: data.to_vec(),
            sequence_number: number,
            topic: topic("group").hash(),
        };
        assert_eq!(id_of(&message(b"one", None)), id_of(&message(b"one", Some(7))));
        assert_ne!(id_of(&message(b"one", None)), id_of(&message(b"two", None)));
    }
}
