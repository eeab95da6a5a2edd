//! What nodes do that were taken over. Each runs all that an honest node runs; between it and the network stands a liar.

mod ceremony;
mod omission;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use theta_ceremonies::CeremonyKeys;
use theta_custody::{Promise, encode_promises, promises_of};
use theta_wire::peer::{Envelope, INSTANCES, SLOTS};

pub use ceremony::CeremonyLie;

use crate::scenario::below;
use crate::setup::GROUP;

/// How long an overlong payload is.
const OVERLONG: usize = 1 << 20;
/// The most messages that a liar remembers.
const MEMORY: usize = 64;
/// How often a liar gives the same answer. Two liars that answer each other would go on for ever, ever more of them in a
/// network that duplicates.
const ANSWERS: u8 = 8;

/// What a liar does to what its node says, whatever the protocol. Where it says something false it does so now and then, and
/// is right at other times, which is harder to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Says nothing.
    Silent,
    /// Random bytes.
    Garbage,
    /// One bit of a payload is wrong.
    BitFlip,
    /// One bit of an envelope is wrong.
    EnvelopeFlip,
    /// Payloads end too early.
    Truncate,
    /// Another round, kind or channel.
    WrongSlot,
    /// What it said in another instance: well-formed, and false.
    Replay,
    /// The right message for another instance.
    OtherInstance,
    /// The right message for some, another one for the others.
    Equivocate,
    /// Two versions of each message to everybody.
    TwoVersions,
    /// Speaks to some nodes only.
    Selective,
    /// All of it very late, some of it never.
    Late,
    /// Everything twenty times, and messages of instances that nobody asked for.
    Flood,
    /// Says as its own what it hears.
    CopyOthers,
    /// Behaves, until it falls silent in the middle of something.
    StopAfter(u16),
    /// Promises each slot to every message that it hears of, to all.
    PromiseTwice,
    /// Promises each slot to every message that it hears of, to those alone who told it of that message.
    PromiseAsLiked,
    /// What it says is true, and a megabyte of the same follows.
    Overlong,
    /// Lies in ceremonies, with its signature.
    Ceremony(CeremonyLie),
}

impl Behaviour {
    pub(crate) fn draw(rng: &mut impl Rng, (k, n): (u16, u16), ceremonies: bool) -> Self {
        if ceremonies && below(rng, 3) > 0 {
            return Self::Ceremony(CeremonyLie::draw(rng, (k, n)));
        }
        let number = u16::try_from(below(rng, 100)).unwrap_or(0);
        let all = [
            Self::Silent,
            Self::Garbage,
            Self::BitFlip,
            Self::EnvelopeFlip,
            Self::Truncate,
            Self::WrongSlot,
            Self::Replay,
            Self::OtherInstance,
            Self::Equivocate,
            Self::TwoVersions,
            Self::Selective,
            Self::Late,
            Self::Flood,
            Self::CopyOthers,
            Self::PromiseTwice,
            Self::PromiseAsLiked,
            Self::PromiseTwice,
            Self::PromiseAsLiked,
            Self::StopAfter(number),
            Self::Overlong,
        ];
        let drawn = usize::try_from(below(rng, all.len() as u64)).unwrap_or(0);
        all.get(drawn).copied().unwrap_or(Self::Flood)
    }
}

/// A message that a liar sends, after so many milliseconds.
pub(crate) type Lie = (u64, Bytes);

/// Between a node and the network.
pub(crate) struct Liar {
    behaviour: Behaviour,
    keys: CeremonyKeys,
    rng: ChaCha8Rng,
    said: Vec<Envelope>,
    answered: BTreeMap<Bytes, u8>,
    count: u16,
    /// How many messages of ceremonies it has changed.
    lies: u64,
}

impl Liar {
    pub(crate) const fn new(behaviour: Behaviour, keys: CeremonyKeys, rng: ChaCha8Rng) -> Self {
        Self { behaviour, keys, rng, said: Vec::new(), answered: BTreeMap::new(), count: 0, lies: 0 }
    }

    /// What goes out to `to` in the place of an honest message.
    pub(crate) fn send(&mut self, to: u16, bytes: Bytes) -> Vec<Lie> {
        let now = |bytes| vec![(0, bytes)];
        let Ok(envelope) = Envelope::decode(bytes.clone()) else { return now(bytes) };
        self.count = self.count.saturating_add(1);
        let at_times = below(&mut self.rng, 4) > 0;
        let odd = to % 2 == 1;
        let with = |envelope: Envelope| Bytes::from(envelope.encode_to_vec());
        match self.behaviour {
            Behaviour::Silent | Behaviour::CopyOthers => Vec::new(),
            Behaviour::Selective if !odd => Vec::new(),
            Behaviour::StopAfter(count) if self.count > count => Vec::new(),
            Behaviour::Selective | Behaviour::StopAfter(_) => now(bytes),
            Behaviour::Ceremony(lie) => {
                let told = lie.tell(&self.keys, to, envelope.clone());
                self.lies += u64::from(told != envelope);
                now(with(told))
            }
            Behaviour::Late if below(&mut self.rng, 5) == 0 => Vec::new(),
            Behaviour::Late => vec![(2_000 + below(&mut self.rng, 4_000), bytes)],
            Behaviour::Garbage if at_times => now(self.garbage(bytes.len())),
            Behaviour::EnvelopeFlip if at_times => now(self.flip(&bytes)),
            Behaviour::Equivocate if !odd => now(bytes),
            Behaviour::BitFlip | Behaviour::Equivocate if at_times => now(with(self.flipped(envelope))),
            Behaviour::TwoVersions => vec![(0, with(self.flipped(envelope))), (below(&mut self.rng, 50), bytes)],
            Behaviour::Overlong if at_times && envelope.stream == INSTANCES => now(with(stretched(envelope))),
            Behaviour::Truncate if at_times => {
                let keep = usize::try_from(below(&mut self.rng, envelope.payload.len() as u64)).unwrap_or(0);
                now(with(Envelope { payload: envelope.payload.slice(..keep), ..envelope }))
            }
            Behaviour::WrongSlot if at_times => now(with(self.moved(envelope))),
            Behaviour::Replay | Behaviour::OtherInstance => now(with(self.replayed(envelope))),
            Behaviour::Flood => self.flood(&envelope, &bytes),
            _ => now(bytes),
        }
    }

    /// How many messages of ceremonies it has changed.
    pub(crate) const fn lies(&self) -> u64 {
        self.lies
    }

    /// What goes out because of what it hears, and whether to all or only to the one whom it heard.
    pub(crate) fn hear(&mut self, bytes: &Bytes) -> Option<(Bytes, bool)> {
        let (answer, to_all) = match self.behaviour {
            Behaviour::CopyOthers if below(&mut self.rng, 2) == 0 => (bytes.clone(), true),
            Behaviour::PromiseTwice => (self.promise(bytes)?, true),
            Behaviour::PromiseAsLiked => (self.promise(bytes)?, false),
            _ => return None,
        };
        let times = self.answered.entry(answer.clone()).or_insert(0);
        if *times >= ANSWERS {
            return None;
        }
        *times += 1;
        Some((answer, to_all))
    }

    /// Its own promises to all messages for a slot that it is told of.
    fn promise(&self, bytes: &Bytes) -> Option<Bytes> {
        let envelope = Envelope::decode(bytes.clone()).ok().filter(|envelope| envelope.stream == SLOTS)?;
        let (subject, promises) = promises_of(&envelope.payload)?;
        let own = self.keys.member().node();
        let others = promises.into_iter().filter(|promise| promise.node != own);
        let digests: BTreeSet<_> = others.map(|promise| promise.digest).collect();
        let promise = |digest| Promise::sign(GROUP, &self.keys, &subject, digest);
        let promises: Vec<Promise> = digests.into_iter().map(promise).collect();
        let payload = (!promises.is_empty()).then(|| encode_promises(&subject, promises))?;
        Some(Envelope { payload, ..envelope }.encode_to_vec().into())
    }

    fn garbage(&mut self, len: usize) -> Bytes {
        let mut bytes = vec![0; len];
        self.rng.fill_bytes(&mut bytes);
        bytes.into()
    }

    fn flip(&mut self, bytes: &Bytes) -> Bytes {
        let mut bytes = bytes.to_vec();
        let bit = below(&mut self.rng, 8 * bytes.len() as u64);
        if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|place| bytes.get_mut(place)) {
            *byte ^= 1 << (bit % 8);
        }
        bytes.into()
    }

    fn flipped(&mut self, envelope: Envelope) -> Envelope {
        Envelope { payload: self.flip(&envelope.payload), ..envelope }
    }

    fn moved(&mut self, envelope: Envelope) -> Envelope {
        match below(&mut self.rng, 4) {
            0 => Envelope { kind: 1 + u32::try_from(below(&mut self.rng, 6)).unwrap_or(0), ..envelope },
            1 => Envelope { kind: envelope.kind ^ 1, ..envelope },
            2 => Envelope { number: envelope.number ^ 1, ..envelope },
            _ => Envelope { stream: envelope.stream ^ 1, ..envelope },
        }
    }

    /// With the payload, or the instance, of something that was said before of the same kind.
    fn replayed(&mut self, envelope: Envelope) -> Envelope {
        let other = |said: &&Envelope| said.kind == envelope.kind && said.instance_id != envelope.instance_id;
        let others: Vec<Envelope> = self.said.iter().filter(other).cloned().collect();
        let at = usize::try_from(below(&mut self.rng, others.len() as u64)).unwrap_or(0);
        let forged = match others.get(at) {
            Some(other) if self.behaviour == Behaviour::Replay => {
                Envelope { payload: other.payload.clone(), ..envelope.clone() }
            }
            Some(other) => Envelope { instance_id: other.instance_id.clone(), ..envelope.clone() },
            None => envelope.clone(),
        };
        if self.said.len() == MEMORY {
            self.said.remove(0);
        }
        self.said.push(envelope);
        forged
    }

    fn flood(&mut self, envelope: &Envelope, bytes: &Bytes) -> Vec<Lie> {
        let mut lies = vec![(0, bytes.clone())];
        if self.count < 100 {
            for number in 0..10 {
                lies.push((50 * number, bytes.clone()));
                let instance_id = self.garbage(32);
                let early = Envelope { instance_id, stream: INSTANCES, kind: envelope.kind.max(1), ..envelope.clone() };
                lies.push((0, early.encode_to_vec().into()));
            }
        }
        lies
    }
}

/// The payload again and again: a list of a thousand signers where there are five.
fn stretched(envelope: Envelope) -> Envelope {
    let copies = OVERLONG.checked_div(envelope.payload.len()).unwrap_or(0);
    let payload = match copies {
        0 => Bytes::from(vec![0; OVERLONG]),
        copies => envelope.payload.repeat(copies).into(),
    };
    Envelope { payload, ..envelope }
}
