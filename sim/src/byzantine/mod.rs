//! Byzantine nodes. Each runs an honest node, and a liar between that node and the network.

mod ceremony;
mod ecdsa;
mod forger;
mod ledger;
mod omission;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use theta_ceremonies::CeremonyKeys;
use theta_custody::{Promise, encode_promises, promises_of};
use theta_ledger::LedgerState;
use theta_wire::peer::{Envelope, INSTANCES, SLOTS};

pub use ceremony::CeremonyLie;
pub use ecdsa::EcdsaLie;
pub use ledger::LedgerLie;

use crate::chance::below;
use crate::group::GROUP;
use ecdsa::EcdsaLiar;
use ledger::LedgerLiar;

/// The length of an overlong payload in bytes.
const OVERLONG: usize = 1 << 20;
/// The most messages that a liar remembers.
const MEMORY: usize = 64;
/// How often a liar gives the same answer. Without this bound two liars would answer each other for ever, with ever more
/// messages in a network that duplicates.
const ANSWERS: u8 = 8;

/// How a liar changes its node's messages, in any protocol. Most lies are told only now and then: a node that is right at
/// other times is harder to detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Sends nothing.
    Silent,
    /// Sends random bytes.
    Garbage,
    /// Flips one bit of a payload.
    BitFlip,
    /// Flips one bit of an envelope.
    EnvelopeFlip,
    /// Cuts payloads short.
    Truncate,
    /// Changes the kind, number or stream of an envelope.
    WrongSlot,
    /// Sends its payload of another instance: well-formed, and false.
    Replay,
    /// Sends the right message for another instance.
    OtherInstance,
    /// Sends the right message to some nodes and another one to the others.
    Equivocate,
    /// Sends two versions of each message to all nodes.
    TwoVersions,
    /// Sends to some nodes only.
    Selective,
    /// Sends everything very late, and some of it never.
    Late,
    /// Sends everything twenty times, and messages of instances that nobody asked for.
    Flood,
    /// Sends other nodes' messages as its own.
    CopyOthers,
    /// Behaves honestly until it stops in the middle of something.
    StopAfter(u16),
    /// Promises each slot to every message that it hears of, in promises to all nodes.
    PromiseTwice,
    /// Promises each slot to every message that it hears of, in a promise only to the node from which it heard of the
    /// message.
    PromiseAsLiked,
    /// Sends true payloads followed by a megabyte of the same.
    Overlong,
    /// Lies in ceremonies, under its signature.
    Ceremony(CeremonyLie),
    /// Lies in the ledger, under its signature.
    Ledger(LedgerLie),
    /// Lies in programs of ECDSA, and about presignatures.
    Ecdsa(EcdsaLie),
    /// The same, but follows the protocol in so many programs first, so that there are presignatures in stock.
    EcdsaAfter(EcdsaLie, u16),
}

impl Behaviour {
    /// What it is called in counts.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Garbage => "garbage",
            Self::BitFlip => "flips bits of payloads",
            Self::EnvelopeFlip => "flips bits of envelopes",
            Self::Truncate => "cuts",
            Self::WrongSlot => "wrong slots",
            Self::Replay => "payloads of other instances",
            Self::OtherInstance => "for other instances",
            Self::Equivocate => "equivocates",
            Self::TwoVersions => "two versions",
            Self::Selective => "selective",
            Self::Late => "late",
            Self::Flood => "floods",
            Self::CopyOthers => "copies others",
            Self::StopAfter(_) => "stops",
            Self::PromiseTwice | Self::PromiseAsLiked => "promises twice",
            Self::Overlong => "overlong",
            Self::Ceremony(_) => "lies in ceremonies",
            Self::Ledger(lie) => lie.name(),
            Self::Ecdsa(lie) | Self::EcdsaAfter(lie, _) => lie.name(),
        }
    }

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

/// A message that a liar sends, after this many milliseconds.
pub(crate) type Lie = (u64, Bytes);

/// A liar between a node and the network.
pub(crate) struct Liar {
    behaviour: Behaviour,
    keys: CeremonyKeys,
    rng: ChaCha8Rng,
    said: Vec<Envelope>,
    answered: BTreeMap<Bytes, u8>,
    count: u16,
    ledger: Option<LedgerLiar>,
    ecdsa: Option<EcdsaLiar>,
    /// The number of messages that it has changed, left out or added to.
    lies: u64,
}

impl Liar {
    /// `group` makes the keys of all liars of the group, which help each other.
    pub(crate) fn new<E>(
        behaviour: Behaviour,
        keys: CeremonyKeys,
        rng: ChaCha8Rng,
        group: impl Fn() -> Result<(CeremonyKeys, Vec<CeremonyKeys>), E>,
    ) -> Result<Self, E> {
        let ledger = match behaviour {
            Behaviour::Ledger(lie) => {
                let (own, all) = group()?;
                Some(LedgerLiar::new(lie, own, all))
            }
            _ => None,
        };
        let ecdsa = match behaviour {
            Behaviour::Ecdsa(lie) => Some(EcdsaLiar::new(lie, 0)),
            Behaviour::EcdsaAfter(lie, honest) => Some(EcdsaLiar::new(lie, honest)),
            _ => None,
        };
        Ok(Self { behaviour, keys, rng, said: Vec::new(), answered: BTreeMap::new(), count: 0, ledger, ecdsa, lies: 0 })
    }

    /// What the liar sends to `to` in place of an honest message. `state` is the ledger that its node has.
    pub(crate) fn send(&mut self, to: u16, bytes: &Bytes, state: Option<&LedgerState>) -> Vec<Lie> {
        let told = self.make(to, bytes.clone(), state);
        let honest = matches!(&told[..], [(0, same)] if same == bytes);
        self.lies += u64::from(!honest);
        told
    }

    /// What the liar answers a client that follows the ledger, in place of the entries that its node has.
    pub(crate) fn serves(&mut self, entries: Vec<Vec<u8>>, state: &LedgerState) -> Vec<Vec<u8>> {
        let before = entries.clone();
        let told = match (&mut self.ledger, self.behaviour) {
            (Some(liar), _) => liar.serves(entries, (state, &mut self.rng)),
            (None, Behaviour::Silent | Behaviour::StopAfter(0)) => Vec::new(),
            (None, Behaviour::Garbage) => entries.iter().map(|entry| self.garbage(entry.len()).to_vec()).collect(),
            (None, Behaviour::BitFlip | Behaviour::Equivocate) => {
                entries.iter().map(|entry| self.flip(&Bytes::copy_from_slice(entry)).to_vec()).collect()
            }
            (None, Behaviour::Truncate) => {
                entries.iter().map(|entry| entry.split_at(entry.len() / 2).0.to_vec()).collect()
            }
            (None, Behaviour::Replay) => entries.into_iter().rev().collect(),
            (None, _) => entries,
        };
        self.lies += u64::from(told != before);
        told
    }

    fn make(&mut self, to: u16, bytes: Bytes, state: Option<&LedgerState>) -> Vec<Lie> {
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
                if told == envelope { now(bytes) } else { now(with(told)) }
            }
            Behaviour::Ecdsa(_) | Behaviour::EcdsaAfter(..) => {
                let told = self.ecdsa.as_mut().and_then(|liar| liar.tell(to, envelope.clone(), &mut self.rng));
                told.map_or_else(Vec::new, |told| if told == envelope { now(bytes) } else { now(with(told)) })
            }
            Behaviour::Ledger(_) => {
                let told = self.ledger.as_mut().zip(state);
                match told.and_then(|(liar, state)| liar.tell(to, &bytes, (state, &mut self.rng))) {
                    None => now(bytes),
                    Some(told) => told.into_iter().map(|bytes| (0, bytes)).collect(),
                }
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

    /// What it does, and how often it has.
    pub(crate) const fn lies(&self) -> (Behaviour, u64) {
        (self.behaviour, self.lies)
    }

    /// What the liar sends in response to a message, and whether to all nodes or only to the sender.
    pub(crate) fn hear(&mut self, from: u16, bytes: &Bytes, state: Option<&LedgerState>) -> Option<(Bytes, bool)> {
        let (answer, to_all) = match self.behaviour {
            Behaviour::CopyOthers if below(&mut self.rng, 2) == 0 => (bytes.clone(), true),
            Behaviour::PromiseTwice => (self.promise(bytes)?, true),
            Behaviour::PromiseAsLiked => (self.promise(bytes)?, false),
            Behaviour::Ledger(_) => (self.ledger.as_mut()?.hears(from, bytes, state?)?, true),
            _ => return None,
        };
        let times = self.answered.entry(answer.clone()).or_insert(0);
        if *times >= ANSWERS {
            return None;
        }
        *times += 1;
        Some((answer, to_all))
    }

    /// The liar's own promises to all messages for the slot of these promises.
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

    /// The envelope with the payload, or the instance, of an earlier message of the same kind.
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

/// The payload repeated many times, as a list of a thousand signers where there are five.
fn stretched(envelope: Envelope) -> Envelope {
    let copies = OVERLONG.checked_div(envelope.payload.len()).unwrap_or(0);
    let payload = match copies {
        0 => Bytes::from(vec![0; OVERLONG]),
        copies => envelope.payload.repeat(copies).into(),
    };
    Envelope { payload, ..envelope }
}
