//! What a ceremony is about, as the machine drives it.

use std::collections::BTreeSet;

use theta_rounds::{Abort, Malformed, PartyId};

use crate::bulletin_board::{BulletinBoard, Item};
use crate::certificate::QuorumCertificate;
use crate::evidence::CeremonyEvidence;
use crate::outcome::Outcome;
use crate::statement::{Digest, Statement, StatementSlot};

/// Whether a party remembers what it has said in a ceremony.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// It has just begun, or all that it received will be replayed to it.
    Kept,
    /// Its journal is lost, and the secret with it. It makes no statements, learns how the ceremony ends, and ends
    /// without a share.
    Lost,
}

/// Whether a statement can be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Keep,
    /// Too far ahead to be kept, but good to know that it exists.
    Note,
    Drop,
}

/// What a party makes: statements, and evidence against liars.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(super) say: Vec<(StatementSlot, Vec<u8>)>,
    pub(crate) faults: Vec<CeremonyEvidence>,
    /// The slots in which this party has made a statement; statements are final.
    pub(super) said: BTreeSet<StatementSlot>,
}

impl Outbox {
    /// Makes a statement, unless its slot is filled; then the body is not even computed.
    pub(crate) fn say(&mut self, slot: StatementSlot, body: impl FnOnce() -> Option<Vec<u8>>) {
        if !self.said.contains(&slot)
            && let Some(body) = body()
        {
            self.said.insert(slot);
            self.say.push((slot, body));
        }
    }
}

/// What a ceremony is about. All of it is deterministic: what is random comes from the party's secret of this ceremony.
pub(crate) trait Logic: Send + 'static {
    /// Whether a statement of that author and slot can be of use. Must bound what is kept.
    fn admission(&self, author: PartyId, slot: StatementSlot) -> Admission;
    /// Whether it is news that a statement exists which is not kept. Must bound how often it is.
    fn is_news(&self, author: PartyId, slot: StatementSlot) -> bool;
    /// A statement exists that is not kept.
    fn note(&mut self, author: PartyId, slot: StatementSlot);
    /// Takes a statement that is the first in its slot. If it cannot be read, its author is to blame.
    fn take(&mut self, statement: &Statement) -> Result<(), Malformed>;
    /// Whether a statement that contradicts an earlier one of its author's is of use all the same, since a proposed or decided set
    /// names it.
    fn is_wanted(&self, statement: &Statement) -> bool;
    /// Takes one that contradicts another, if it is wanted; says whether it is.
    fn take_other(&mut self, statement: &Statement) -> bool;
    /// Takes a certificate; returns whether it was new. No honest party passes on a false one.
    fn take_certificate(&mut self, certificate: &QuorumCertificate) -> Result<bool, Malformed>;
    /// Takes the value behind a digest; says whether it was wanted.
    fn take_value(&mut self, value: &[u8]) -> bool;
    /// This party has made statements that it does not remember: it must not make any that could contradict them.
    fn lose_memory(&mut self);
    /// Logical time passes.
    fn tick(&mut self);
    /// Does what is possible now. Called again as long as it makes new statements.
    fn advance(&mut self, board: &mut BulletinBoard, outbox: &mut Outbox);
    /// Digests of what is lacking and known by digest only.
    fn wants(&self) -> Vec<Digest>;
    /// Digests of what this party would judge, and a party that has it has named.
    fn named_by(&self, party: PartyId) -> Vec<Digest>;
    /// Digests of what was decided, and of what is in that.
    fn decided(&self) -> Vec<Digest>;
    /// What a digest stands for.
    fn supply(&self, digest: &Digest) -> Option<Item>;
    /// The decision and the activation.
    fn certificates(&self) -> [Option<&QuorumCertificate>; 2];
    /// The view of votes that are of use.
    fn view(&self) -> u32;
    /// The end, once.
    fn outcome(&mut self, board: &BulletinBoard, evidence: &[CeremonyEvidence]) -> Option<Result<Outcome, Abort>>;
    /// How many of the contributions that the present phase awaits are here, and how many it needs.
    fn contributions(&self) -> (usize, usize);
    /// Who has not said what is due.
    fn silent(&self, board: &BulletinBoard) -> Vec<PartyId>;
    /// What is due, for people.
    fn awaits(&self) -> &'static str;
}
