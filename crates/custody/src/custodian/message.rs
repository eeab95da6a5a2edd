//! The messages between custodians.

use bytes::Bytes;
use theta_rounds::Malformed;
use theta_store::{Incarnation, Lineage};

use crate::codec::{Reader, Writer};

/// What a ceremony is called: the digest of its request, which begins one ceremony at most; in messages, the id of its plan.
pub(super) type Id = [u8; 32];

/// The version of the encoding.
const FORMAT: u8 = 1;

/// The two kinds of messages of a ceremony.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Items,
    Summary,
}

/// A message between two custodians.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A message of a ceremony, not decoded.
    Ceremony { id: Id, part: Part, payload: Bytes },
    /// A greeting: the sender's store, and what it remembers of the receiver's.
    Hello(Hello),
    /// The links from what the receiver remembers of the sender's store to its present opening.
    Lineage(Lineage),
    /// The sender's operator confirms its store, in place of what the receiver remembers or has seen.
    Meant { claim: Incarnation, now: Incarnation },
    /// The present incarnation of the sender's store.
    Now(Incarnation),
    /// A message of the sender's replica of the ledger, unread.
    Ledger(Bytes),
}

/// A greeting, which a node sends to each peer at intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// The incarnation of the sender's store.
    pub(super) incarnation: Incarnation,
    /// What the sender remembers of the receiver's store.
    pub(super) remembered: Option<Incarnation>,
    /// The fork that the sender has seen of the receiver's store.
    pub(super) fork: Option<Incarnation>,
}

impl Message {
    pub(super) fn encode(&self) -> Bytes {
        let writer = Writer::new(FORMAT);
        let writer = match self {
            Self::Ceremony { id, part, payload } => {
                writer.u8(if *part == Part::Items { 1 } else { 2 }).raw(id).raw(payload)
            }
            Self::Hello(Hello { incarnation, remembered, fork }) => {
                let writer = writer.u8(3).raw(&incarnation.encode());
                let writer = writer.option(remembered.as_ref(), |writer, seen| writer.raw(&seen.encode()));
                writer.option(fork.as_ref(), |writer, seen| writer.raw(&seen.encode()))
            }
            Self::Lineage(lineage) => writer.u8(6).raw(&lineage.encode()),
            Self::Meant { claim, now } => writer.u8(7).raw(&claim.encode()).raw(&now.encode()),
            Self::Now(now) => writer.u8(8).raw(&now.encode()),
            Self::Ledger(bytes) => writer.u8(9).raw(bytes),
        };
        writer.finish().into()
    }

    pub(super) fn decode(bytes: &Bytes) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != FORMAT {
            return Err(Malformed("a message of another release"));
        }
        let message = match reader.u8()? {
            tag @ (1 | 2) => {
                let (id, rest) = (reader.array()?, reader.rest());
                let part = if tag == 1 { Part::Items } else { Part::Summary };
                Self::Ceremony { id, part, payload: bytes.slice_ref(rest) }
            }
            3 => {
                let now = Incarnation::read(&mut reader)?;
                let (remembered, fork) = (reader.option(Incarnation::read)?, reader.option(Incarnation::read)?);
                Self::Hello(Hello { incarnation: now, remembered, fork })
            }
            6 => Self::Lineage(Lineage::decode(reader.rest()).ok_or(Malformed("no lineage"))?),
            7 => Self::Meant { claim: Incarnation::read(&mut reader)?, now: Incarnation::read(&mut reader)? },
            8 => Self::Now(Incarnation::read(&mut reader)?),
            9 => return Ok(Self::Ledger(bytes.slice_ref(reader.rest()))),
            _ => return Err(Malformed("no such message")),
        };
        Ok(reader.end(message)?)
    }
}

/// The message with the present incarnation of a node's store. The node sends it right after it has decided something
/// once and for all, and before it acts on that, so that a peer that sees the result has seen this.
#[must_use]
pub fn announcement(now: &Incarnation) -> Bytes {
    Message::Now(*now).encode()
}

/// What a message between custodians is about, by its first bytes: for figures.
#[must_use]
pub fn message_subject(bytes: &[u8]) -> &'static str {
    match (bytes.get(1), bytes.get(3)) {
        (Some(1), _) => "ceremony statements",
        (Some(2), _) => "ceremony questions",
        (Some(3 | 6..=8), _) => "stores",
        (Some(9), Some(1)) => "ledger statuses",
        (Some(9), Some(2 | 7)) => "ledger votes",
        (Some(9), Some(3 | 4)) => "ledger entries",
        (Some(9), _) => "ledger candidates",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use theta_store::{Opening, StoreId};

    use super::*;

    fn messages() -> Vec<Message> {
        let opening = Opening { generation: 3, session: [7; 16], opened_at: 20, link: [8; 32] };
        let incarnation = Incarnation { store_id: StoreId([1; 16]), opening, sequence: 25 };
        let hello = |remembered| Message::Hello(Hello { incarnation, remembered, fork: remembered });
        vec![
            Message::Ceremony { id: [2; 32], part: Part::Items, payload: Bytes::from_static(b"items") },
            Message::Ceremony { id: [2; 32], part: Part::Summary, payload: Bytes::new() },
            hello(None),
            hello(Some(incarnation)),
            Message::Lineage(Lineage::decode(&[7; 32 + 88 + 8 + 32 + 24]).unwrap()),
            Message::Meant { claim: incarnation, now: incarnation },
            Message::Now(incarnation),
            Message::Ledger(Bytes::from_static(b"votes")),
        ]
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        for message in messages() {
            assert_eq!(Message::decode(&message.encode()).as_ref(), Ok(&message));
        }
    }

    #[test]
    fn garbage_is_refused() {
        for message in messages() {
            let bytes = message.encode();
            for len in 0..bytes.len() {
                if let Ok(other) = Message::decode(&bytes.slice(..len)) {
                    assert_eq!(other.encode(), bytes.slice(..len));
                }
            }
        }
        for wrong in [&[][..], &[0, 7], &[2, 7], &[1, 0], &[1, 10], &[1, 4, 1], &[1, 3, 1]] {
            assert!(Message::decode(&Bytes::copy_from_slice(wrong)).is_err(), "{wrong:?}");
        }
    }
}
