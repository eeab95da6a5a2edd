//! Runs a ceremony at one party: signatures, the bulletin board, and what others lack. The content of statements is up
//! to a [`Logic`].
//!
//! [`Ceremony`] is a [`Machine`] of its own and not a protocol under the driver: a statement belongs to its author,
//! whichever party passes it on, so slots are by author and not by sender; and a party that has finished keeps
//! answering the others.

mod asking;
mod epilogue;
mod hearing;
mod logic;
mod sending;
mod signed;

use core::convert::Infallible;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_rounds::{self, Effect, Machine, PartyId, Recipient, Slot};
use theta_sharing::EncodedShare;

use super::CeremonyKeys;
use super::bulletin_board::{BulletinBoard, Item, Posted};
use super::certificate::QuorumCertificate;
use super::evidence::CeremonyEvidence;
use super::group::group_named;
use super::outcome::{JoinError, Outcome};
use super::participant::Participant;
use super::plan::CeremonyPlan;
use super::statement::{Digest, Statement};
use sending::send;
use signed::Signed;

pub use epilogue::Remains;
pub use logic::Memory;
pub(super) use logic::{Admission, Logic, Outbox};

/// Statements, certificates and values.
pub const ITEMS: Slot = Slot { kind: 1, number: 0 };
/// What the sender has and lacks.
pub const SUMMARY: Slot = Slot { kind: 2, number: 0 };

/// Summaries of one party that are answered, and what each tick adds.
const REPLIES: u32 = 64;
const REPLIES_PER_TICK: u32 = 4;

/// A ceremony at one party.
///
/// It is a pure function of its arguments and the ordered inputs: replayed from a journal, it sends the same bytes. All
/// its secrets are derived from the `secret` that it is given: when that and the machine are destroyed, nobody can open
/// what was sealed to this party in the ceremony. Only inputs that raise [`Ceremony::revision`] need to be in the
/// journal, before the messages that they cause are sent.
pub struct Ceremony {
    plan: Arc<CeremonyPlan>,
    own: Arc<Participant>,
    logic: Box<dyn Logic>,
    board: BulletinBoard,
    outbox: Outbox,
    started: bool,
    finished: bool,
    revision: u64,
    /// Items of the last input that changed what this party knows.
    accepted: Vec<u8>,
    /// The parties that have contradicted themselves, and the contradicting statements that were examined all the same,
    /// since a proposed or decided set named them.
    contradicted: BTreeSet<PartyId>,
    others: BTreeSet<Digest>,
    ignored: BTreeSet<PartyId>,
    replies: BTreeMap<PartyId, u32>,
    /// Whether another party has said something new since the last tick.
    news: bool,
    /// How often this party has asked, and for how many ticks it has not.
    asked: usize,
    unasked: u32,
    evidence: Vec<CeremonyEvidence>,
    /// What is known of the messages that come next.
    ahead: Signed,
}

/// The inputs of a ceremony: it asks no stock for anything.
pub type Input = theta_rounds::Input<Infallible>;
/// The effects of a ceremony. If it blames a party for a statement, it has evidence that convinces anybody.
pub type Effects = theta_rounds::Effects<Ceremony>;

impl Ceremony {
    /// Joins a ceremony. `secret` is drawn for this ceremony alone, and kept as long as it runs and no longer; a party
    /// that lost its journal makes no statement that depends on it. `share` is this party's share of the key with which
    /// the ceremony begins: without it, a holder takes part but neither deals nor helps, unless it is the owner of the
    /// lost share. If that owner has lost its journal, it listens for what it has asked before, and then asks anew.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(
        plan: Arc<CeremonyPlan>,
        keys: Arc<CeremonyKeys>,
        secret: Secret<[u8; 32]>,
        share: Option<&EncodedShare>,
        memory: Memory,
    ) -> Result<Self, JoinError> {
        if plan.member(keys.party()) != Some(keys.member()) {
            return Err(JoinError::Stranger);
        }
        let own = Arc::new(Participant::new(keys, *plan.id(), secret));
        let group = group_named(plan.group().name()).ok_or(JoinError::Plan)?;
        let logic = group.logic(&plan, &own, share, memory)?;
        Ok(Self::new(plan, own, logic))
    }

    fn new(plan: Arc<CeremonyPlan>, own: Arc<Participant>, logic: Box<dyn Logic>) -> Self {
        Self {
            plan,
            own,
            logic,
            board: BulletinBoard::default(),
            outbox: Outbox::default(),
            started: false,
            finished: false,
            revision: 0,
            accepted: Vec::new(),
            contradicted: BTreeSet::new(),
            others: BTreeSet::new(),
            ignored: BTreeSet::new(),
            replies: BTreeMap::new(),
            news: false,
            asked: 0,
            unasked: 0,
            evidence: Vec::new(),
            ahead: Signed::default(),
        }
    }

    /// Takes one input, as [`Machine::handle`] does. No ceremony uses the generator of that method, since its
    /// randomness is derived from its secret.
    pub fn take(&mut self, input: Input) -> Effects {
        let mut out = Vec::new();
        let before = self.revision;
        self.accepted.clear();
        match input {
            Input::Start => {
                self.revision += u64::from(!self.started);
                self.started = true;
            }
            Input::Message { from, slot, channel, payload } => self.receive(from, slot, channel, &payload, &mut out),
            Input::Tick if self.started && !self.finished => self.tick(&mut out),
            Input::Tick => {}
            Input::Supply(nothing) => match nothing {},
        }
        // An input that changes nothing makes nothing possible: a repeated message costs no more than reading it.
        if self.started && self.revision != before {
            self.settle(&mut out);
        }
        out
    }

    /// Rises with every input that changed what this party knows.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The items of the last message that changed what this party knows, as a message: replaying it replaces replaying
    /// the whole. Empty if there are none, and after inputs of other kinds.
    #[must_use]
    pub fn accepted(&self) -> &[u8] {
        &self.accepted
    }

    /// The parties that lied so far, with evidence.
    #[must_use]
    pub fn evidence(&self) -> &[CeremonyEvidence] {
        &self.evidence
    }

    /// How many certificates there are, and in which view its members vote: what it has come to beside its [contributions](Machine::contributions).
    /// Neither falls.
    #[must_use]
    pub fn stage(&self) -> (usize, u32) {
        (self.logic.certificates().into_iter().flatten().count(), self.logic.view())
    }

    /// Whose statements are awaited.
    #[must_use]
    pub fn silent(&self) -> Vec<PartyId> {
        self.logic.silent(&self.board)
    }

    /// What is awaited, for people: the end of a sentence that begins "It waits for".
    #[must_use]
    pub fn awaits(&self) -> &'static str {
        self.logic.awaits()
    }

    fn tick(&mut self, out: &mut Effects) {
        self.revision += 1;
        self.logic.tick();
        self.board.tick();
        for replies in self.replies.values_mut() {
            *replies = REPLIES.min(*replies + REPLIES_PER_TICK);
        }
        self.ask(out);
    }

    fn certificates(&self) -> [Option<&QuorumCertificate>; 2] {
        self.logic.certificates()
    }

    const fn board(&self) -> &BulletinBoard {
        &self.board
    }

    /// The decided value and dealings, as far as they are here.
    fn decided(&self) -> Vec<Item> {
        self.logic.decided().iter().filter_map(|digest| self.logic.supply(digest)).collect()
    }

    /// Goes on until there is nothing more to say.
    fn settle(&mut self, out: &mut Effects) {
        loop {
            self.logic.advance(&mut self.board, &mut self.outbox);
            core::mem::take(&mut self.outbox.faults).into_iter().for_each(|fault| self.convict(fault, out));
            let mut said = Vec::new();
            for (slot, body) in core::mem::take(&mut self.outbox.say) {
                let statement = self.own.sign(slot, body);
                self.hear_own(&statement);
                said.push(Item::Statement(statement));
            }
            if said.is_empty() {
                break;
            }
            // The inputs that made this party sign are replayed to it, so it never meets its own statements as news.
            self.revision += 1;
            send(Recipient::All, &said, out);
        }
        if !self.finished
            && let Some(outcome) = self.logic.outcome(&self.board, &self.evidence)
        {
            self.finished = true;
            out.push(Effect::Finished(outcome));
        }
    }

    fn hear_own(&mut self, statement: &Statement) {
        if matches!(self.board.post(statement), Posted::New) {
            // Our own statements are well-formed.
            let _ = self.logic.take(statement);
        }
    }
}

impl Machine for Ceremony {
    type Output = Outcome;
    type Misbehaviour = CeremonyEvidence;
    type Ask = Infallible;
    type Supply = Infallible;

    fn handle(&mut self, input: Input, _rng: &mut dyn CryptoRng) -> Effects {
        self.take(input)
    }

    fn contributions(&self) -> (usize, usize) {
        self.logic.contributions()
    }

    fn awaits(&self, party: PartyId) -> bool {
        !self.finished && party != self.own.party() && self.plan.member(party).is_some()
    }

    fn is_finished(&self) -> bool {
        self.finished
    }

    /// Parties that come late still get answers and help.
    fn lingers(&self) -> bool {
        self.finished
    }
}
