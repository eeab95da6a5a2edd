//! Entries that nobody decided, with certificates that are almost right.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;
use theta_agreement::{Ballot, Digest, SIGNATURE_LEN, Signature, VoteCertificate, VoteKind};
use theta_ceremonies::CeremonyKeys;
use theta_ledger::founding::CardContent;
use theta_ledger::{
    Action, CertifiedEntry, Consent, Entry, LONGEST_WARRANT, LedgerState, MemberChange, Outcome, StandIn, Warrant,
};
use theta_names::{Delivery, KeyState, NodeId};
use theta_rounds::PartyId;
use theta_schemes::Suite;
use theta_statements::{CeremonyRequest, KeyChange, StateChange};

use super::ledger::proposed;
use crate::chance::{below, one_of};
use crate::founded::{false_card, operator};
use crate::group::EPOCH;
use crate::ledger::{Votes, sign};

/// The most proposals of one height that are kept.
const MOST_PROPOSED: usize = 16;

/// All liars of a group, and what they have heard.
pub(super) struct Forger {
    keys: Vec<CeremonyKeys>,
    own: CeremonyKeys,
    /// What was proposed at the height that is about to be decided.
    proposed: Vec<(u64, Entry)>,
    /// True prevotes on that, by height, view and digest.
    prevotes: BTreeMap<(u64, u32, Digest), BTreeMap<PartyId, Signature>>,
    /// An entry for which a quorum has cast its first votes, with these in the place of the second ones.
    premature: Option<CertifiedEntry>,
}

impl Forger {
    /// `keys` are those of all liars.
    pub(super) fn new(own: CeremonyKeys, keys: Vec<CeremonyKeys>) -> Self {
        Self { keys, own, proposed: Vec::new(), prevotes: BTreeMap::new(), premature: None }
    }

    pub(super) const fn own(&self) -> &CeremonyKeys {
        &self.own
    }

    /// Collects the votes of others. As soon as as many have cast their first vote for an entry as decide, the liars' among them, that entry
    /// with these votes.
    pub(super) fn hears_votes(&mut self, from: PartyId, votes: &Votes, state: &LedgerState) -> Option<CertifiedEntry> {
        let height = state.height().saturating_add(1);
        if votes.height != height {
            return None;
        }
        self.proposed.retain(|(of, _)| *of == height);
        self.prevotes.retain(|(of, ..), _| *of == height);
        for vote in &votes.votes {
            if let Some(entry) = proposed(&vote.body).filter(|_| vote.ballot.kind == VoteKind::Proposal) {
                self.proposed.push((height, entry));
            } else if let Ok(digest) = Digest::try_from(vote.body.as_slice())
                && vote.ballot.kind == VoteKind::Prevote
            {
                self.prevotes.entry((height, vote.ballot.view, digest)).or_default().insert(from, vote.signature);
            }
        }
        self.proposed.truncate(MOST_PROPOSED);
        for ((_, view, digest), heard) in &self.prevotes {
            let entry = self.proposed.iter().map(|(_, entry)| entry).find(|entry| entry.digest(state.id()) == *digest);
            let Some(entry) = entry else { continue };
            let ballot = Ballot::new(VoteKind::Prevote, *view);
            let mut votes = heard.clone();
            votes.extend(self.votes(entry, state, ballot));
            let certificate = VoteCertificate::new(ballot, *digest, votes);
            let premature = CertifiedEntry { entry: entry.clone(), certificate, warrants: Vec::new() };
            if premature.certificate.signatures().len() >= state.quorum() && self.premature.as_ref() != Some(&premature)
            {
                self.premature = Some(premature.clone());
                return Some(premature);
            }
        }
        None
    }

    /// A decided entry, changed, or with a certificate that has become a false one.
    pub(super) fn changes(
        &self,
        true_one: &CertifiedEntry,
        state: &LedgerState,
        rng: &mut ChaCha8Rng,
    ) -> CertifiedEntry {
        let CertifiedEntry { entry, certificate, .. } = true_one.clone();
        let (ballot, mut signatures) = (certificate.ballot(), certificate.signatures().clone());
        let other = Entry { time: entry.time.saturating_add(1 + below(rng, 1_000)), ..entry.clone() };
        let digest = other.digest(state.id());
        let (entry, certificate) = match below(rng, 5) {
            // The true votes, of another entry.
            0 => (other, certificate),
            // The same under the digest of this one, with the liars' own votes for it.
            1 => {
                signatures.extend(self.votes(&other, state, ballot));
                (other, VoteCertificate::new(ballot, digest, signatures))
            }
            // The liars' votes alone.
            2 => {
                let votes = self.votes(&other, state, ballot);
                (other, VoteCertificate::new(ballot, digest, votes))
            }
            // Prevotes in the place of precommits.
            3 => {
                let ballot = Ballot::new(VoteKind::Prevote, ballot.view);
                (other, VoteCertificate::new(ballot, digest, signatures))
            }
            // The entry as it is, with one vote fewer than a quorum.
            _ => {
                while signatures.len() >= state.quorum() {
                    signatures.pop_first();
                }
                let digest = *certificate.digest();
                (entry, VoteCertificate::new(ballot, digest, signatures))
            }
        };
        CertifiedEntry { entry, certificate, warrants: Vec::new() }
    }

    /// An entry that would be next, and is not decided.
    pub(super) fn invents(&self, state: &LedgerState, rng: &mut ChaCha8Rng) -> CertifiedEntry {
        let next = |known: &&CertifiedEntry| known.entry.height == state.height().saturating_add(1);
        if let Some(premature) = self.premature.as_ref().filter(next) {
            return premature.clone();
        }
        let entry = self.wanted_by_liars(state, rng);
        let ballot = Ballot::new(VoteKind::Precommit, u32::try_from(below(rng, 3)).unwrap_or(0));
        let mut votes = self.votes(&entry, state, ballot);
        if below(rng, 3) > 0 {
            self.pad(&mut votes, state, rng);
        }
        let certificate = VoteCertificate::new(ballot, entry.digest(state.id()), votes);
        CertifiedEntry { entry, certificate, warrants: Vec::new() }
    }

    /// Prevotes that nobody cast, and an entry that they are for.
    pub(super) fn prevotes(&self, state: &LedgerState, view: u32, rng: &mut ChaCha8Rng) -> (VoteCertificate, Vec<u8>) {
        let entry = self.wanted_by_liars(state, rng);
        let ballot = Ballot::new(VoteKind::Prevote, view);
        let mut votes = self.votes(&entry, state, ballot);
        self.pad(&mut votes, state, rng);
        (VoteCertificate::new(ballot, entry.digest(state.id()), votes), entry.encode())
    }

    /// What only liars want to begin, with their consents, which are true, and false ones of others.
    pub(super) fn unasked(&self, state: &LedgerState, rng: &mut ChaCha8Rng) -> (Action, Vec<Consent>) {
        let action = unasked_action(state, rng);
        let subject = state.consent_subject(&action);
        let give = |keys: &CeremonyKeys| Consent::give(&subject, keys, EPOCH);
        let mut consents: Vec<Consent> = self.keys.iter().map(give).collect();
        if below(rng, 2) == 0 {
            with_others(&mut consents, state);
        }
        consents.sort_by_key(|consent| consent.node);
        (action, consents)
    }

    /// What this liar proposes if it leads the first view of the height that comes, whether its node wants anything decided or not: something
    /// that nobody else asked for, with the consents of all, of which only the liars' are true.
    pub(super) fn leads(&self, state: &LedgerState, rng: &mut ChaCha8Rng) -> Option<(u64, Entry)> {
        let height = state.height().saturating_add(1);
        let place = usize::try_from(height).ok()?.checked_rem(state.members().len())?;
        if state.members().get(place)?.party() != self.own.party() {
            return None;
        }
        let (action, mut consents) = self.unasked(state, rng);
        with_others(&mut consents, state);
        consents.sort_by_key(|consent| consent.node);
        Some((height, Entry { consents, ..state.next_entry(action, Vec::new(), EPOCH) }))
    }

    /// A change of the members that only liars want, with its reason and their consents; `None` in a group without cards.
    pub(super) fn false_change(
        &self,
        state: &LedgerState,
        rng: &mut ChaCha8Rng,
    ) -> Option<(Action, Vec<u8>, Vec<Consent>)> {
        let others = state.members().iter().map(|member| member.node().get());
        let others: Vec<u16> = others.filter(|node| self.keys.iter().all(|keys| keys.party().get() != *node)).collect();
        let node = one_of(rng, &others)?;
        let known = state.seats().get(&NodeId::try_from(node).ok()?)?.card()?.content().clone();
        let (word, change) = match below(rng, 4) {
            0 => (false, MemberChange::Add(false_card(None).ok()?)),
            1 => (false, MemberChange::Remove { node }),
            _ => (true, MemberChange::Replace { node, card: false_card(Some(&known)).ok()? }),
        };
        let own = operator(self.own.party().get());
        let reason = match below(rng, 3) {
            _ if !word => Vec::new(),
            0 => own.sign(&change.signed_by_operator(state.id(), &known.ceremony_key)).to_vec(),
            1 => self.false_warrant(state, node, &known)?,
            _ => Vec::new(),
        };
        let action = Action::Members(change);
        let subject = state.consent_subject(&action);
        let mut consents: Vec<Consent> = self.keys.iter().map(|keys| Consent::give(&subject, keys, EPOCH)).collect();
        if node.is_multiple_of(2) {
            with_others(&mut consents, state);
        }
        consents.sort_by_key(|consent| consent.node);
        if !reason.is_empty() {
            consents.clear();
        }
        Some((action, reason, consents))
    }

    /// A warrant with the true signatures of the liars' operators, and others' names under the same.
    fn false_warrant(&self, state: &LedgerState, node: u16, known: &CardContent) -> Option<Vec<u8>> {
        let (node, card) = (NodeId::try_from(node).ok()?, false_card(Some(known)).ok()?);
        let stand_in = StandIn { node, gone: known.ceremony_key, card };
        let from = state.height().saturating_add(1);
        let mut warrant = Warrant::new(*state.id(), from, EPOCH + LONGEST_WARRANT, vec![stand_in]).ok()?;
        for member in state.members() {
            let liar = self.keys.iter().find(|keys| keys.party() == member.party()).unwrap_or(&self.own);
            warrant = warrant.with_signature(member.node(), &operator(liar.party().get()));
        }
        Some(warrant.encode())
    }

    /// The liars' votes for an entry, as true as theirs can be.
    fn votes(&self, entry: &Entry, state: &LedgerState, ballot: Ballot) -> BTreeMap<PartyId, Signature> {
        let digest = entry.digest(state.id());
        let vote = |keys: &CeremonyKeys| {
            (keys.party(), sign(keys, state.id(), (entry.height, &entry.previous), ballot, &digest))
        };
        self.keys.iter().map(vote).collect()
    }

    /// Adds signatures of the others, which are none.
    fn pad(&self, votes: &mut BTreeMap<PartyId, Signature>, state: &LedgerState, rng: &mut ChaCha8Rng) {
        let own = votes.values().next().copied();
        for member in state.members() {
            let mut garbage = [0; SIGNATURE_LEN];
            rng.fill_bytes(&mut garbage);
            votes.entry(member.party()).or_insert(own.filter(|_| below(rng, 2) == 0).unwrap_or(garbage));
        }
    }

    /// An entry that lacks nothing but votes, if there is a key that could be disabled: that takes nobody's consent.
    fn wanted_by_liars(&self, state: &LedgerState, rng: &mut ChaCha8Rng) -> Entry {
        let disable = state.keys().iter().map(|(key, line)| StateChange {
            not_before: 0,
            key: key.clone(),
            version: None,
            state: KeyState::Disabled,
            generation: line.generation.saturating_add(1),
        });
        let disable = disable.map(Action::SetState).find(|action| state.check(action).is_ok());
        let (action, consents) = disable.map_or_else(|| self.unasked(state, rng), |action| (action, Vec::new()));
        Entry { consents, ..state.next_entry(action, Vec::new(), EPOCH) }
    }
}

/// Adds consents in the names of all others, which are none.
fn with_others(consents: &mut Vec<Consent>, state: &LedgerState) {
    let Some(Consent { until, signature, .. }) = consents.first().copied() else { return };
    let others = state.members().iter().map(|member| member.node());
    let others: Vec<_> = others.filter(|node| consents.iter().all(|known| known.node != *node)).collect();
    consents.extend(others.into_iter().map(|node| Consent { node, until, signature }));
}

/// A ceremony that no client asked for.
fn unasked_action(state: &LedgerState, rng: &mut ChaCha8Rng) -> Action {
    let mut nonce = [0; 32];
    rng.fill_bytes(&mut nonce);
    let holders = state.members().iter().map(|member| member.node().get()).collect();
    let known = state.keys().keys().next().filter(|_| below(rng, 2) == 0);
    let change = match (known, "unasked".parse()) {
        (Some(key), _) => KeyChange::Refresh { key: key.clone(), version: None },
        (None, Ok(key)) => {
            KeyChange::Create { key, suite: Suite::FrostEd25519.into(), delivery: Delivery::All, k: 1, holders }
        }
        (None, Err(_)) => return Action::End { ceremony: state.height(), outcome: Outcome::Aborted },
    };
    Action::Begin(CeremonyRequest { nonce, change })
}
