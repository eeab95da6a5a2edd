//! Envelopes between orchestrators: the parts that are read before any protocol reads the payload.
//!
//! Two kinds of messages belong to orchestration itself. They have reserved values of `kind`, and number 0. [`RESEND`], with an empty
//! payload, asks the receiver to send again what it sent to all, or to the asker, in this instance. [`ANNOUNCEMENT`] says that the sender begins to
//! make presignatures in this instance. Messages of custodians travel unread in a stream of their own, and so do promises for slots.

use bytes::Bytes;
use prost::Message as _;
use theta_names::{
    Epoch, NodeId,
    codec::{Reader, Writer},
};
use theta_rounds::{Malformed, Slot};
use theta_schemes::keys::KeyId;
use theta_wire::{
    Bounded,
    peer::{CUSTODY, Envelope, INSTANCES, SLOTS, VERSION},
};

use crate::InstanceId;

/// The `kind` of a request to send again.
const RESEND: u32 = u32::MAX;

/// The `kind` of an announcement.
const ANNOUNCEMENT: u32 = u32::MAX - 1;

/// The most fields of an envelope. There are six, and a later release may have more; without a bound 16 MiB of fields that mean nothing take a
/// receiver as long as thousands of good messages, before their sender waits for its turn.
const MOST_FIELDS: usize = 32;

/// That a holder begins to fill the stocks of presignatures of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(crate) key: KeyId,
    pub(crate) epoch: Epoch,
    /// Random: what distinguishes this filling from all others.
    pub(crate) session: [u8; 32],
}

impl Announcement {
    /// The id of the instance that `initiator` begins.
    pub(crate) fn id(&self, initiator: NodeId) -> InstanceId {
        InstanceId::filling(&self.key, self.epoch, initiator, &self.session)
    }

    fn encode(&self) -> Bytes {
        let fields = Writer::default().raw(self.key.as_bytes()).raw(&self.epoch.get().to_be_bytes()).raw(&self.session);
        fields.finish().into()
    }

    fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Reader::new(payload);
        let key = KeyId::from_bytes(fields.array()?);
        let epoch = Epoch::new(u32::from_be_bytes(fields.array()?));
        let session = fields.array()?;
        Ok(fields.end(Self { key, epoch, session })?)
    }
}

/// The content of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A protocol's message.
    Message { instance: InstanceId, slot: Slot, payload: Bytes },
    /// A request to send again what the receiver sent in this instance.
    Resend { instance: InstanceId },
    /// The sender fills stocks in this instance.
    Announcement { instance: InstanceId, announcement: Announcement },
    /// For the custodian of this node's keys.
    Custody { payload: Bytes },
    /// For the certifier of this node's slots.
    Slots { payload: Bytes },
}

/// Why bytes are not an envelope. The sender is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The bytes do not decode.
    #[error("malformed envelope: {0}")]
    Malformed(&'static str),
    /// The envelope is of another release.
    #[error("speaks peer protocol {0}, this node speaks {VERSION}: bring both to one release")]
    Version(u32),
}

impl EnvelopeError {
    /// A stable name for metrics.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed_envelope",
            Self::Version(_) => "protocol_version",
        }
    }
}

impl From<Malformed> for EnvelopeError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed.0)
    }
}

impl Content {
    /// Reads an envelope; the payload stays a view into `bytes`.
    pub(crate) fn decode(bytes: Bytes) -> Result<Self, EnvelopeError> {
        let envelope = Bounded::<Envelope, MOST_FIELDS>::decode(bytes)
            .map_err(|_| EnvelopeError::Malformed("not the fields of an envelope"))?;
        let (envelope, _) =
            envelope.whole().map_err(|_| EnvelopeError::Malformed("more fields than an envelope has"))?;
        if envelope.version != VERSION {
            return Err(EnvelopeError::Version(envelope.version));
        }
        match envelope.stream {
            INSTANCES => Self::of_instance(envelope),
            CUSTODY | SLOTS => {
                let (stream, bare) = (envelope.stream, Envelope { payload: Bytes::new(), ..envelope.clone() });
                if bare != (Envelope { version: VERSION, stream, ..Envelope::default() }) {
                    return Err(EnvelopeError::Malformed("a message of this stream has a payload and nothing else"));
                }
                let payload = envelope.payload;
                Ok(if stream == SLOTS { Self::Slots { payload } } else { Self::Custody { payload } })
            }
            _ => Err(EnvelopeError::Malformed("no stream has this number")),
        }
    }

    fn of_instance(envelope: Envelope) -> Result<Self, EnvelopeError> {
        let id = envelope.instance_id.as_ref().try_into();
        let instance = InstanceId(id.map_err(|_| EnvelopeError::Malformed("an instance id has 32 bytes"))?);
        if envelope.kind == RESEND {
            return Ok(Self::Resend { instance });
        }
        if envelope.kind == ANNOUNCEMENT {
            return Ok(Self::Announcement { instance, announcement: Announcement::decode(&envelope.payload)? });
        }
        let (Ok(kind), Ok(number)) = (u16::try_from(envelope.kind), u16::try_from(envelope.number)) else {
            return Err(EnvelopeError::Malformed("no protocol has a slot of this number"));
        };
        if kind == 0 {
            return Err(EnvelopeError::Malformed("kinds of messages count from 1"));
        }
        Ok(Self::Message { instance, slot: Slot { kind, number }, payload: envelope.payload })
    }

    /// The bytes to send.
    pub(crate) fn encode(self) -> Bytes {
        let id = |instance: InstanceId| Bytes::copy_from_slice(&instance.0);
        let envelope = match self {
            Self::Message { instance, slot, payload } => Envelope {
                version: VERSION,
                instance_id: id(instance),
                kind: slot.kind.into(),
                number: slot.number.into(),
                payload,
                stream: INSTANCES,
            },
            Self::Resend { instance } => {
                Envelope { version: VERSION, instance_id: id(instance), kind: RESEND, ..Envelope::default() }
            }
            Self::Announcement { instance, announcement } => Envelope {
                version: VERSION,
                instance_id: id(instance),
                kind: ANNOUNCEMENT,
                payload: announcement.encode(),
                ..Envelope::default()
            },
            Self::Custody { payload } => Envelope { version: VERSION, stream: CUSTODY, payload, ..Envelope::default() },
            Self::Slots { payload } => Envelope { version: VERSION, stream: SLOTS, payload, ..Envelope::default() },
        };
        envelope.encode_to_vec().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attack: a long message of fields that mean nothing, which the decoder skips one by one.
    #[test]
    fn no_envelope_is_long_to_read() {
        let good = Content::Resend { instance: InstanceId([9; 32]) };
        let with = |count: usize, field: &[u8]| {
            let fields = field.iter().copied().cycle().take(count * field.len());
            Content::decode(good.clone().encode().iter().copied().chain(fields).collect())
        };
        // A number, eight bytes, a string, four bytes: fields of a later release.
        for field in [&b"\x78\x81\x01"[..], b"\x79********", b"\x7a\x02xx", b"\x7d****"] {
            assert_eq!(with(8, field), Ok(good.clone()));
            assert_eq!(with(100_000, field).unwrap_err().name(), "malformed_envelope");
        }
        // The payload over and over, and groups in a group.
        assert_eq!(with(100_000, b"\x2a\x00").unwrap_err().name(), "malformed_envelope");
        assert_eq!(with(1, b"\x7b\x7b\x7c\x7c").unwrap_err().name(), "malformed_envelope");
    }

    #[test]
    fn what_is_written_is_read_back() {
        let instance = InstanceId([7; 32]);
        let slot = Slot { kind: 65_535, number: 65_535 };
        let payload = Bytes::from_static(b"share");
        let message = Content::Message { instance, slot, payload: payload.clone() };
        let custody = Content::Custody { payload: payload.clone() };
        let slots = Content::Slots { payload };
        let announcement = Announcement { key: KeyId::from_bytes([3; 32]), epoch: Epoch::new(5), session: [8; 32] };
        let announcement = Content::Announcement { instance, announcement };
        for content in [message, Content::Resend { instance }, announcement, custody, slots] {
            assert_eq!(Content::decode(content.clone().encode()), Ok(content));
        }
    }

    /// An envelope of peer protocol 1: version 1, instance 0x09.., a 1, the payload "share".
    #[test]
    fn the_former_protocol_is_refused_with_advice() {
        let mut bytes = vec![0x08, 0x01, 0x12, 0x20];
        bytes.extend([9; 32]);
        bytes.extend(*b"\x18\x01\x2a\x05share");
        let refused = Content::decode(bytes.into()).unwrap_err();
        assert_eq!(refused, EnvelopeError::Version(1));
        let text = "speaks peer protocol 1, this node speaks 3: bring both to one release";
        assert_eq!((refused.to_string().as_str(), refused.name()), (text, "protocol_version"));
    }

    #[test]
    fn garbage_is_refused_by_name() {
        let good = Envelope { version: VERSION, instance_id: vec![1; 32].into(), kind: 1, ..Envelope::default() };
        let refused = |envelope: Envelope| Content::decode(envelope.encode_to_vec().into()).unwrap_err();
        assert_eq!(refused(Envelope { version: 2, ..good.clone() }), EnvelopeError::Version(2));
        assert_eq!(refused(Envelope::default()), EnvelopeError::Version(0));
        let custody = Envelope { version: VERSION, stream: CUSTODY, ..Envelope::default() };
        for bad in [
            Envelope { instance_id: vec![1; 31].into(), ..good.clone() },
            Envelope { number: 65_536, ..good.clone() },
            Envelope { kind: 65_536, ..good.clone() },
            Envelope { kind: 0, ..good.clone() },
            Envelope { stream: 3, ..good.clone() },
            Envelope { stream: SLOTS, ..good.clone() },
            Envelope { stream: CUSTODY, ..good.clone() },
            Envelope { number: 1, ..custody.clone() },
            Envelope { kind: RESEND, ..custody },
            Envelope { kind: ANNOUNCEMENT, payload: vec![1; 67].into(), ..good.clone() },
            Envelope { kind: ANNOUNCEMENT, payload: vec![1; 69].into(), ..good },
        ] {
            assert_eq!(refused(bad).name(), "malformed_envelope");
        }
        let noise = Content::decode(Bytes::from_static(&[0xff; 40])).unwrap_err();
        assert_eq!(noise.name(), "malformed_envelope");
        for len in 0..40 {
            let bytes = Content::Resend { instance: InstanceId([9; 32]) }.encode().slice(..len);
            assert!(Content::decode(bytes).is_err(), "cut to {len}");
        }
    }
}
