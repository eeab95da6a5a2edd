//! Lies in the ledger: of leaders, voters, and those who pass entries on to members and to clients.
//!
//! All liars of a group know each other's keys, so that one of them signs for all.

use std::collections::BTreeMap;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use theta_agreement::{Ballot, Digest, VoteKind};
use theta_ceremonies::CeremonyKeys;
use theta_ledger::{Action, CertifiedEntry, Consent, Entry, LedgerState, Outcome};
use theta_names::NodeId;
use theta_names::codec::{Reader, Writer};
use theta_rounds::PartyId;

use super::forger::Forger;
use crate::chance::below;
use crate::ledger::{Candidate, Letter, Vote, Votes, ledger_of, sign};

/// The most messages that a liar says again.
const MEMORY: usize = 200;

/// What a member does that keeps the ledger with the others and lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerLie {
    /// Tells nodes of odd numbers one thing and the others another, in what it proposes and in every vote; and clients a third.
    TwoFaced,
    /// Shows each of its proposals and votes to some nodes only, drawn anew for each.
    Fickle,
    /// Never gives its second vote.
    Reluctant,
    /// Withholds entries from members and clients, and shows nobody prevotes.
    Withholds,
    /// Passes on entries that are changed, or invented, with certificates that are not theirs.
    FalseCertificates,
    /// Shows prevotes that nobody cast for entries that nobody wants.
    FalsePrevotes,
    /// Tells any height.
    Boasts,
    /// Tells that ceremonies have ended that have not, or otherwise than they have; proposes so, too.
    FalseEnds,
    /// Tells of consents that nobody gave, and proposes what only liars consented to.
    FalseConsents,
    /// Wants members replaced, added and removed without the word of their operators, or of enough of the others; proposes so, too.
    FalseMembers,
    /// Says again what it said before.
    Repeats,
    /// Holds its proposals back until the others have left the view.
    LateProposals,
}

impl LedgerLie {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::TwoFaced,
        Self::Fickle,
        Self::Reluctant,
        Self::Withholds,
        Self::FalseCertificates,
        Self::FalsePrevotes,
        Self::Boasts,
        Self::FalseEnds,
        Self::FalseConsents,
        Self::FalseMembers,
        Self::Repeats,
        Self::LateProposals,
    ];

    /// What it is called in counts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TwoFaced => "ledger: equivocates",
            Self::Fickle => "ledger: shows votes to some",
            Self::Reluctant => "ledger: withholds second votes",
            Self::Withholds => "ledger: withholds entries",
            Self::FalseCertificates => "ledger: false certificates",
            Self::FalsePrevotes => "ledger: false prevotes",
            Self::Boasts => "ledger: false heights",
            Self::FalseEnds => "ledger: false ends of ceremonies",
            Self::FalseConsents => "ledger: false consents",
            Self::FalseMembers => "ledger: false changes of members",
            Self::Repeats => "ledger: repeats",
            Self::LateProposals => "ledger: late proposals",
        }
    }
}

/// The state of such a liar.
pub(super) struct LedgerLiar {
    lie: LedgerLie,
    forger: Forger,
    /// What it tells some nodes in the place of an entry, by the entry's digest, with that of the entry before.
    others: BTreeMap<Digest, (Digest, Digest)>,
    /// Which votes it shows to whom.
    shown: BTreeMap<(u16, u64, Ballot), bool>,
    said: Vec<Bytes>,
    held: BTreeMap<u16, Vec<Bytes>>,
}

impl LedgerLiar {
    /// `all` are the keys of all liars.
    pub(super) fn new(lie: LedgerLie, own: CeremonyKeys, all: Vec<CeremonyKeys>) -> Self {
        let (others, shown) = (BTreeMap::new(), BTreeMap::new());
        Self { lie, forger: Forger::new(own, all), others, shown, said: Vec::new(), held: BTreeMap::new() }
    }

    /// What it sends in place of a message of its replica; `None` if it leaves the message as it is.
    pub(super) fn tell(
        &mut self,
        to: u16,
        bytes: &Bytes,
        (state, rng): (&LedgerState, &mut ChaCha8Rng),
    ) -> Option<Vec<Bytes>> {
        let inner = ledger_of(bytes)?;
        let letter = Letter::read(&inner)?;
        let told = match (self.lie, letter) {
            (LedgerLie::TwoFaced, Letter::Votes(votes)) if to.is_multiple_of(2) => {
                vec![Letter::Votes(self.other_votes(votes, state))]
            }
            (LedgerLie::Fickle, Letter::Votes(votes)) => self.some_votes(to, votes, rng),
            (LedgerLie::Reluctant, Letter::Votes(mut votes)) => {
                votes.votes.retain(|vote| vote.ballot.kind != VoteKind::Precommit);
                vec![Letter::Votes(votes)]
            }
            (LedgerLie::Withholds, Letter::Entries(_)) => Vec::new(),
            (LedgerLie::Withholds, Letter::Votes(votes)) => vec![Letter::Votes(Votes { shown: None, ..votes })],
            (LedgerLie::FalseCertificates, Letter::Entries(entries)) => {
                let changed = |entry: &CertifiedEntry| self.forger.changes(entry, state, rng);
                vec![Letter::Entries(entries.iter().map(changed).collect())]
            }
            (LedgerLie::FalseCertificates, letter @ Letter::Status(..)) => {
                vec![letter, Letter::Entries(vec![self.forger.invents(state, rng)])]
            }
            (LedgerLie::FalsePrevotes, Letter::Votes(votes)) => {
                let view = votes.votes.iter().map(|vote| vote.ballot.view).max().unwrap_or(0);
                vec![Letter::Votes(Votes { shown: Some(self.forger.prevotes(state, view, rng)), ..votes })]
            }
            (LedgerLie::Boasts, Letter::Status(height, rest)) => {
                let height = match below(rng, 4) {
                    0 => u64::MAX,
                    1 => 0,
                    _ => height.saturating_add(below(rng, 12)).saturating_sub(4),
                };
                vec![Letter::Status(height, rest), Letter::Want(below(rng, 8))]
            }
            (LedgerLie::FalseEnds, letter) => self.false_ends(letter, state, rng),
            (LedgerLie::FalseConsents, letter) => self.false_consents(letter, state, rng),
            (LedgerLie::FalseMembers, letter) => self.false_members(letter, state, rng),
            (LedgerLie::Repeats, _) => return Some(self.again(bytes, rng)),
            (LedgerLie::LateProposals, letter) => return Some(self.late(to, bytes, &letter, rng)),
            _ => return None,
        };
        Some(told.iter().map(Letter::enclose).collect())
    }

    /// What it tells all others because of a message that has come.
    pub(super) fn hears(&mut self, from: u16, bytes: &Bytes, state: &LedgerState) -> Option<Bytes> {
        if self.lie != LedgerLie::FalseCertificates {
            return None;
        }
        let Letter::Votes(votes) = Letter::read(&ledger_of(bytes)?)? else { return None };
        let premature = self.forger.hears_votes(PartyId::of_node(NodeId::try_from(from).ok()?), &votes, state)?;
        Some(Letter::Entries(vec![premature]).enclose())
    }

    /// What it answers a client that wants the entries after its last; `genuine` is what its node has, and `state` follows from that.
    pub(super) fn serves(
        &mut self,
        mut genuine: Vec<Vec<u8>>,
        (state, rng): (&LedgerState, &mut ChaCha8Rng),
    ) -> Vec<Vec<u8>> {
        match self.lie {
            LedgerLie::Withholds => Vec::new(),
            LedgerLie::TwoFaced | LedgerLie::FalseCertificates => {
                // One true entry before a false one, now and then.
                let true_ones = usize::from(below(rng, 2) == 0);
                let mut told: Vec<_> = genuine.iter().take(true_ones).cloned().collect();
                for bytes in genuine.iter().skip(true_ones) {
                    let Ok(entry) = CertifiedEntry::decode(bytes) else { continue };
                    told.push(self.forger.changes(&entry, state, rng).encode());
                }
                told.push(self.forger.invents(state, rng).encode());
                told
            }
            _ => {
                genuine.push(self.forger.invents(state, rng).encode());
                genuine
            }
        }
    }

    /// Other proposals, and votes for them, signed as the true ones are.
    fn other_votes(&mut self, mut votes: Votes, state: &LedgerState) -> Votes {
        votes.shown = None;
        for Vote { ballot, body, signature } in &mut votes.votes {
            let other = if ballot.kind == VoteKind::Proposal {
                let Some(mut entry) = proposed(body) else { continue };
                let digest = entry.digest(state.id());
                entry.time += 1;
                self.others.insert(digest, (entry.digest(state.id()), entry.previous));
                Some((proposal(&entry), entry.previous))
            } else {
                let digest = Digest::try_from(body.as_slice()).ok();
                let other = digest.and_then(|digest| self.others.get(&digest));
                other.map(|(other, previous)| (other.to_vec(), *previous))
            };
            if let Some((other, previous)) = other {
                *signature = sign(self.forger.own(), state.id(), (votes.height, &previous), *ballot, &other);
                *body = other;
            }
        }
        votes
    }

    fn some_votes(&mut self, to: u16, mut votes: Votes, rng: &mut ChaCha8Rng) -> Vec<Letter> {
        let height = votes.height;
        votes.votes.retain(|vote| *self.shown.entry((to, height, vote.ballot)).or_insert_with(|| below(rng, 100) < 40));
        votes.shown = votes.shown.filter(|_| below(rng, 4) == 0);
        if votes.votes.is_empty() && votes.shown.is_none() { Vec::new() } else { vec![Letter::Votes(votes)] }
    }

    /// Ends of the ceremonies that run, none of them true.
    fn false_ends(&self, letter: Letter, state: &LedgerState, rng: &mut ChaCha8Rng) -> Vec<Letter> {
        let running = state.running().keys().next().copied();
        let false_end = |rng: &mut ChaCha8Rng, ceremony| {
            let garbage = |rng: &mut ChaCha8Rng| {
                let mut bytes = vec![0; 100];
                rng.fill_bytes(&mut bytes);
                bytes
            };
            let outcome = match below(rng, 3) {
                0 => Outcome::Aborted,
                1 => Outcome::Recovered,
                _ => Outcome::Activated { public: garbage(rng), certificate: garbage(rng) },
            };
            Action::End { ceremony, outcome }
        };
        match (letter, running) {
            (Letter::Candidate(candidate), _) => {
                let Action::End { ceremony, outcome: Outcome::Activated { public, mut certificate } } =
                    candidate.action
                else {
                    return vec![Letter::Candidate(candidate)];
                };
                if let Some(last) = certificate.last_mut() {
                    *last ^= 1;
                }
                let action = Action::End { ceremony, outcome: Outcome::Activated { public, certificate } };
                vec![Letter::Candidate(Candidate { action, ..candidate })]
            }
            (letter @ Letter::Status(..), Some(ceremony)) => {
                let (action, reason, consents) = (false_end(rng, ceremony), Vec::new(), vec![0, 0]);
                vec![letter, Letter::Candidate(Candidate { action, reason, consents })]
            }
            (Letter::Votes(votes), Some(ceremony)) => {
                let action = Action::End { ceremony, outcome: Outcome::Aborted };
                vec![Letter::Votes(self.proposes(votes, state, &|entry| Entry { action: action.clone(), ..entry }))]
            }
            (letter, _) => vec![letter],
        }
    }

    /// Consents that nobody gave; and what only liars agreed to, as something to decide and as a proposal.
    fn false_consents(&self, letter: Letter, state: &LedgerState, rng: &mut ChaCha8Rng) -> Vec<Letter> {
        match letter {
            Letter::Candidate(mut candidate) => {
                if let Some(last) = candidate.consents.last_mut().filter(|_| below(rng, 2) == 0) {
                    *last ^= 1;
                }
                vec![Letter::Candidate(candidate)]
            }
            letter @ Letter::Status(..) => {
                let (action, consents) = self.forger.unasked(state, rng);
                let consents = written(&consents);
                let mut told = vec![letter, Letter::Candidate(Candidate { action, reason: Vec::new(), consents })];
                // All are shown the same.
                let mut drawn = ChaCha8Rng::seed_from_u64(state.height());
                let led = self.forger.leads(state, &mut drawn);
                told.extend(led.map(|(height, entry)| Letter::Votes(self.first_proposal(height, &entry, state))));
                told
            }
            Letter::Votes(votes) => {
                let (action, consents) = self.forger.unasked(state, &mut drawn_for(&votes));
                let entry = |entry: Entry| Entry { action: action.clone(), consents: consents.clone(), ..entry };
                vec![Letter::Votes(self.proposes(votes, state, &entry))]
            }
            letter => vec![letter],
        }
    }

    /// Changes of the members that nobody has agreed to but liars, as something to decide and as a proposal.
    fn false_members(&self, letter: Letter, state: &LedgerState, rng: &mut ChaCha8Rng) -> Vec<Letter> {
        let change = match &letter {
            Letter::Votes(votes) => self.forger.false_change(state, &mut drawn_for(votes)),
            _ => self.forger.false_change(state, rng),
        };
        let Some((action, reason, consents)) = change else { return vec![letter] };
        match letter {
            letter @ Letter::Status(..) => {
                let consents = written(&consents);
                vec![letter, Letter::Candidate(Candidate { action, reason, consents })]
            }
            Letter::Votes(votes) => {
                let entry = |entry: Entry| {
                    let (action, reason, consents) = (action.clone(), reason.clone(), consents.clone());
                    Entry { action, reason, consents, ..entry }
                };
                vec![Letter::Votes(self.proposes(votes, state, &entry))]
            }
            letter => vec![letter],
        }
    }

    /// A proposal in the first view of a height.
    fn first_proposal(&self, height: u64, entry: &Entry, state: &LedgerState) -> Votes {
        let (ballot, body) = (Ballot::new(VoteKind::Proposal, 0), proposal(entry));
        let signature = sign(self.forger.own(), state.id(), (height, &entry.previous), ballot, &body);
        Votes { height, shown: None, votes: vec![Vote { ballot, body, signature }] }
    }

    /// The same votes, with something else in the place of what it proposes.
    fn proposes(&self, mut votes: Votes, state: &LedgerState, other: &dyn Fn(Entry) -> Entry) -> Votes {
        for Vote { ballot, body, signature } in &mut votes.votes {
            if let Some(entry) = proposed(body).filter(|_| ballot.kind == VoteKind::Proposal) {
                let previous = entry.previous;
                *body = proposal(&other(entry));
                *signature = sign(self.forger.own(), state.id(), (votes.height, &previous), *ballot, body);
            }
        }
        votes
    }

    fn again(&mut self, bytes: &Bytes, rng: &mut ChaCha8Rng) -> Vec<Bytes> {
        let mut told = vec![bytes.clone()];
        for _ in 0..below(rng, 3) {
            let at = usize::try_from(below(rng, self.said.len() as u64)).unwrap_or(0);
            told.extend(self.said.get(at).cloned());
        }
        if self.said.len() == MEMORY {
            self.said.remove(0);
        }
        self.said.push(bytes.clone());
        told
    }

    fn late(&mut self, to: u16, bytes: &Bytes, letter: &Letter, rng: &mut ChaCha8Rng) -> Vec<Bytes> {
        let held = self.held.entry(to).or_default();
        let proposes = |votes: &Votes| votes.votes.iter().any(|vote| vote.ballot.kind == VoteKind::Proposal);
        if matches!(letter, Letter::Votes(votes) if proposes(votes)) {
            held.truncate(MEMORY);
            held.push(bytes.clone());
            return Vec::new();
        }
        let mut told = vec![bytes.clone()];
        if below(rng, 8) == 0 {
            told.append(held);
        }
        told
    }
}

/// All are shown the same false proposal of a view: else nobody would have a quorum for it, whatever they believe.
fn drawn_for(votes: &Votes) -> ChaCha8Rng {
    let view = votes.votes.iter().map(|vote| vote.ballot.view).max().unwrap_or(0);
    ChaCha8Rng::seed_from_u64((votes.height << 32) | u64::from(view))
}

/// Consents as a message has them.
fn written(consents: &[Consent]) -> Vec<u8> {
    let writer = Writer::default().u16(u16::try_from(consents.len()).unwrap_or(0));
    let write =
        |writer: Writer, consent: &Consent| writer.node_id(consent.node).u64(consent.until).raw(&consent.signature);
    consents.iter().fold(writer, write).finish()
}

/// The entry in a proposal's body.
pub(super) fn proposed(body: &[u8]) -> Option<Entry> {
    Entry::decode(Reader::new(body).bytes().ok()?).ok()
}

/// A proposal of an entry, without prevotes of an earlier view.
fn proposal(entry: &Entry) -> Vec<u8> {
    Writer::default().bytes(&entry.encode()).finish()
}
