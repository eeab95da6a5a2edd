//! Counting votes.

use std::collections::{BTreeMap, BTreeSet};

use theta_rounds::PartyId;

use crate::vote::vote_of;
use crate::{Ballot, Digest, Signature, VoteCertificate, VoteKind};

type Votes = BTreeMap<Option<Digest>, BTreeMap<PartyId, Signature>>;

/// All proposals and votes of the views that are kept.
pub(crate) struct Tally {
    quorum: usize,
    votes: BTreeMap<Ballot, Votes>,
    /// By view: the value's digest, and the view of its polka.
    proposals: BTreeMap<u32, (Digest, Option<u32>)>,
    values: BTreeMap<Digest, Vec<u8>>,
    latest: BTreeMap<PartyId, u32>,
    /// Who has voted under a ballot for something that cannot be counted: see [`Self::spoke`].
    spoken: BTreeMap<Ballot, BTreeSet<PartyId>>,
}

impl Tally {
    pub(crate) const fn new(quorum: usize) -> Self {
        Self {
            quorum,
            votes: BTreeMap::new(),
            proposals: BTreeMap::new(),
            values: BTreeMap::new(),
            latest: BTreeMap::new(),
            spoken: BTreeMap::new(),
        }
    }

    pub(crate) fn vote(&mut self, author: PartyId, ballot: Ballot, body: &[u8], signature: &Signature) {
        let Ok(vote) = vote_of(body) else { return };
        let votes = self.votes.entry(ballot).or_default();
        votes.entry(vote).or_default().insert(author, *signature);
    }

    pub(crate) fn propose(&mut self, view: u32, digest: Digest, polka: Option<u32>) {
        self.proposals.insert(view, (digest, polka));
    }

    pub(crate) fn proposal(&self, view: u32) -> Option<(Digest, Option<u32>)> {
        self.proposals.get(&view).copied()
    }

    pub(crate) fn keep_value(&mut self, digest: Digest, value: Vec<u8>) {
        self.values.insert(digest, value);
    }

    pub(crate) fn value(&self, digest: &Digest) -> Option<&[u8]> {
        self.values.get(digest).map(Vec::as_slice)
    }

    /// Notes that an author has voted under a ballot, for whatever. It counts for [`Self::has_quorum`] alone, and so for time.
    pub(crate) fn spoke(&mut self, author: PartyId, ballot: Ballot) {
        self.spoken.entry(ballot).or_default().insert(author);
    }

    /// Notes a view that an author has reached.
    pub(crate) fn note(&mut self, author: PartyId, view: u32) {
        let latest = self.latest.entry(author).or_default();
        *latest = view.max(*latest);
    }

    /// The latest view that an author is known to have reached.
    pub(crate) fn latest(&self, author: PartyId) -> u32 {
        self.latest.get(&author).copied().unwrap_or(0)
    }

    /// The latest view that more than `faulty` members have reached.
    pub(crate) fn reached_by_more_than(&self, faulty: usize) -> Option<u32> {
        let mut views: Vec<u32> = self.latest.values().copied().collect();
        views.sort_unstable_by(|a, b| b.cmp(a));
        views.get(faulty).copied()
    }

    /// Whether a quorum voted under a ballot, for whatever.
    pub(crate) fn has_quorum(&self, ballot: Ballot) -> bool {
        let voted = self.votes.get(&ballot).into_iter().flat_map(BTreeMap::values).flat_map(BTreeMap::keys);
        let spoken = self.spoken.get(&ballot).into_iter().flatten();
        voted.chain(spoken).collect::<BTreeSet<_>>().len() >= self.quorum
    }

    /// What a quorum voted for under a ballot.
    pub(crate) fn majority(&self, ballot: Ballot) -> Option<Option<Digest>> {
        let won = |(_, signatures): &(_, &BTreeMap<_, _>)| signatures.len() >= self.quorum;
        self.votes.get(&ballot)?.iter().find(won).map(|(vote, _)| *vote)
    }

    /// A quorum's votes for a value under a ballot.
    pub(crate) fn quorum_at(&self, ballot: Ballot) -> Option<VoteCertificate> {
        let votes = self.votes.get(&ballot)?;
        let (vote, signatures) =
            votes.iter().find(|(vote, signatures)| vote.is_some() && signatures.len() >= self.quorum)?;
        Some(VoteCertificate::new(ballot, (*vote)?, signatures.clone()))
    }

    /// Quorums of votes of a kind for a value, the latest first.
    fn certificates(&self, kind: VoteKind) -> impl Iterator<Item = VoteCertificate> {
        let from = Ballot::new(kind, 0)..=Ballot::new(kind, u32::MAX);
        self.votes.range(from).rev().filter_map(|(ballot, _)| self.quorum_at(*ballot))
    }

    pub(crate) fn polka(&self) -> Option<VoteCertificate> {
        self.certificates(VoteKind::Prevote).next()
    }

    pub(crate) fn decision(&self) -> Option<VoteCertificate> {
        self.certificates(VoteKind::Precommit).next()
    }

    /// Frees what is of earlier views, and the values that nobody can vote for any more.
    pub(crate) fn forget_views_before(&mut self, view: u32, keep: impl Iterator<Item = Digest>) {
        self.votes.retain(|ballot, _| ballot.view >= view);
        self.spoken.retain(|ballot, _| ballot.view >= view);
        self.proposals.retain(|proposed, _| *proposed >= view);
        let voted = self.votes.values().flat_map(BTreeMap::keys).flatten();
        let proposed = self.proposals.values().map(|(digest, _)| digest);
        let live: BTreeSet<_> = voted.chain(proposed).copied().chain(keep).collect();
        self.values.retain(|digest, _| live.contains(digest));
    }
}
