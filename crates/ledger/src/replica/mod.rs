//! A member's side of the ledger: what it proposes, votes for, and remembers.
//!
//! A pure machine: time is ticks, the disk is in the effects, which are carried out in their order. What an entry is about, and whether
//! this node wants it, its [`Host`] says. It decides one height after the other, each by an [`Agreement`]; it works while somebody wants
//! something decided, and otherwise says every [`STATUS_TICKS`] ticks how far it is.

mod deciding;
mod gathering;
mod interface;
mod judging;
mod message;
mod peers;
mod pending;
mod receive;
mod said;
mod seats;
mod telling;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use theta_agreement::{Agreement, Ballot, Electorate, MemberKeys, VoteKind};
use theta_names::NodeId;
use theta_rounds::PartyId;

use crate::sitting::{MachineKey, Sitting};
use crate::{Action, Consent, Digest, Entry, LedgerState, Warrant};
use deciding::begin;
use gathering::Gathering;
use judging::{Bounds, fits};
use peers::Peers;
use pending::{Inserted, Pending, Source, Terms};

pub use interface::{DropReason, Effect, Host, Input, Memory, Recipient, ReplicaOffence};
pub use message::MOST_MESSAGE;
pub use said::Said;

/// Ticks between two messages of a replica that has nothing to do.
pub(crate) const STATUS_TICKS: u64 = 8;
/// Ticks between repeating what others may not have got.
const REPEAT_TICKS: u64 = 4;

/// One member's replica of the ledger.
pub struct Replica {
    keys: Option<Arc<MemberKeys>>,
    state: LedgerState,
    sitting: Sitting,
    agreement: Agreement,
    session: u64,
    memory: Memory,
    /// In what began below this height the node may have spoken, although it votes again.
    forgot_below: u64,
    /// Whether the host is to be told that it remembers, when nothing runs any more that began below that height: after a restart it would
    /// otherwise not know any more what it may have said there.
    owes_remembering: bool,
    said: BTreeMap<Ballot, Said>,
    /// What each machine has said: of a member that is stood in for, either may have been stolen.
    heard: BTreeMap<(PartyId, Ballot, MachineKey), Vec<u8>>,
    /// Who has committed an offence at this height, so that its votes are not looked at any more, if it has one machine alone.
    ignored: BTreeSet<PartyId>,
    /// Whose entries are not looked at any more before the next height.
    distrusted: BTreeSet<NodeId>,
    /// Whose candidates are not looked at any more in this tick, since one had a false consent.
    doubted: BTreeSet<NodeId>,
    /// Whose view was noted in this tick, which is far ahead.
    noted: BTreeSet<PartyId>,
    pending: Pending,
    peers: Peers,
    gathering: Gathering,
    /// Under which other machines vote at this height: of any two, one is for all that the other is for.
    warrants: Vec<Warrant>,
    /// Whether the host has not been told of them yet.
    unkept: bool,
    now: u64,
    ticks: u64,
}

impl core::fmt::Debug for Replica {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (height, view) = (self.state.height(), self.agreement.view());
        write!(f, "Replica(height {height}, view {view}, {:?}, {} pending)", self.memory, self.pending.len())
    }
}

impl Replica {
    /// Goes on where the store is: `state` follows from all entries in it, `said` is what was recorded of the next height, in order.
    /// Without `keys` it follows and does not vote. `memory` is [`Memory::Lost`] if the store may lack what this identity has said, since
    /// it was restored or set back; and at each start from then on until [`Effect::Remembers`]. `session` is drawn at random at each
    /// start.
    #[must_use]
    pub fn new(
        state: LedgerState,
        keys: Option<Arc<MemberKeys>>,
        said: Vec<Said>,
        (memory, session): (Memory, u64),
    ) -> Self {
        let sitting = state.sitting();
        // What was said of a later height shows that entries are missing that were there.
        let ahead = said.iter().any(|said| said.height > sitting.height());
        let memory = if ahead { Memory::Lost } else { memory };
        let here = said.into_iter().filter(|said| said.height == sitting.height());
        let kept: BTreeMap<Ballot, Said> = here.map(|said| (said.vote.ballot, said)).collect();
        let agreement = begin(&sitting, keys.as_deref(), memory, &kept);
        Self {
            keys,
            state,
            sitting,
            agreement,
            session,
            memory,
            forgot_below: 0,
            owes_remembering: false,
            said: kept,
            heard: BTreeMap::new(),
            ignored: BTreeSet::new(),
            distrusted: BTreeSet::new(),
            doubted: BTreeSet::new(),
            noted: BTreeSet::new(),
            pending: Pending::default(),
            peers: Peers::default(),
            gathering: Gathering::default(),
            warrants: Vec::new(),
            unkept: false,
            now: 0,
            ticks: 0,
        }
    }

    /// The group as of the last entry.
    #[must_use]
    pub const fn state(&self) -> &LedgerState {
        &self.state
    }

    /// Whether the store has all that this node has said, for all that is known. If not, the host must say so at each start, until
    /// [`Effect::Remembers`].
    #[must_use]
    pub const fn remembers(&self) -> bool {
        matches!(self.memory, Memory::Kept | Memory::Unconfirmed)
    }

    /// Whether more members than may lie say that they are further than this node: it has not caught up with the group.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        let own = self.state.height();
        let further = |party: &&PartyId| self.peers.height(party.node()).is_some_and(|height| height > own);
        self.sitting.members().iter().filter(further).count() > self.state.faulty()
    }

    /// Whether this node has voted at this height for an entry with this action: then it may be decided, whatever the node wants by now.
    #[must_use]
    pub fn speaks_for(&self, action: &Digest) -> bool {
        let values =
            self.said.values().filter_map(|said| self.agreement.value(&said.vote.body.as_slice().try_into().ok()?));
        values.filter_map(|value| Entry::decode(value).ok()).any(|entry| entry.action.digest() == *action)
    }

    /// Whether an action waits at this node for its decision.
    #[must_use]
    pub fn wants(&self, action: &Digest) -> bool {
        self.pending.contains(action)
    }

    /// For whom something waits that this node wants decided: for those whose consent counts and is missing, while there are too few of
    /// them; then for members that have not been heard at this height.
    #[must_use]
    pub fn awaited(&self, action: &Digest) -> Vec<NodeId> {
        let consents = self.pending.missing_consents(action, self.time());
        if !consents.is_empty() {
            return consents;
        }
        let (own, view) = (self.keys.as_ref().map(|keys| keys.party()), self.agreement.view());
        let last = Ballot::new(VoteKind::Precommit, view);
        let due = if self.said.contains_key(&last) { last } else { Ballot::new(VoteKind::Prevote, view) };
        let heard: BTreeSet<PartyId> =
            self.heard.keys().filter(|(_, ballot, _)| *ballot == due).map(|(party, ..)| *party).collect();
        let silent = |party: &PartyId| Some(*party) != own && !heard.contains(party);
        self.sitting.members().iter().copied().filter(silent).map(|party| party.node()).collect()
    }

    /// Whether this node may have spoken in what began at a height, without remembering it; `None` as long as nobody has confirmed its
    /// store. Nothing is said in what begins at a height before that height is decided; the height before the first one at which the node
    /// votes again is one that it may have voted at, but which was not decided before its start.
    #[must_use]
    pub const fn spoke_at(&self, height: u64) -> Option<bool> {
        match self.memory {
            Memory::Kept => Some(height < self.forgot_below),
            Memory::Unconfirmed => None,
            Memory::Lost => Some(true),
            Memory::From(from) => Some(height < from.saturating_sub(1)),
        }
    }

    /// From now on this node may have said what it does not remember: its store was set back. It votes again at heights at which it
    /// cannot have voted. Says whether that is news.
    pub fn lose_memory(&mut self) -> bool {
        let news = self.remembers();
        if news {
            self.memory = Memory::Lost;
            self.agreement.abstain();
            self.peers.forget_told();
        }
        news
    }

    /// The store has all that this node has said, for all that its peers know.
    pub fn confirm(&mut self) {
        if self.memory == Memory::Unconfirmed {
            self.memory = Memory::Kept;
            if let Some(keys) = self.keys.as_ref().filter(|keys| self.sitting.seats(keys)) {
                self.agreement.vote_as(&self.sitting, keys.party());
            }
        }
    }

    /// Takes one input.
    pub fn handle(&mut self, input: Input<'_>, host: &dyn Host) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::Tick(now) => self.tick(now, host, &mut out),
            Input::Connected(peer) => self.send_status(vec![peer], &mut out),
            Input::Message(from, bytes) => self.receive(from, bytes, host, &mut out),
            Input::Propose(action, reason) => self.propose(action, reason, Source::Client, &mut out),
            Input::Expect(action) => self.propose(action, Vec::new(), Source::Expected, &mut out),
            Input::Warrant(warrant) => self.bring_warrant(warrant, &mut out),
            Input::Withdraw(action) => self.pending.remove(&action),
            Input::Entries(entries) => self.take_certified(entries, &mut out),
        }
        self.settle(host, &mut out);
        self.keep_warrants(&mut out);
        out
    }

    fn propose(&mut self, action: Action, reason: Vec<u8>, source: Source, out: &mut Vec<Effect>) {
        let terms = match Terms::of(&self.state, &action, &reason) {
            Err(refusal) => return out.push(Effect::Dropped(action, DropReason::Refused(refusal))),
            Ok(terms) if !fits(&action, &reason, &terms.demand) => {
                return out.push(Effect::Dropped(action, DropReason::TooLong));
            }
            Ok(terms) => terms,
        };
        let digest = terms.subject.action;
        let inserted = self.pending.insert(source, (action.clone(), reason), terms, self.ticks);
        if inserted == Inserted::Full {
            return out.push(Effect::Dropped(action, DropReason::Full));
        }
        if !self.consent(&digest, out) && inserted == Inserted::News {
            match source {
                Source::Client => self.tell(&digest, out),
                Source::Expected | Source::Peer(_) => self.tell_leader(&digest, out),
            }
        }
    }

    /// The time of an entry that is proposed now: not after the end of the warrants under which it may be decided.
    fn time(&self) -> u64 {
        self.bounds().time(self.now)
    }

    fn bounds(&self) -> Bounds<'_> {
        Bounds { state: &self.state, sitting: &self.sitting, warrants: &self.warrants, latest: self.latest() }
    }

    /// Gives this node's consent to what it wants, if it counts and was not given; says whether it was.
    fn consent(&mut self, digest: &Digest, out: &mut Vec<Effect>) -> bool {
        // Before the first tick there is no time until which it could stand.
        let Some(keys) = self.keys.clone().filter(|_| self.now != 0) else { return false };
        let Some(subject) = self.pending.lacking(digest, keys.party().node()) else { return false };
        let consent = Consent::give(subject, &keys, self.now);
        self.pending.consent(digest, consent);
        self.tell(digest, out);
        true
    }

    fn tick(&mut self, now: u64, host: &dyn Host, out: &mut Vec<Effect>) {
        (self.now, self.ticks) = (now, self.ticks.saturating_add(1));
        self.peers.tick();
        self.noted.clear();
        self.doubted.clear();
        // What a member may be locked on may still be decided.
        if !self.agreement.is_locked() && self.agreement.polka().is_none() {
            for (action, own) in self.pending.expire(self.ticks) {
                if own {
                    out.push(Effect::Dropped(action, DropReason::TooFew));
                }
            }
        }
        for digest in self.pending.own() {
            self.consent(&digest, out);
        }
        let repeat = self.ticks.is_multiple_of(REPEAT_TICKS);
        if self.is_active() {
            self.agreement.tick();
            self.settle(host, out);
            if repeat {
                out.extend(self.votes().map(|votes| Effect::Send(Recipient::All, votes.encode())));
            }
        }
        self.tell_overdue(out);
        self.ask_ahead(out);
        self.tell_unproposed(out);
        let due = self.due();
        self.tell_candidates(&due, out);
        if self.ticks.is_multiple_of(STATUS_TICKS) {
            self.send_status(due, out);
            self.end_warrants();
            self.tell_warrants(out);
            self.expect_replacements();
        }
    }

    /// Whether there is something to decide: this node wants it, it may be decided already, or more members speak for a value than may
    /// do what they like. Votes for none are no reason: they would keep each other going for ever.
    fn is_active(&self) -> bool {
        let for_values = self.heard.iter().filter(|(_, body)| !body.is_empty());
        let spoken: BTreeSet<PartyId> = for_values.map(|((author, ..), _)| *author).collect();
        let undecided = self.agreement.is_locked() || self.agreement.polka().is_some();
        // Among many, who proposes next is told first.
        let (bounds, terms) = (self.bounds(), (self.time(), self.ticks, self.patience()));
        let overdue = self.pending.is_overdue(terms, |action, reason, time| bounds.allow(action, reason, time));
        overdue || undecided || spoken.len() > self.state.faulty()
    }

    /// Whether something waits, since that tick or before, that could be decided now.
    fn is_ready(&self, since: u64) -> bool {
        let bounds = self.bounds();
        self.pending.is_ready((self.time(), since), |action, reason, time| bounds.allow(action, reason, time))
    }
}
