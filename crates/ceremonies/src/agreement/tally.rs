//! Counting votes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use theta_rounds::{Malformed, PartyId};

use super::value_digest;
use crate::certificate::QuorumCertificate;
use crate::schnorr::Signature;
use crate::statement::{Digest, Kind, Statement, StatementSlot};

/// A vote's body: a digest, or nothing for none.
pub(super) fn vote_of(body: &[u8]) -> Result<Option<Digest>, Malformed> {
    if body.is_empty() {
        return Ok(None);
    }
    Digest::try_from(body).map(Some).map_err(|_| Malformed("a vote is a digest or nothing"))
}

type Votes = BTreeMap<Option<Digest>, BTreeMap<PartyId, Signature>>;

/// All proposals and votes of the views that are kept.
pub(super) struct Tally {
    quorum: usize,
    votes: BTreeMap<StatementSlot, Votes>,
    /// By view: the value's digest, and the view of its polka.
    proposals: BTreeMap<u32, (Digest, Option<u32>)>,
    values: BTreeMap<Digest, Vec<u8>>,
    latest: BTreeMap<PartyId, u32>,
}

impl Tally {
    pub(super) const fn new(quorum: usize) -> Self {
        Self {
            quorum,
            votes: BTreeMap::new(),
            proposals: BTreeMap::new(),
            values: BTreeMap::new(),
            latest: BTreeMap::new(),
        }
    }

    pub(super) fn vote(&mut self, statement: &Statement) {
        let Ok(vote) = vote_of(statement.body()) else { return };
        let votes = self.votes.entry(statement.slot()).or_default();
        votes.entry(vote).or_default().insert(statement.author(), *statement.signature());
    }

    pub(super) fn propose(&mut self, view: u32, digest: Digest, polka: Option<u32>) {
        self.proposals.insert(view, (digest, polka));
    }

    pub(super) fn proposal(&self, view: u32) -> Option<(Digest, Option<u32>)> {
        self.proposals.get(&view).copied()
    }

    pub(super) fn keep_value(&mut self, value: Vec<u8>) {
        self.values.insert(value_digest(&value), value);
    }

    pub(super) fn value(&self, digest: &Digest) -> Option<&[u8]> {
        self.values.get(digest).map(Vec::as_slice)
    }

    /// Notes a view that an author has reached.
    pub(super) fn note(&mut self, author: PartyId, view: u32) {
        let latest = self.latest.entry(author).or_default();
        *latest = view.max(*latest);
    }

    /// The latest view that an author is known to have reached.
    pub(super) fn latest(&self, author: PartyId) -> u32 {
        self.latest.get(&author).copied().unwrap_or(0)
    }

    /// The latest view that more than `faulty` members have reached.
    pub(super) fn reached_by_more_than(&self, faulty: usize) -> Option<u32> {
        let mut views: Vec<u32> = self.latest.values().copied().collect();
        views.sort_unstable_by(|a, b| b.cmp(a));
        views.get(faulty).copied()
    }

    /// Whether a quorum voted in a slot, for whatever.
    pub(super) fn has_quorum(&self, slot: StatementSlot) -> bool {
        self.votes.get(&slot).is_some_and(|votes| votes.values().map(BTreeMap::len).sum::<usize>() >= self.quorum)
    }

    /// What a quorum voted for in a slot.
    pub(super) fn majority(&self, slot: StatementSlot) -> Option<Option<Digest>> {
        let won = |(_, signatures): &(_, &BTreeMap<_, _>)| signatures.len() >= self.quorum;
        self.votes.get(&slot)?.iter().find(won).map(|(vote, _)| *vote)
    }

    /// The latest quorum of votes of a kind for a value.
    fn certificate(&self, kind: Kind) -> Option<QuorumCertificate> {
        let from = StatementSlot::new(kind, 0)..=StatementSlot::new(kind, u32::MAX);
        self.votes.range(from).rev().find_map(|(slot, votes)| {
            let (vote, signatures) =
                votes.iter().find(|(vote, signatures)| vote.is_some() && signatures.len() >= self.quorum)?;
            Some(QuorumCertificate::new(*slot, Bytes::copy_from_slice(vote.as_ref()?), signatures.clone()))
        })
    }

    pub(super) fn polka(&self) -> Option<QuorumCertificate> {
        self.certificate(Kind::Prevote)
    }

    pub(super) fn decision(&self) -> Option<QuorumCertificate> {
        self.certificate(Kind::Precommit)
    }

    /// Frees what is of earlier views, and the values that nobody can vote for any more.
    pub(super) fn forget_views_before(&mut self, view: u32, keep: impl Iterator<Item = Digest>) {
        self.votes.retain(|slot, _| slot.number >= view);
        self.proposals.retain(|proposed, _| *proposed >= view);
        let voted = self.votes.values().flat_map(BTreeMap::keys).flatten();
        let proposed = self.proposals.values().map(|(digest, _)| digest);
        let live: BTreeSet<_> = voted.chain(proposed).copied().chain(keep).collect();
        self.values.retain(|digest, _| live.contains(digest));
    }
}
