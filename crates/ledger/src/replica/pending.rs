//! What waits for its decision.

use std::collections::{BTreeMap, BTreeSet};

use theta_agreement::Digest;
use theta_names::NodeId;

use crate::{Action, Consent, ConsentSubject, Demand, LedgerState, Refusal};

/// Ticks after which an action that too few agree to is given up.
const PATIENCE: u64 = 240;
/// Among many, an action that members come to one after the other waits so many times as long as another one.
const EXPECTED: u64 = 4;
/// Actions of this node that wait at once.
const MOST_OWN: usize = 256;
/// Actions that others are told of at once.
pub(super) const MOST_TOLD: usize = 8;
/// Actions that wait on the word of one peer.
const MOST_OF_PEER: usize = 16;

struct Waiting {
    action: Action,
    reason: Vec<u8>,
    since: u64,
    source: Source,
    terms: Terms,
    consents: BTreeMap<NodeId, Consent>,
    /// Those whose reason for it this node was shown.
    shown: BTreeSet<NodeId>,
}

/// Whose consent something takes, and to what exactly.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    pub(super) demand: Demand,
    pub(super) subject: ConsentSubject,
}

impl Terms {
    /// Those of an action, if it can follow.
    pub(super) fn of(state: &LedgerState, action: &Action, reason: &[u8]) -> Result<Self, Refusal> {
        state.check(action)?;
        Ok(Self { demand: state.demand(action, reason)?, subject: state.consent_subject(action) })
    }
}

/// Something that may be decided, with the consents that it has.
pub(super) struct Wanted<'a> {
    pub(super) action: &'a Action,
    pub(super) reason: &'a [u8],
    pub(super) consents: Vec<Consent>,
}

impl Waiting {
    /// Takes another reason for the same action.
    fn explain(&mut self, reason: Vec<u8>, terms: Terms) {
        if terms.demand.needed != self.terms.demand.needed {
            self.consents.clear();
        }
        (self.reason, self.terms) = (reason, terms);
    }

    /// The consents that an entry of this time may have; `None` if they are too few.
    fn consents_at(&self, time: u64) -> Option<Vec<Consent>> {
        let good = self.consents.values().filter(|consent| consent.covers(time)).copied();
        let good: Vec<Consent> = good.take(self.terms.demand.needed).collect();
        (good.len() >= self.terms.demand.needed).then_some(good)
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted { action: &self.action, reason: &self.reason, consents: self.consents.values().copied().collect() }
    }
}

/// On whose word an action waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A client of this node's asked for it: others are told.
    Client,
    /// It follows from what this node has, as it does for others.
    Expected,
    /// A peer told of it, and this node agrees.
    Peer(NodeId),
}

/// What became of something that was to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It waits from now on, or waits as this node's own.
    News,
    /// It waited already.
    Known,
    /// There was no room.
    Full,
}

impl Source {
    const fn is_own(self) -> bool {
        !matches!(self, Self::Peer(_))
    }
}

/// Actions that this node wants decided: those it was asked for, and those of others that it agrees to.
#[derive(Default)]
pub(super) struct Pending {
    waiting: BTreeMap<Digest, Waiting>,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether something waits, since that tick or before, that could be an entry of this time.
    pub(super) fn is_ready(&self, (time, since): (u64, u64), allowed: impl Fn(&Action, &[u8], u64) -> bool) -> bool {
        let ready = |waiting: &Waiting| {
            let waits = waiting.since <= since && waiting.consents_at(time).is_some();
            waits && allowed(&waiting.action, &waiting.reason, time)
        };
        self.waiting.values().any(ready)
    }

    /// Whether something that could be an entry of this time has waited for so many ticks. Actions that members come to by themselves wait longer, since
    /// members do so one after the other.
    pub(super) fn is_overdue(
        &self,
        (time, now, patience): (u64, u64, u64),
        allowed: impl Fn(&Action, &[u8], u64) -> bool,
    ) -> bool {
        let overdue = |waiting: &Waiting| {
            let times = if waiting.source == Source::Expected { EXPECTED } else { 1 };
            let waits = waiting.since <= now.saturating_sub(patience.saturating_mul(times));
            waits && waiting.consents_at(time).is_some() && allowed(&waiting.action, &waiting.reason, time)
        };
        self.waiting.values().any(overdue)
    }

    pub(super) fn contains(&self, digest: &Digest) -> bool {
        self.waiting.contains_key(digest)
    }

    /// What an action that waits takes.
    pub(super) fn terms(&self, digest: &Digest) -> Option<&Terms> {
        self.waiting.get(digest).map(|waiting| &waiting.terms)
    }

    /// What waits proves itself by this reason, and takes nobody's consent any more.
    pub(super) fn prove(&mut self, digest: &Digest, reason: Vec<u8>, terms: Terms) {
        if let Some(waiting) = self.waiting.get_mut(digest) {
            waiting.explain(reason, terms);
        }
    }

    /// Whether one more action of a peer would be taken.
    pub(super) fn has_room_for(&self, peer: NodeId) -> bool {
        self.waiting.values().filter(|waiting| waiting.source == Source::Peer(peer)).count() < MOST_OF_PEER
    }

    /// Whether it is new, and there was room.
    pub(super) fn insert(
        &mut self,
        source: Source,
        (action, reason): (Action, Vec<u8>),
        terms: Terms,
        now: u64,
    ) -> Inserted {
        let digest = action.digest();
        if let Some(known) = self.waiting.get_mut(&digest) {
            // From now on it is this node's own.
            let taken = (source.is_own() && !known.source.is_own())
                || (source == Source::Client && known.source == Source::Expected);
            if taken {
                (known.source, known.since) = (source, now);
            }
            // What proves itself now needs no consents any more, and what a peer told may have a reason of its own.
            if terms.demand.needed < known.terms.demand.needed
                || (taken && source == Source::Client && terms.demand == known.terms.demand)
            {
                known.explain(reason, terms);
            }
            return if taken { Inserted::News } else { Inserted::Known };
        }
        let room = match source {
            Source::Peer(peer) => self.has_room_for(peer),
            Source::Client | Source::Expected => {
                self.waiting.values().filter(|waiting| waiting.source.is_own()).count() < MOST_OWN
            }
        };
        if room {
            let (consents, shown) = (BTreeMap::new(), BTreeSet::new());
            self.waiting.insert(digest, Waiting { action, reason, since: now, source, terms, consents, shown });
        }
        if room { Inserted::News } else { Inserted::Full }
    }

    /// Whether a consent would be news: nobody looks at its signature otherwise.
    pub(super) fn lacks(&self, digest: &Digest, consent: &Consent, time: u64) -> bool {
        let Some(waiting) = self.waiting.get(digest) else { return false };
        let better = |known: &Consent| known.until < consent.until && !known.covers(time);
        // Of many that consent, as many as it takes are looked at; one that has ended does not count.
        waiting.terms.demand.is_of(consent.node)
            && waiting.consents_at(time).is_none()
            && waiting.consents.get(&consent.node).is_none_or(better)
    }

    /// Everything that this node wants by itself.
    pub(super) fn own(&self) -> Vec<Digest> {
        let own = self.waiting.iter().filter(|(_, waiting)| waiting.source.is_own());
        own.map(|(digest, _)| *digest).collect()
    }

    /// Those whose consent counts and is missing, if it takes more.
    pub(super) fn missing_consents(&self, digest: &Digest, time: u64) -> Vec<NodeId> {
        let Some(waiting) = self.waiting.get(digest) else { return Vec::new() };
        if waiting.consents_at(time).is_some() {
            return Vec::new();
        }
        let of = waiting.terms.demand.of.iter().filter_map(|node| NodeId::try_from(*node).ok());
        let given = |node: &NodeId| waiting.consents.get(node).is_some_and(|consent| consent.covers(time));
        of.filter(|node| !given(node)).collect()
    }

    /// An action that this node wants, if its consent counts and is missing.
    pub(super) fn lacking(&self, digest: &Digest, own: NodeId) -> Option<&ConsentSubject> {
        let waiting = self.waiting.get(digest)?;
        let lacks = waiting.source.is_own() && waiting.terms.demand.is_of(own) && !waiting.consents.contains_key(&own);
        lacks.then_some(&waiting.terms.subject)
    }

    /// Whether this node, whose consent would count, should look at what a peer says that a client has signed: once for each peer, since any
    /// of them may lie.
    pub(super) fn show(&mut self, digest: &Digest, own: NodeId, peer: NodeId) -> bool {
        let Some(waiting) = self.waiting.get_mut(digest) else { return false };
        let counts = waiting.source != Source::Client && waiting.terms.demand.is_of(own);
        counts && waiting.shown.insert(peer)
    }

    /// Members may sign with other keys from now on: they consent again.
    pub(super) fn forget_consents(&mut self) {
        self.waiting.values_mut().for_each(|waiting| waiting.consents.clear());
    }

    /// Takes a consent, whose signature is true.
    pub(super) fn consent(&mut self, digest: &Digest, consent: Consent) {
        if let Some(waiting) = self.waiting.get_mut(digest) {
            waiting.consents.insert(consent.node, consent);
        }
    }

    pub(super) fn get(&self, digest: &Digest) -> Option<Wanted<'_>> {
        self.waiting.get(digest).map(Waiting::wanted)
    }

    pub(super) fn remove(&mut self, digest: &Digest) {
        self.waiting.remove(digest);
    }

    /// Takes out what no client of this node's asked for.
    pub(super) fn withdraw(&mut self, digest: &Digest) {
        self.waiting.retain(|known, waiting| known != digest || waiting.source == Source::Client);
    }

    /// Of all that could be an entry of this time, what has waited longest.
    pub(super) fn oldest(&self, time: u64, allowed: impl Fn(&Action, &[u8], u64) -> bool) -> Option<Wanted<'_>> {
        let ready = self.waiting.iter().filter_map(|(digest, waiting)| {
            let consents = waiting.consents_at(time).filter(|_| allowed(&waiting.action, &waiting.reason, time))?;
            Some(((waiting.since, *digest), Wanted { consents, ..waiting.wanted() }))
        });
        ready.min_by_key(|(order, _)| *order).map(|(_, wanted)| wanted)
    }

    /// What others are told of that waits since that tick or before: a few, others in each turn. It is what clients have asked this
    /// node for, and what has this node's consent.
    pub(super) fn to_tell(&self, own: Option<NodeId>, turn: u64, since: u64) -> impl Iterator<Item = Wanted<'_>> {
        let is_told = move |waiting: &&Waiting| {
            let told = waiting.source == Source::Client || own.is_some_and(|own| waiting.consents.contains_key(&own));
            told && waiting.since <= since
        };
        let told = move || self.waiting.values().filter(is_told);
        let parts = told().count().div_ceil(MOST_TOLD).max(1);
        let part = usize::try_from(turn).unwrap_or(0).checked_rem(parts).unwrap_or(0);
        told().skip(part.saturating_mul(MOST_TOLD)).take(MOST_TOLD).map(Waiting::wanted)
    }

    /// Takes out what has waited too long; says of each whether it was this node's own.
    pub(super) fn expire(&mut self, now: u64) -> Vec<(Action, bool)> {
        let late = |_: &Digest, waiting: &mut Waiting| now >= waiting.since.saturating_add(PATIENCE);
        self.waiting.extract_if(.., late).map(|(_, waiting)| (waiting.action, waiting.source.is_own())).collect()
    }

    /// Takes out what cannot follow any more; says of each whether it was this node's own.
    pub(super) fn retain(
        &mut self,
        follows: impl Fn(&Action, &[u8]) -> Result<Terms, Refusal>,
    ) -> Vec<(Action, Refusal, bool)> {
        let mut gone = Vec::new();
        self.waiting.retain(|_, waiting| match follows(&waiting.action, &waiting.reason) {
            Ok(terms) => {
                // To what was decided since they were given, nobody has consented.
                if terms.subject != waiting.terms.subject {
                    waiting.consents.clear();
                }
                waiting.consents.retain(|node, _| terms.demand.is_of(*node));
                waiting.terms = terms;
                true
            }
            Err(refusal) => {
                gone.push((waiting.action.clone(), refusal, waiting.source.is_own()));
                false
            }
        });
        gone
    }
}
