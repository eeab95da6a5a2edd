//! The invariants, which must hold in every run.

mod consents;
mod ledger;
mod masks;
mod observations;
mod stores;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use prost::Message as _;
use theta_agreement::VoteCertificate;
use theta_ledger::{Action, Digest};
use theta_names::{Epoch, NodeId};
use theta_orchestration::{InstanceId, Load, OrchestratorConfig};
use theta_schemes::keys::KeyId;
use theta_wire::peer::{Envelope, INSTANCES};

pub use observations::{Observation, Observations};

use crate::ledger::ledger_of;
use crate::scenario::{BURST, PER_SECOND, Scenario};
use consents::Consents;
use ledger::LedgerWatch;
use masks::Masks;
use stores::Stores;

/// The `kind` with which a node asks for messages again; such a message is no share.
const RESEND: u32 = u32::MAX;
/// The `kind` with which a node announces that it makes presignatures.
const ANNOUNCEMENT: u32 = u32::MAX - 1;
/// Kinds of FROST's messages, as in `spec/frost.md`: a package (the signers with their commitments), and a signer's share.
const PACKAGE: u32 = 2;
const SHARE: u32 = 3;
/// The bytes of a package before its entries: the number of commitments that are wanted, and a number.
const PACKAGE_HEAD: usize = 9;
/// The bytes of an entry of a package before its two elements: the index.
const INDEX_LEN: usize = 2;
/// The kind of ECDSA's shares of signatures, as in `spec/ecdsa.md`; they begin with the name of a presignature and end with a scalar.
pub(crate) const PRESIGNED: u32 = 1;
pub(crate) const PRESIGNATURE_LEN: usize = 32;
/// The first kind of ECDSA's messages by which presignatures are made; with those of lower kinds signatures are.
const PREPARE: u32 = 3;
const SCALAR_LEN: usize = 32;

/// An invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// One instance has one result, and it is right.
    OneResult,
    /// A commitment to nonces, or a presignature, is used for one message only, in whichever of a node's lives. So no two signatures come of one:
    /// each takes a share of every signer, and one of them is honest.
    NonceOnce,
    /// A node permits nothing without the approvals that its policy asks for, or more often than its rate allows, and sends
    /// nothing of an instance that it did not permit. The group begins no ceremony that no client asked for.
    Permitted,
    /// A node gives a slot to one message at most, and honest nodes help to sign at most one message for a slot.
    OneMessagePerSlot,
    /// What k connected honest nodes permit comes to an end.
    Ends,
    /// All honest nodes agree on the outcomes of ceremonies and on the keys.
    Agreement,
    /// No two honest nodes have different entries at a height, no node's ledger loses entries, and no honest member says two things
    /// under one ballot.
    Ledger,
    /// Neither an honest node nor a client believes an entry that no quorum has certified.
    Certified,
    /// All honest nodes agree on who the members are after each entry, and a machine that was replaced is nobody's any more.
    Members,
    /// No honest helper's mask hides answers to two requests of a recovery.
    MaskOnce,
    /// A node whose store was set back does not trust it until a person confirms the store.
    SetBack,
    /// One request leads to one ceremony at most, and no change of a key's state is made after a later one.
    ConsentOnce,
    /// Who was asked to disable a key, and may be, stops using it at once, whatever the group has decided by then.
    Frozen,
    /// No key goes back to an earlier epoch, and at least k honest nodes hold right shares of each key.
    Shares,
    /// Stolen stores give only the shares in them, and fewer than k of each epoch do not give the key.
    Secrecy,
    /// Nothing grows beyond its bound.
    Bounded,
    /// No honest node accuses another honest node.
    NoFalseBlame,
    /// A set of holders that an honest node has put in quarantine has a liar in it, and who is named there is one.
    Quarantine,
    /// Nodes restart after every crash, and nothing fails without a reason.
    Works,
}

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The time in milliseconds.
    pub at: u64,
    /// The invariant.
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
    /// The instances that each node's policy has permitted.
    permitted: BTreeSet<(u16, InstanceId)>,
    /// The instances whose signers use up material, with each node's role in them.
    signers: BTreeMap<(u16, InstanceId), Role>,
    /// What each node has sent of each presignature: the instance, and its share.
    presignatures: BTreeMap<(u16, Vec<u8>), (InstanceId, Bytes)>,
    /// The instances that each node has announced, or was told of, in which presignatures are made.
    fillings: BTreeSet<(u16, InstanceId)>,
    /// The packages that have reached a node since its last start: by node, coordinator, instance, session.
    packages: BTreeMap<(u16, u16, InstanceId, u32), Bytes>,
    /// The message for which each of a node's commitments was used.
    used: BTreeMap<(u16, Vec<u8>), (InstanceId, Bytes)>,
    /// Results by request and public key.
    results: BTreeMap<(usize, Vec<u8>), Vec<u8>>,
    /// The message to which each node gave each slot of a key.
    slots: BTreeMap<(u16, usize, u64), String>,
    /// The slot of a key, and the message, of each instance,
    about: BTreeMap<InstanceId, (usize, u64, String)>,
    /// and the message of each slot for which an honest node has sent something.
    helped: BTreeMap<(usize, u64), String>,
    /// The uses of each rated key that each node has permitted since its last start.
    uses: BTreeMap<(u16, usize), Uses>,
    /// The answers of helpers of recoveries, in scenarios that have any.
    masks: Option<Masks>,
    pub(crate) stores: Stores,
    pub(crate) consents: Consents,
    pub(crate) ledger: LedgerWatch,
    pub(crate) observations: Observations,
}

/// A node's role in an instance whose signers use up material.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    Frost(Signer),
    Ecdsa,
}

/// A node's role in an instance of FROST.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signer {
    pub(crate) index: u16,
    /// The bytes of an element of the suite's group.
    pub(crate) element_len: usize,
}

/// The number of uses that a node has permitted, and the seconds on its own clock. Seconds by which the clock was set back
/// do not count.
struct Uses {
    count: u64,
    seconds: u64,
    last: u64,
}

impl Watch {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self { ledger: LedgerWatch::new(scenario), ..Self::default() }
    }

    pub(crate) fn violated<T>(&self, invariant: Invariant, text: impl Into<String>) -> Result<T, Violation> {
        Err(Violation { at: self.now, invariant, text: text.into() })
    }

    /// A node's policy permitted an instance, in which the node has this role if its signers use up material.
    pub(crate) fn permit(&mut self, node: u16, id: InstanceId, role: Option<Role>) {
        self.permitted.insert((node, id));
        if let Some(role) = role {
            self.signers.insert((node, id), role);
        }
    }

    /// A node was asked for a use of a rated key when its clock showed this second; `passed` says whether it permitted it.
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

    /// The slot of an instance.
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

    /// A person confirms a node's store that was set back, and answers for what the node repeats.
    pub(crate) fn confirmed(&mut self, node: u16) {
        self.stores.confirmed(node);
        self.slots.retain(|(at, ..), _| *at != node);
    }

    /// A node lost what it had in memory.
    pub(crate) fn crashed(&mut self, node: u16) {
        self.packages.retain(|(at, ..), _| *at != node);
        self.uses.retain(|(at, _), _| *at != node);
    }

    /// A message arrives at an honest node.
    pub(crate) fn delivered(&mut self, node: u16, from: u16, bytes: &Bytes) {
        self.masks.iter_mut().for_each(|masks| masks.delivered(bytes));
        let Some((id, envelope)) = instance_of(bytes) else { return };
        if let Some(id) = filling_of(from, id, &envelope) {
            self.fillings.insert((node, id));
        }
        if envelope.kind == PACKAGE {
            self.packages.entry((node, from, id, envelope.number)).or_insert(envelope.payload);
        }
    }

    /// Watches recoveries from now on.
    pub(crate) fn watch_recoveries(&mut self) {
        self.masks = Some(Masks::default());
    }

    /// An honest node sends a custodian's message, possibly one of a recovery.
    pub(crate) fn helped(&mut self, node: u16, bytes: &Bytes, honest: impl Fn(u16) -> bool) -> Result<(), Violation> {
        let answered = self.masks.as_mut().map_or(Ok(()), |masks| masks.sent(node, bytes, honest));
        answered.or_else(|text| self.violated(Invariant::MaskOnce, text))
    }

    /// A message leaves an honest node, possibly with votes on an entry of the ledger.
    pub(crate) fn voted(&mut self, node: u16, bytes: &Bytes) -> Result<(), Violation> {
        let said = ledger_of(bytes).map_or(Ok(()), |message| self.ledger.said(node, &message));
        said.or_else(|(invariant, text)| self.violated(invariant, text))
    }

    /// An honest node gave this vote by making a certificate that has it.
    pub(crate) fn voted_within(
        &mut self,
        node: u16,
        height: u64,
        certificate: &VoteCertificate,
    ) -> Result<(), Violation> {
        let (ballot, digest) = (certificate.ballot(), certificate.digest().to_vec());
        let voted = self.ledger.votes_for(node, height, ballot, digest);
        voted.or_else(|(invariant, text)| self.violated(invariant, text))
    }

    /// An honest node has an entry: its height, its digest, and what was decided.
    pub(crate) fn has_entry(&mut self, node: u16, entry: (u64, Digest, &Action)) -> Result<(), Violation> {
        let has = self.ledger.has(node, entry, self.now, &mut self.observations);
        has.or_else(|(invariant, text)| self.violated(invariant, text))
    }

    /// An honest node has these members after an entry.
    pub(crate) fn has_members(&mut self, node: u16, members: (u64, Vec<(u16, Vec<u8>)>)) -> Result<(), Violation> {
        let has = self.ledger.has_members(node, members);
        has.or_else(|(invariant, text)| self.violated(invariant, text))
    }

    /// A client believes an entry.
    pub(crate) fn client_believes(&mut self, entry: (u64, Digest)) -> Result<(), Violation> {
        let believes = self.ledger.believes("a client", entry);
        believes.or_else(|(invariant, text)| self.violated(invariant, text))
    }

    /// A message leaves an honest node.
    pub(crate) fn sent(&mut self, node: u16, to: u16, bytes: &Bytes) -> Result<(), Violation> {
        let Some((id, envelope)) = instance_of(bytes) else { return Ok(()) };
        if envelope.kind == RESEND {
            return Ok(());
        }
        if let Some(id) = filling_of(node, id, &envelope) {
            if self.fillings.insert((node, id)) {
                self.observations.note(Observation::Filled);
            }
            return Ok(());
        }
        if self.fillings.contains(&(node, id)) && envelope.kind >= PREPARE {
            return Ok(());
        }
        if !self.permitted.contains(&(node, id)) {
            return self.violated(Invariant::Permitted, format!("node {node} takes part in {id}, unasked"));
        }
        self.helps(node, id)?;
        match self.signers.get(&(node, id)) {
            Some(Role::Frost(signer)) if envelope.kind == SHARE => {
                self.signed((node, *signer), to, id, envelope.number)
            }
            Some(Role::Ecdsa) if envelope.kind == PRESIGNED => self.used_up(node, id, &envelope.payload),
            _ => Ok(()),
        }
    }

    /// A node sends its share of a presignature: it has never sent another one of it, nor ever will, in whichever of its lives.
    fn used_up(&mut self, node: u16, id: InstanceId, payload: &Bytes) -> Result<(), Violation> {
        let name = payload.get(..PRESIGNATURE_LEN).unwrap_or_default().to_vec();
        let share = payload.slice(payload.len().saturating_sub(SCALAR_LEN)..);
        let observations = &mut self.observations;
        let first = self.presignatures.entry((node, name)).or_insert_with(|| {
            observations.note(Observation::Presigned);
            (id, share.clone())
        });
        // The instance's id covers what is signed and the epoch: the digest and the session of a share.
        if *first == (id, share) {
            return Ok(());
        }
        let text = format!("node {node} uses a presignature in {} and in {id}", first.0);
        self.violated(Invariant::NonceOnce, text)
    }

    /// A node sends its signature share to a coordinator.
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

    /// A node has a result of a request under a public key. Two results of a scheme must be equal, except FROST's, where
    /// two coordinators may both get a signature.
    pub(crate) fn finished(&mut self, node: u16, of: (usize, Vec<u8>), result: &[u8]) -> Result<(), Violation> {
        let request = of.0;
        let first = self.results.entry(of).or_insert_with(|| result.to_vec());
        if first == result {
            return Ok(());
        }
        self.violated(Invariant::OneResult, format!("node {node} has another result of request {request} than others"))
    }

    /// Checks that a node is within its bounds.
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

/// The instance in which a node announces that it makes presignatures, if that is what a message says, and its id is as it should be.
fn filling_of(by: u16, id: InstanceId, envelope: &Envelope) -> Option<InstanceId> {
    let payload = Some(&envelope.payload).filter(|_| envelope.kind == ANNOUNCEMENT)?;
    let (key, rest) = payload.split_first_chunk::<32>()?;
    let (epoch, session) = rest.split_first_chunk::<4>()?;
    let (key, epoch) = (KeyId::from_bytes(*key), Epoch::new(u32::from_be_bytes(*epoch)));
    let filling = InstanceId::filling(&key, epoch, NodeId::try_from(by).ok()?, session.try_into().ok()?);
    Some(id).filter(|id| *id == filling)
}

/// The envelope of an instance's message.
fn instance_of(bytes: &Bytes) -> Option<(InstanceId, Envelope)> {
    let envelope = Envelope::decode(bytes.clone()).ok().filter(|envelope| envelope.stream == INSTANCES)?;
    let id = envelope.instance_id.as_ref().try_into().ok()?;
    Some((InstanceId(id), envelope))
}
