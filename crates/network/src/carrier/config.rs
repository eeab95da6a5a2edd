//! Bounds and times of nodes that speak through a carrier.

use core::time::Duration;

/// The longest frame that any node makes. Each takes such frames, however short its own are, so that nodes may differ.
pub const MOST_FRAME_BYTES: usize = 1 << 20;
/// The smallest frames that a session works with, and the largest that are worth it.
const FRAME_BYTES: core::ops::RangeInclusive<usize> = 1_200..=MOST_FRAME_BYTES;
const MIB: usize = 1 << 20;

/// Bounds and times. Each peer has its own queues; the inbox is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarrierLimits {
    /// Largest message, in bytes, sent or received.
    pub message_bytes: usize,
    /// Messages that may wait for one peer's acknowledgement.
    pub queue_messages: usize,
    /// Bytes that may wait for one peer's acknowledgement; a message is always taken into an empty queue.
    pub queue_bytes: usize,
    /// Messages received and not yet read by the application, of all peers together.
    pub inbound_messages: usize,
    /// Bytes of received messages over 64 KiB, per peer, that the application has not dropped yet.
    pub inbound_large_bytes: usize,
    /// The largest frame that this node makes, 1,200 bytes to 1 MiB. What others make may be larger, up to 1 MiB.
    pub frame_bytes: usize,
    /// Frames in the name of one peer that wait to be opened; what comes beyond is lost.
    pub peer_frames: usize,
    /// Steps of handshakes a second, for all peers together: what strangers can make this node compute, with a key on P-256 or Ed25519.
    /// With keys that cost more to sign with they are fewer.
    pub handshakes_per_second: u32,
    /// A sign of life is asked for after this silence.
    pub keepalive: Duration,
    /// A peer is called anew after this silence of it.
    pub dead_after: Duration,
    /// First pause before calling again; doubles up to `call_max`.
    pub call_min: Duration,
    /// Longest pause before calling again.
    pub call_max: Duration,
    /// A session is renewed after this time.
    pub renew_after: Duration,
}

impl Default for CarrierLimits {
    fn default() -> Self {
        Self {
            message_bytes: 16 * MIB + MIB / 16,
            queue_messages: 65_536,
            queue_bytes: 64 * MIB,
            inbound_messages: 4096,
            inbound_large_bytes: 64 * MIB,
            frame_bytes: 32 << 10,
            peer_frames: 256,
            handshakes_per_second: 1_000,
            keepalive: Duration::from_millis(2500),
            dead_after: Duration::from_secs(10),
            call_min: Duration::from_millis(200),
            call_max: Duration::from_secs(2),
            renew_after: Duration::from_secs(600),
        }
    }
}

/// A limit that is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the limit {0} is out of range")]
pub struct BadLimit(pub(super) &'static str);

impl CarrierLimits {
    pub(super) fn check(&self) -> Result<(), BadLimit> {
        let permits = 1..=tokio::sync::Semaphore::MAX_PERMITS;
        let checks = [
            ("message_bytes", (1..=1024 * MIB).contains(&self.message_bytes)),
            ("queue_messages", self.queue_messages > 0),
            ("queue_bytes", self.queue_bytes > 0),
            ("inbound_messages", permits.contains(&self.inbound_messages)),
            ("inbound_large_bytes", permits.contains(&self.inbound_large_bytes)),
            ("frame_bytes", FRAME_BYTES.contains(&self.frame_bytes)),
            ("peer_frames", permits.contains(&self.peer_frames)),
            ("handshakes_per_second", self.handshakes_per_second > 1),
            ("keepalive", !self.keepalive.is_zero()),
            ("dead_after", self.dead_after > self.keepalive),
            ("call_min", !self.call_min.is_zero()),
            ("call_max", self.call_max >= self.call_min),
            ("renew_after", self.renew_after > self.dead_after),
        ];
        checks.into_iter().find(|(_, holds)| !holds).map_or(Ok(()), |(name, _)| Err(BadLimit(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_in_range_and_nonsense_is_named() {
        assert_eq!(CarrierLimits::default().check(), Ok(()));
        let small = CarrierLimits { frame_bytes: 1_199, ..CarrierLimits::default() };
        assert_eq!(small.check(), Err(BadLimit("frame_bytes")));
        let short = CarrierLimits { renew_after: Duration::from_secs(1), ..CarrierLimits::default() };
        assert_eq!(short.check().unwrap_err().to_string(), "the limit renew_after is out of range");
    }
}
