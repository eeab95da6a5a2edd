//! The result of one turn of a custodian: changes of the store, made in one transaction, and effects that wait for it.

use bytes::Bytes;
use theta_groups::Secret;
use theta_names::{Delivery, Version};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, KeyName};
use theta_store::{EpochRecord, Frozen, Incarnation, KeyError, KeyStates, Transaction, Witness};

use super::message::{Id, Message};
use crate::CustodyError;
use crate::request::{CustodyEffect, To};

/// Changes and effects.
#[derive(Default)]
pub(super) struct Work {
    pub(super) records: Vec<Record>,
    pub(super) effects: Vec<CustodyEffect>,
    /// Whether a statement of this node's in a ceremony is among the effects that was not sent before.
    pub(super) speaks: bool,
}

/// One change of the store.
pub(super) enum Record {
    Begin {
        id: Id,
        subject: Vec<u8>,
        seed: Secret<[u8; 32]>,
        started: u64,
    },
    /// A request is used up.
    Use {
        request: Id,
        now: u64,
    },
    /// The same, from now on if it was before.
    UseAgain {
        request: Id,
        now: u64,
    },
    Input {
        id: Id,
        index: u32,
        input: Vec<u8>,
    },
    /// Replaces the last input.
    Amend {
        id: Id,
        index: u32,
        input: Vec<u8>,
    },
    End {
        id: Id,
        outcome: Vec<u8>,
        epilogue: Vec<Bytes>,
    },
    /// Removes a ceremony that runs, with its seed and inputs.
    Discard(Id),
    /// Removes an epilogue, from which old shares follow.
    ForgetEpilogue(Id),
    Forget(Id),
    Key(Box<KeyWrite>),
    /// A key is not used here any more, before the group has decided so.
    Freeze(Box<Frozen>),
    Thaw(KeyName, Option<Version>),
    /// What the group has decided about the state of a key.
    States(KeyName, Box<KeyStates>),
    Seen(u16, Witness),
    /// The incarnation by which a peer contradicts this store.
    Contradicted(u16, Option<Incarnation>),
    /// Nothing is known of this peer's store any more, and of what it remembers.
    ForgetPeer(u16),
    /// What this node is about to say about the next entry of the ledger.
    LedgerVote(Vec<u8>),
    /// What was decided at a height of the ledger.
    LedgerEntry {
        height: u64,
        entry: Vec<u8>,
    },
    /// Whether this node may have said in the ledger what the store does not know.
    LacksLedgerVotes(bool),
    /// Which warrants serve.
    Warrants(Vec<Vec<u8>>),
}

/// A sharing that is used from now on, and replaces the one before.
pub(super) struct KeyWrite {
    pub(super) name: KeyName,
    pub(super) suite: Suite,
    pub(super) delivery: Delivery,
    pub(super) version: Version,
    pub(super) epoch: EpochRecord,
    pub(super) share: Option<AnyKeyShare>,
}

impl Work {
    pub(super) fn send(&mut self, to: To, message: &Message) {
        self.effects.push(CustodyEffect::Send { to, bytes: message.encode() });
    }

    /// The keys that change.
    pub(super) fn changed(&self) -> impl Iterator<Item = &KeyName> {
        self.records.iter().filter_map(|record| match record {
            Record::Key(write) => Some(&write.name),
            Record::Freeze(frozen) => Some(&frozen.key),
            Record::Thaw(name, _) | Record::States(name, _) => Some(name),
            _ => None,
        })
    }
}

impl Record {
    pub(super) fn apply(&self, transaction: &mut Transaction<'_>) -> Result<(), CustodyError> {
        match self {
            Self::Begin { id, subject, seed, started } => {
                Ok(transaction.begin_ceremony(*id, subject, Secret::new(*seed.expose()), *started)?)
            }
            Self::Use { request, now } => Ok(transaction.use_up(request, *now)?),
            Self::UseAgain { request, now } => Ok(transaction.use_up_again(request, *now)?),
            Self::Input { id, index, input } => {
                Ok(transaction.record_input(id, *index, &Secret::new(input.clone()))?)
            }
            Self::Amend { id, index, input } => Ok(transaction.amend_input(id, *index, &Secret::new(input.clone()))?),
            Self::End { id, outcome, epilogue } => {
                let epilogue: Vec<_> = epilogue.iter().map(|part| Secret::new(part.to_vec())).collect();
                Ok(transaction.end_ceremony(id, outcome, &epilogue)?)
            }
            Self::Discard(id) => Ok(transaction.discard_ceremony(id)?),
            Self::ForgetEpilogue(id) => Ok(transaction.forget_epilogue(id)?),
            Self::Forget(id) => Ok(transaction.forget_ceremony(id)?),
            Self::Key(write) => write.apply(transaction),
            Self::Freeze(frozen) => Ok(transaction.freeze(frozen)?),
            Self::Thaw(name, version) => Ok(transaction.thaw(name, *version)?),
            Self::States(name, states) => Ok(transaction.follow_states(name, states)?),
            Self::ForgetPeer(peer) => {
                transaction.forget_peer(*peer)?;
                Ok(transaction.remember_contradiction(*peer, None)?)
            }
            Self::Seen(peer, witness) => Ok(transaction.remember_peer(*peer, witness)?),
            Self::LedgerVote(vote) => Ok(transaction.record_ledger_vote(vote)?),
            Self::LedgerEntry { height, entry } => Ok(transaction.append_ledger(*height, entry)?),
            Self::LacksLedgerVotes(lacks) => Ok(transaction.set_lacks_ledger_votes(*lacks)?),
            Self::Warrants(warrants) => Ok(transaction.set_ledger_warrants(warrants)?),
            Self::Contradicted(peer, claim) => Ok(transaction.remember_contradiction(*peer, claim.as_ref())?),
        }
    }
}

impl KeyWrite {
    fn apply(&self, transaction: &mut Transaction<'_>) -> Result<(), CustodyError> {
        let Self { name, suite, delivery, version, epoch, share } = self;
        let share = share.as_ref().map(AnyKeyShare::to_bytes);
        let record = match transaction.key(name) {
            Ok(record) => Some(record),
            Err(KeyError::Unknown(_)) => None,
            Err(error) => return Err(error.into()),
        };
        if record.is_none() {
            transaction.create_key(name, suite.purpose())?;
        }
        let known = record.as_ref().and_then(|record| record.version(*version));
        let number = epoch.number;
        match (known, share) {
            (Some(known), Some(share)) if known.serving.as_ref().is_some_and(|epoch| epoch.number == number) => {
                return Ok(transaction.recover_share(name, *version, number, share)?);
            }
            (Some(_), share) => transaction.stage_epoch(name, *version, epoch.clone(), share)?,
            (None, share) => {
                let kind = (suite.name(), *delivery);
                transaction.begin_numbered_version(name, *version, kind, epoch.clone(), share)?;
            }
        }
        Ok(transaction.certify(name, *version, number, &epoch.certificate)?)
    }
}
