//! The group's ledger at this node: what it has, what it says about the next entry, and what it wants to be in there.
//!
//! Ceremonies begin and end by its entries (`custodian/ceremonies`). What a dealer brought a node wants to be in there, too: then everybody
//! who knows the founding members can check which keys the group has. See `spec/ledger.md`.

mod bookkeeper;
mod member_requests;
mod members;
mod take_back;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use theta_ledger::{
    Action, AdoptedKey, CertifiedEntry, Input, LedgerState, Memory, Outcome, Recipient, Replica, Said, Warrant,
};
use theta_names::NodeId;
use theta_statements::CancelRequest;
use theta_store::Store;

use bookkeeper::{Bookkeeper, adopted_key};
pub(super) use member_requests::MemberRequests;

use super::ceremonies::Prospects;
use super::message::Message;
use super::work::{Record, Work};
use super::{Custodian, CustodyEffect};
use crate::request::{GroupRequest, To};
use crate::{CustodyError, Roster, Standing};

/// Ticks between looking for keys that the ledger lacks.
const ADOPT: u64 = 8;
/// Ticks between looking for what was begun or ended without this node.
const SETTLE: u64 = 4;
/// Keys that this node proposes at once.
const MOST_ADOPTED: usize = 16;

/// The replica as the store has it.
pub(super) fn open(
    store: &Store,
    group: &Roster,
    keys: Option<Arc<theta_ceremonies::CeremonyKeys>>,
) -> Result<Option<Replica>, CustodyError> {
    let genesis = match group.genesis() {
        Ok(Some(genesis)) => genesis,
        Err(error) if group.founding.is_some() => return Err(CustodyError::Genesis(error)),
        Ok(None) | Err(_) => return Ok(None),
    };
    let id = genesis.id();
    if store.ledger_id()? != Some(*id.as_bytes()) {
        // A restored node may have spoken in this ledger after its backup was made. A node whose store has had this ledger before, and
        // another one since, has spoken in it already.
        let lacks = store.restored_from()?.is_some() || store.is_used(id.as_bytes())?;
        store.write(|transaction| {
            transaction.use_up(id.as_bytes(), 0)?;
            transaction.begin_ledger(id.as_bytes(), lacks)
        })?;
    }
    let mut state = LedgerState::new(&genesis);
    while let Some(bytes) = store.ledger_entry(state.height().saturating_add(1))? {
        let certified = CertifiedEntry::decode(&bytes).map_err(|_| CustodyError::Ledger(state.height() + 1))?;
        state.restore(&certified.entry).map_err(|_| CustodyError::Ledger(certified.entry.height))?;
    }
    let height = state.height();
    let said = store.ledger_votes()?.iter().map(|vote| Said::decode(vote)).collect::<Result<Vec<_>, _>>();
    let said = said.map_err(|_| CustodyError::Ledger(height.saturating_add(1)))?;
    let memory = if store.lacks_ledger_votes()? { Memory::Lost } else { Memory::Unconfirmed };
    let [a, b, c, d, e, f, g, h, ..] = store.incarnation().opening.session;
    let session = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    let warrants =
        store.ledger_warrants()?.iter().map(|warrant| Warrant::decode(warrant)).collect::<Result<Vec<_>, _>>();
    let warrants = warrants.map_err(|_| CustodyError::Ledger(height.saturating_add(1)))?;
    let replica = Replica::new(state, keys, said, (memory, session)).under(warrants);
    if memory != Memory::Lost && !replica.remembers() {
        // The records that show it go with the next entry.
        store.write(|transaction| transaction.set_lacks_ledger_votes(true))?;
    }
    Ok(Some(replica))
}

/// What a client asked for whose action a peer tells of. No client asks for the other actions.
fn asked_of(action: Action, reason: Vec<u8>, state: &LedgerState) -> Option<CustodyEffect> {
    let (request, reason) = match action {
        Action::Begin(request) => (GroupRequest::Ceremony(request), reason),
        Action::SetState(change) => (GroupRequest::State(change), reason),
        Action::End { ceremony, outcome: Outcome::Cancelled } => {
            let request = state.running().get(&ceremony)?.request.clone();
            (GroupRequest::Cancel(CancelRequest { request }), reason)
        }
        Action::Members(change) => {
            let (request, reason) = members::asked(&change, &reason)?;
            (GroupRequest::Members(request), reason)
        }
        Action::Adopt(_) | Action::End { .. } => return None,
    };
    Some(CustodyEffect::Asked { request, reason })
}

impl Custodian {
    /// What the group has decided; `None` if a node of the group has no identity to vote with.
    #[must_use]
    pub fn ledger(&self) -> Option<&LedgerState> {
        self.ledger.as_ref().map(Replica::state)
    }

    /// Gives the replica an input.
    pub(super) fn drive_ledger(&mut self, input: Input<'_>, work: &mut Work) {
        let Self {
            store,
            table,
            group,
            running,
            ended,
            planned,
            begun_at,
            ticks,
            ledger,
            unserving,
            requests_of_members,
            ..
        } = self;
        let prospects = Prospects { running, ended, begun_at, now: *ticks };
        let planned = RefCell::new(planned);
        let host = Bookkeeper { store, table, group: &group.name, prospects, planned, asked: requests_of_members };
        let Some(replica) = ledger.as_mut() else { return };
        let (mut decided, mut dropped, warrants) = (false, Vec::new(), replica.stand_ins());
        for effect in replica.handle(input, &host) {
            match effect {
                theta_ledger::Effect::Record(said) => work.records.push(Record::LedgerVote(said.encode())),
                theta_ledger::Effect::Forgot => work.records.push(Record::LacksLedgerVotes(true)),
                theta_ledger::Effect::Remembers => work.records.push(Record::LacksLedgerVotes(false)),
                theta_ledger::Effect::Decided(entry) => {
                    decided = true;
                    let (height, entry) = (entry.entry.height, entry.encode());
                    work.records.push(Record::LedgerEntry { height, entry });
                }
                theta_ledger::Effect::Send(to, bytes) => {
                    let to = match to {
                        Recipient::All => To::All,
                        Recipient::One(node) => To::One(node),
                    };
                    work.send(to, &Message::Ledger(bytes.into()));
                }
                theta_ledger::Effect::Blame(node, offence) => {
                    work.effects.push(CustodyEffect::LedgerOffence { node, offence });
                }
                theta_ledger::Effect::Warrants(warrants) => {
                    work.records.push(Record::Warrants(warrants.iter().map(Warrant::encode).collect()));
                }
                theta_ledger::Effect::Unserving(refusal) => *unserving = Some(refusal),
                theta_ledger::Effect::Undecided(error) => work.effects.push(CustodyEffect::Fault(format!(
                    "the votes of a quorum of the ledger decide nothing: {error}; the height begins anew"
                ))),
                theta_ledger::Effect::Asked(action, reason) => {
                    work.effects.extend(asked_of(action, reason, replica.state()));
                }
                theta_ledger::Effect::Dropped(action, why) => dropped.push((action, why)),
            }
        }
        if decided || replica.stand_ins() != warrants {
            self.follow_members(work);
        }
        for (action, why) in dropped {
            match &action {
                Action::Members(_) => self.dropped_members(&action, &why),
                _ => self.dropped(&action, &why, work),
            }
        }
        if decided {
            self.reconcile(work);
        }
    }

    /// Takes encoded certified entries, whoever had them: a machine that nobody speaks to any more hears in this way that it is no member's.
    /// Returns the height that this node has reached. What is not certified, or does not follow, changes nothing.
    pub fn take_entries(&mut self, entries: &[Bytes], effects: &mut Vec<CustodyEffect>) -> u64 {
        let entries: Vec<CertifiedEntry> =
            entries.iter().map_while(|bytes| CertifiedEntry::decode(bytes).ok()).collect();
        if self.failed.is_none() && !entries.is_empty() {
            let mut work = Work::default();
            self.drive_ledger(Input::Entries(entries), &mut work);
            effects.append(&mut self.settle(work));
        }
        self.ledger().map_or(0, LedgerState::height)
    }

    /// Whether this node has not caught up yet with what the group has decided: its machine is no member's yet, or more members than may lie say
    /// that they are further.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        match self.followed.as_ref().map(|members| members.standing) {
            Some(Standing::Gone) => false,
            Some(Standing::Expected) => true,
            Some(Standing::Member) | None => self.ledger.as_ref().is_some_and(Replica::is_behind),
        }
    }

    pub(super) fn receive_ledger(&mut self, from: NodeId, bytes: &[u8], work: &mut Work) {
        self.drive_ledger(Input::Message(from, bytes), work);
    }

    pub(super) fn tick_ledger(&mut self, work: &mut Work) {
        self.judge_memory(work);
        self.vouch(work);
        self.drive_ledger(Input::Tick(self.now), work);
        if self.ticks.is_multiple_of(SETTLE) {
            self.reconcile(work);
            self.propose_ends(work);
        }
        self.propose_frozen(work);
        if self.ticks.is_multiple_of(ADOPT) && self.is_trusted() {
            // Others in each turn: some may never have the consents that they take.
            let mut lacking = self.lacking();
            let turn = usize::try_from(self.ticks / ADOPT).unwrap_or(0).saturating_mul(MOST_ADOPTED);
            let first = turn.checked_rem(lacking.len()).unwrap_or(0);
            lacking.rotate_left(first);
            for adopted in lacking.into_iter().take(MOST_ADOPTED) {
                self.drive_ledger(Input::Expect(Action::Adopt(adopted)), work);
            }
        }
    }

    /// Whether the store has all that this node has said in the ledger: its peers know whether it went back.
    fn judge_memory(&mut self, work: &mut Work) {
        let (trusted, contradicted) = (self.is_trusted(), self.witnesses.contradicting() >= self.needed().max(1));
        let (is_new, stands_in) = (self.is_new_here(), self.stands_in());
        let Some(replica) = self.ledger.as_mut() else { return };
        if stands_in {
            // Its peers cannot confirm it: what they remember is of the machine that is gone.
            replica.confirm();
        } else if contradicted && !is_new && replica.lose_memory() {
            work.records.push(Record::LacksLedgerVotes(true));
        } else if trusted {
            replica.confirm();
        }
    }

    /// The keys of this node's that the ledger does not have yet and could have. Of each the lowest version that is missing, since
    /// versions go in by their order.
    fn lacking(&self) -> Vec<AdoptedKey> {
        let Some(state) = self.ledger() else { return Vec::new() };
        let mut lacking: Vec<AdoptedKey> = Vec::new();
        for entry in self.table.iter() {
            let first = lacking.last().is_none_or(|last| last.key != entry.name);
            let known = state.keys().get(&entry.name).and_then(|line| line.versions.get(&entry.version));
            if known.and_then(|known| known.serving()).is_some_and(|serving| serving.epoch >= entry.epoch) {
                continue;
            }
            let Some(adopted) = adopted_key(&entry).filter(|_| first) else { continue };
            if state.check(&Action::Adopt(adopted.clone())).is_ok() {
                lacking.push(adopted);
            }
        }
        lacking
    }
}
