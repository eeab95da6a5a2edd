//! What must hold in every run.

mod consents;
mod deeds;
mod masks;
mod stores;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message as _;
use theta_orchestration::{InstanceId, Load, OrchestratorConfig};
use theta_wire::peer::{Envelope, INSTANCES};

pub use deeds::{Deed, Deeds};

use crate::scenario::{BURST, PER_SECOND};
use consents::Consents;
use masks::Masks;
use stores::Stores;

/// The `kind` with which a node asks for what it lacks: no share.
const RESEND: u32 = u32::MAX;
/// Rounds of FROST, as in `spec/frost.md`: who signs with which commitments, and a signer's share.
const PACKAGE: u32 = 2;
const SHARE: u32 = 3;
/// Of a package: how many commitments are wanted and a number; then the entries.
const PACKAGE_HEAD: usize = 9;
/// Of an entry of a package: the index; then two elements.
const INDEX_LEN: usize = 2;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// One instance has one result, and it is right.
    OneResult,
    /// A commitment to nonces is used for one message.
    NonceOnce,
    /// A node permits nothing without the consents that it takes, or more often than its rate allows, and nothing about an
    /// instance leaves a node that did not permit it.
    Permitted,
    /// A node gives a slot to one message at most, and of all messages for a slot honest nodes help to sign one at most.
    OneMessagePerSlot,
    /// What k honest nodes that are connected permit comes to its end.
    Ends,
    /// All honest nodes agree on what became of a ceremony, and on the keys.
    Agreement,
    /// No honest helper's mask hides answers to two requests of a recovery.
    MaskOnce,
    /// A node whose store was set back trusts it no more until a person says that it is meant.
    SetBack,
    /// One request holds one ceremony, and a change of a key's state is not made after a later one.
    ConsentOnce,
    /// No key goes back to an epoch before, and of each as many honest nodes hold right shares as it takes.
    Shares,
    /// Stolen stores give the shares that are in them, and fewer than k of each epoch do not give the key.
    Secrecy,
    /// Nothing grows beyond its limit.
    Bounded,
    /// No honest node is accused by an honest one.
    NoFalseBlame,
    /// Nodes start again after every crash; nothing fails for no reason.
    Works,
}

/// What did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, in milliseconds.
    pub at: u64,
    /// Which of those that must hold.
    pub invariant: Invariant,
    /// What happened.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} violated at {} ms: {}", self.invariant, self.at, self.text)
    }
}

/// Watches everything that honest nodes do.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) now: u64,
    /// What each node's policy has permitted.
    permitted: BTreeSet<(u16, InstanceId)>,
    /// Instances that are FROST's, with each node's place in them.
    frost: BTreeMap<(u16, InstanceId), Signer>,
    /// Packages that reached a node in this life: by node, coordinator, instance, session.
    packages: BTreeMap<(u16, u16, InstanceId, u32), Bytes>,
    /// What each node's commitments were used for.
    used: BTreeMap<(u16, Vec<u8>), (InstanceId, Bytes)>,
    /// Results by request and public key.
    results: BTreeMap<(usize, Vec<u8>), Vec<u8>>,
    /// What each node gave each slot of a key to.
    slots: BTreeMap<(u16, usize, u64), String>,
    /// Which slot of a key and which message an instance is about,
    about: BTreeMap<InstanceId, (usize, u64, String)>,
    /// and for which message something of an honest node has left.
    helped: BTreeMap<(usize, u64), String>,
    /// What each node has let pass of each rated key, in this life.
    uses: BTreeMap<(u16, usize), Uses>,
    /// What helpers of recoveries answer, where there are any.
    masks: Option<Masks>,
    pub(crate) stores: Stores,
    pub(crate) consents: Consents,
    pub(crate) deeds: Deeds,
}

/// A node's place in an instance of FROST.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signer {
    pub(crate) index: u16,
    /// The length of an element of the suite's group.
    pub(crate) element_len: usize,
}

/// How often a node has let a key be used, in how many seconds of its own clock. Seconds by which the clock was put back are
/// none.
struct Uses {
    count: u64,
    seconds: u64,
    last: u64,
}

impl Watch {
    pub(crate) fn violated<T>(&self, invariant: Invariant, text: impl Into<String>) -> Result<T, Violation> {
        Err(Violation { at: self.now, invariant, text: text.into() })
    }

    /// A node's policy permitted an instance; its place in it, if it is FROST's.
    pub(crate) fn permit(&mut self, node: u16, id: InstanceId, signer: Option<Signer>) {
        self.permitted.insert((node, id));
        if let Some(signer) = signer {
            self.frost.insert((node, id), signer);
        }
    }

    /// A node was asked for a use of a rated key when its clock showed so many seconds, and let it pass or not.
    pub(crate) fn rated(&mut self, (node, key): (u16, usize), clock: u64, passed: bool) -> Result<(), Violation> {
        let uses = self.uses.entry((node, key)).or_insert(Uses { count: 0, seconds: 0, last: clock });
        uses.seconds += clock.saturating_sub(uses.last);
        uses.last = clock;
        uses.count += u64::from(passed);
        let most = BURST + PER_SECOND.saturating_mul(uses.seconds);
        if uses.count <= most {
            return Ok(());
        }
        let text = format!("node {node} lets key {key} be used {} times in {} s", uses.count, uses.seconds);
        self.violated(Invariant::Permitted, text)
    }

    /// A node's policy let a message be signed for a slot.
    pub(crate) fn slot(&mut self, node: u16, key: usize, slot: u64, text: &str) -> Result<(), Violation> {
        let first = self.slots.entry((node, key, slot)).or_insert_with(|| text.to_owned());
        if first == text {
            return Ok(());
        }
        let text = format!("node {node} lets {first:?} and {text:?} be signed for slot {slot}");
        self.violated(Invariant::OneMessagePerSlot, text)
    }

    /// An instance is about a slot.
    pub(crate) fn about(&mut self, id: InstanceId, key: usize, slot: u64, text: &str) {
        self.about.entry(id).or_insert_with(|| (key, slot, text.to_owned()));
    }

    /// An honest node helps to sign a message for a slot.
    fn helps(&mut self, node: u16, id: InstanceId) -> Result<(), Violation> {
        let Some((key, slot, text)) = self.about.get(&id).cloned() else { return Ok(()) };
        let first = self.helped.entry((key, slot)).or_insert_with(|| text.clone());
        if *first == text {
            return Ok(());
        }
        let text =
            format!("node {node} helps to sign {text:?} for slot {slot} of key {key}, for which {first:?} was signed");
        self.violated(Invariant::OneMessagePerSlot, text)
    }

    /// A person takes the responsibility for what a node does again, whose store was set back.
    pub(crate) fn confirmed(&mut self, node: u16) {
        self.stores.confirmed(node);
        self.slots.retain(|(at, ..), _| *at != node);
    }

    /// A node forgot what it had in memory.
    pub(crate) fn crashed(&mut self, node: u16) {
        self.packages.retain(|(at, ..), _| *at != node);
        self.uses.retain(|(at, _), _| *at != node);
    }

    /// A message reaches an honest node.
    pub(crate) fn delivered(&mut self, node: u16, from: u16, bytes: &Bytes) {
        self.masks.iter_mut().for_each(|masks| masks.delivered(bytes));
        let Some((id, envelope)) = instance_of(bytes) else { return };
        if envelope.kind == PACKAGE {
            self.packages.entry((node, from, id, envelope.number)).or_insert(envelope.payload);
        }
    }

    /// From now on recoveries are watched.
    pub(crate) fn watch_recoveries(&mut self) {
        self.masks = Some(Masks::default());
    }

    /// An honest node says something in a recovery, or something else.
    pub(crate) fn helped(&mut self, node: u16, bytes: &Bytes, honest: impl Fn(u16) -> bool) -> Result<(), Violation> {
        let answered = self.masks.as_mut().map_or(Ok(()), |masks| masks.sent(node, bytes, honest));
        answered.or_else(|text| self.violated(Invariant::MaskOnce, text))
    }

    /// A message leaves an honest node.
    pub(crate) fn sent(&mut self, node: u16, to: u16, bytes: &Bytes) -> Result<(), Violation> {
        let Some((id, envelope)) = instance_of(bytes) else { return Ok(()) };
        if envelope.kind == RESEND {
            return Ok(());
        }
        if !self.permitted.contains(&(node, id)) {
            return self.violated(Invariant::Permitted, format!("node {node} takes part in {id}, unasked"));
        }
        self.helps(node, id)?;
        match self.frost.get(&(node, id)) {
            Some(signer) if envelope.kind == SHARE => self.signed((node, *signer), to, id, envelope.number),
            _ => Ok(()),
        }
    }

    /// A node sends its share of a signature to a coordinator.
    fn signed(
        &mut self,
        (node, signer): (u16, Signer),
        to: u16,
        id: InstanceId,
        session: u32,
    ) -> Result<(), Violation> {
        let Some(package) = self.packages.get(&(node, to, id, session)).cloned() else {
            return self.violated(Invariant::NonceOnce, format!("node {node} signs in {id} without a package"));
        };
        let entries = package.get(PACKAGE_HEAD..).unwrap_or_default();
        let entry_len = INDEX_LEN + 2 * signer.element_len;
        let own = entries.chunks_exact(entry_len).find(|entry| entry.starts_with(&signer.index.to_be_bytes()));
        let Some(own) = own else {
            return self.violated(Invariant::NonceOnce, format!("node {node} signs in {id} with nothing of its own"));
        };
        let for_what = (id, package.slice(PACKAGE_HEAD..));
        let own = own.get(INDEX_LEN..).unwrap_or_default();
        let first = self.used.entry((node, own.to_vec())).or_insert_with(|| for_what.clone());
        if *first == for_what {
            return Ok(());
        }
        let text = format!("node {node} uses a commitment in {} and in {id}", first.0);
        self.violated(Invariant::NonceOnce, text)
    }

    /// A node has a result of a request under a public key, of a scheme that gives the same one always: all but FROST, where two
    /// coordinators may both get a signature.
    pub(crate) fn finished(&mut self, node: u16, of: (usize, Vec<u8>), result: &[u8]) -> Result<(), Violation> {
        let request = of.0;
        let first = self.results.entry(of).or_insert_with(|| result.to_vec());
        if first == result {
            return Ok(());
        }
        self.violated(Invariant::OneResult, format!("node {node} has another result of request {request} than others"))
    }

    /// How full a node is.
    pub(crate) fn load(&self, node: u16, load: &Load, limits: &OrchestratorConfig, n: u16) -> Result<(), Violation> {
        let backlog = limits.backlog_messages_per_peer * usize::from(n);
        let bounds = [
            ("instances", load.running, limits.max_instances),
            ("results", load.results, limits.results_count),
            ("early messages", load.backlog, backlog),
        ];
        match bounds.into_iter().find(|(_, got, most)| got > most) {
            None => Ok(()),
            Some((what, got, most)) => {
                self.violated(Invariant::Bounded, format!("node {node} has {got} {what}, at most {most} are allowed"))
            }
        }
    }
}

/// The envelope of an instance's message.
fn instance_of(bytes: &Bytes) -> Option<(InstanceId, Envelope)> {
    let envelope = Envelope::decode(bytes.clone()).ok().filter(|envelope| envelope.stream == INSTANCES)?;
    let id = envelope.instance_id.as_ref().try_into().ok()?;
    Some((InstanceId(id), envelope))
}
