//! What Byzantine parties do.

use bytes::Bytes;
use rand_core::Rng;

use super::{SimRng, below};
use crate::{Channel, PartyId, Slot};

/// A message between a machine and the network, without its sender and recipient.
#[derive(Clone, Debug)]
pub struct HonestSend {
    /// Where it belongs.
    pub slot: Slot,
    /// How it travels. An adversary may set any channel, as a lying transport would.
    pub channel: Channel,
    /// Its bytes.
    pub payload: Bytes,
}

/// A message that an adversary sends.
pub type Forgery = HonestSend;

impl HonestSend {
    fn with(&self, payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), ..self.clone() }
    }
}

/// Sits between a corrupted party's honest machine and the network.
pub trait Adversary: Send {
    /// The honest machine wants to send `honest` to `to`. Returns the messages that go out instead, any number of them.
    fn on_send(&mut self, rng: &mut SimRng, to: PartyId, honest: HonestSend) -> Vec<Forgery>;

    /// The party receives a message. Returns the messages that go out to everyone because of it.
    fn on_receive(&mut self, _rng: &mut SimRng, _from: PartyId, _message: &HonestSend) -> Vec<Forgery> {
        Vec::new()
    }
}

impl<A: Adversary + ?Sized> Adversary for Box<A> {
    fn on_send(&mut self, rng: &mut SimRng, to: PartyId, honest: HonestSend) -> Vec<Forgery> {
        self.as_mut().on_send(rng, to, honest)
    }

    fn on_receive(&mut self, rng: &mut SimRng, from: PartyId, message: &HonestSend) -> Vec<Forgery> {
        self.as_mut().on_receive(rng, from, message)
    }
}

/// Misbehaviour that needs no knowledge of the protocol.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Sends nothing.
    Silent,
    /// Sends random bytes, of the right length or another.
    Garbage,
    /// Flips one random bit of every message.
    BitFlip,
    /// Cuts messages off at a random length.
    Truncate,
    /// Repeats the payload until it has at least a mebibyte.
    Overlong,
    /// Sends empty payloads.
    Empty,
    /// Sends private messages over the public channel. (Public messages may travel by any channel.)
    WrongChannel,
    /// Sends the right message in a slot that does not exist.
    UnknownSlot,
    /// Sends each message, and then another in the same slot.
    TwoToSame,
    /// Sends the right message to some parties and a wrong one to others.
    Equivocate,
    /// Sends nothing but the first message that it receives from another party, as its own.
    CopyOthers,
    /// Sends recorded messages instead of its own, for example its own of another instance.
    Replay(Vec<HonestSend>),
    /// Repeats every message many times; a nuisance, not an offence.
    Flood,
    /// Follows the protocol until it has sent so many messages, and then falls silent.
    CrashAfter(usize),
}

/// The minimum length of an overlong payload, in bytes.
const OVERLONG: usize = 1 << 20;

impl Adversary for Behaviour {
    fn on_send(&mut self, rng: &mut SimRng, _to: PartyId, honest: HonestSend) -> Vec<Forgery> {
        match self {
            Self::Silent | Self::CopyOthers => Vec::new(),
            Self::Garbage => vec![garbage(rng, &honest)],
            Self::BitFlip => vec![honest.with(flip_bit(rng, &honest.payload))],
            Self::Truncate => {
                let keep = below(rng, honest.payload.len() as u64);
                vec![honest.with(honest.payload.slice(..usize::try_from(keep).unwrap_or(0)))]
            }
            Self::Overlong => {
                let copies = 1 + OVERLONG.checked_div(honest.payload.len()).unwrap_or(0);
                let mut payload = honest.payload.repeat(copies);
                payload.resize(payload.len().max(OVERLONG), 0);
                vec![honest.with(payload)]
            }
            Self::Empty => vec![honest.with(Bytes::new())],
            Self::WrongChannel => {
                let channel = if honest.channel == Channel::Private { Channel::Broadcast } else { honest.channel };
                vec![Forgery { channel, ..honest }]
            }
            Self::UnknownSlot => vec![Forgery { slot: Slot { kind: u16::MAX, ..honest.slot }, ..honest }],
            Self::TwoToSame => {
                let other = honest.with(flip_bit(rng, &honest.payload));
                vec![honest, other]
            }
            Self::Equivocate if below(rng, 2) == 0 => vec![honest],
            Self::Equivocate => vec![honest.with(flip_bit(rng, &honest.payload))],
            Self::Replay(recorded) => recorded.clone(),
            Self::Flood => vec![honest; 20],
            Self::CrashAfter(left) => match left.checked_sub(1) {
                None => Vec::new(),
                Some(rest) => {
                    *left = rest;
                    vec![honest]
                }
            },
        }
    }

    fn on_receive(&mut self, _rng: &mut SimRng, _from: PartyId, message: &HonestSend) -> Vec<Forgery> {
        match self {
            Self::CopyOthers => {
                *self = Self::Silent;
                vec![message.clone()]
            }
            _ => Vec::new(),
        }
    }
}

fn garbage(rng: &mut SimRng, honest: &HonestSend) -> Forgery {
    let len = if below(rng, 2) == 0 { honest.payload.len() as u64 } else { below(rng, 300) };
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    rng.fill_bytes(&mut bytes);
    honest.with(bytes)
}

/// The payload with one random bit changed; an empty one becomes one byte.
pub fn flip_bit(rng: &mut SimRng, payload: &[u8]) -> Bytes {
    let mut bytes = if payload.is_empty() { vec![0] } else { payload.to_vec() };
    let bit = below(rng, 8 * bytes.len() as u64);
    if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|position| bytes.get_mut(position)) {
        *byte ^= 1 << (bit % 8);
    }
    bytes.into()
}

/// Misbehaviour that knows the protocol: a closure that turns each message into what goes out instead.
pub struct Tamper<F>(pub F);

impl<F> Adversary for Tamper<F>
where
    F: FnMut(&mut SimRng, PartyId, Slot, Bytes) -> Vec<(Slot, Bytes)> + Send,
{
    fn on_send(&mut self, rng: &mut SimRng, to: PartyId, honest: HonestSend) -> Vec<Forgery> {
        let HonestSend { slot, channel, payload } = honest;
        let forged = (self.0)(rng, to, slot, payload);
        forged.into_iter().map(|(slot, payload)| Forgery { slot, channel, payload }).collect()
    }
}
