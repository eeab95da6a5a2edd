//! Nonces made in advance, so that a signature takes one round.
//!
//! A signer makes pairs of nonces for one coordinator and tells it the commitments ahead of time; the coordinator spends
//! them, one a session, the oldest first. Both sides are here, for one key at one party, shared by all its instances.
//!
//! Everything is in memory only and leaves it with the key: whoever restarts, from whatever backup, knows no nonce of its
//! former life. Nonces are taken out before they sign, under a lock, so that two packages that name the same ones find
//! them once, on whatever threads they come. See `docs/adr/0010-precomputed-nonces.md`.

use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand_core::CryptoRng;
use theta_rounds::PartyId;
use theta_schemes::keys::{AnyPublicKey, KeyShare};
use theta_schemes::signatures::frost::{FrostSuite, SigningNonces, commit_batch};

use super::message::{MOST_POOLED, Numbered};
use super::suites::{AnyPool, new_pool};

/// What one party keeps for one key beyond single instances: for FROST, nonces and commitments made in advance; for other
/// schemes nothing. Clones share it; it is empty at first and wiped when the last clone goes.
#[derive(Clone)]
pub struct NoncePool(Option<Arc<dyn AnyPool>>);

impl NoncePool {
    /// An empty pool for a key.
    #[must_use]
    pub fn new(public: &AnyPublicKey) -> Self {
        Self(new_pool(public.suite()))
    }

    /// The pool, if it is one for keys of FROST.
    pub(super) fn into_any(self) -> Option<Arc<dyn AnyPool>> {
        self.0
    }
}

impl fmt::Debug for NoncePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoncePool(<redacted>)")
    }
}

/// A pool as all instances of a key share it.
pub(super) struct Pool<C: FrostSuite>(pub(super) Mutex<BTreeMap<PartyId, Shelf<C>>>);

/// What this party and one peer have given each other.
pub(super) struct Shelf<C: FrostSuite> {
    /// Nonces that the peer may use as a coordinator, oldest first.
    given: VecDeque<(u64, SigningNonces<C>)>,
    /// The number of the next; the first is random.
    next: Option<u64>,
    /// Commitments that this party may use as a coordinator, oldest first.
    held: VecDeque<Numbered<C>>,
}

impl<C: FrostSuite> Default for Shelf<C> {
    fn default() -> Self {
        Self { given: VecDeque::new(), next: None, held: VecDeque::new() }
    }
}

/// A pool as one instance sees it. Without one, it gives and has nothing.
pub(super) struct Reserve<C: FrostSuite> {
    pool: Option<Arc<Pool<C>>>,
    /// How many of a peer's commitments a coordinator keeps at most. A signer keeps twice as many nonces for one: some are on
    /// their way, some were lost with the instances that were to bring them.
    per_peer: usize,
}

impl<C: FrostSuite> Reserve<C> {
    /// At most `per_peer` pairs for each peer; none with 0.
    pub(super) fn new(pool: Arc<Pool<C>>, per_peer: usize) -> Self {
        Self { pool: Some(pool).filter(|_| per_peer > 0), per_peer }
    }

    pub(super) const fn is_off(&self) -> bool {
        self.pool.is_none()
    }

    fn shelves(&self) -> Option<MutexGuard<'_, BTreeMap<PartyId, Shelf<C>>>> {
        Some(self.pool.as_ref()?.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with<T>(&self, party: PartyId, work: impl FnOnce(&mut Shelf<C>) -> T) -> Option<T> {
        Some(work(self.shelves()?.get_mut(&party)?))
    }
}

/// As a signer.
impl<C: FrostSuite> Reserve<C> {
    /// Whether that coordinator was given commitments that it has not used.
    pub(super) fn has_given(&self, coordinator: PartyId) -> bool {
        self.with(coordinator, |shelf| !shelf.given.is_empty()).unwrap_or(false)
    }

    /// Makes nonces for a coordinator, as many as it wants within reason. Beyond the bound its oldest are wiped.
    pub(super) fn give(
        &self,
        coordinator: PartyId,
        wanted: u8,
        key: &KeyShare<C::Group>,
        rng: &mut dyn CryptoRng,
    ) -> Vec<Numbered<C>> {
        if wanted == 0 || self.is_off() {
            return Vec::new();
        }
        let count = usize::from(wanted).min(self.batch());
        let mut first = [0; 8];
        rng.fill_bytes(&mut first);
        let made = commit_batch::<C>(key, count, rng);
        let Some(mut shelves) = self.shelves() else { return Vec::new() };
        let Shelf { given, next, .. } = shelves.entry(coordinator).or_default();
        let mut number = next.unwrap_or(u64::from_be_bytes(first));
        let mut offered = Vec::with_capacity(count);
        for (nonces, commitments) in made {
            offered.push(Numbered { number, commitments });
            given.push_back((number, nonces));
            number = number.wrapping_add(1);
        }
        *next = Some(number);
        given.drain(..given.len().saturating_sub(2 * self.per_peer));
        offered
    }

    /// Whether there are nonces of this number for that coordinator.
    pub(super) fn has_nonces(&self, coordinator: PartyId, number: u64) -> bool {
        self.with(coordinator, |shelf| shelf.given.iter().any(|(given, _)| *given == number)).unwrap_or(false)
    }

    /// Takes them out, for good.
    pub(super) fn take(&self, coordinator: PartyId, number: u64) -> Option<SigningNonces<C>> {
        self.with(coordinator, |shelf| {
            let place = shelf.given.iter().position(|(given, _)| *given == number)?;
            shelf.given.remove(place).map(|(_, nonces)| nonces)
        })?
    }

    /// Forgets all nonces for a coordinator: it has no use for them.
    pub(super) fn withdraw(&self, coordinator: PartyId) {
        self.with(coordinator, |shelf| shelf.given.clear());
    }

    /// The most that are made at once.
    fn batch(&self) -> usize {
        (self.per_peer / 4).clamp(1, MOST_POOLED)
    }
}

/// As a coordinator.
impl<C: FrostSuite> Reserve<C> {
    /// Keeps what a signer gives. Beyond the bound the oldest leave.
    pub(super) fn receive(&self, from: PartyId, offered: Vec<Numbered<C>>) {
        if offered.is_empty() {
            return;
        }
        let Some(mut shelves) = self.shelves() else { return };
        let held = &mut shelves.entry(from).or_default().held;
        held.extend(offered);
        held.drain(..held.len().saturating_sub(self.per_peer));
    }

    /// Takes one pair of each of `count` eligible parties, the first from `start` round the circle; all or none.
    pub(super) fn choose(
        &self,
        count: usize,
        start: PartyId,
        eligible: impl Fn(PartyId) -> bool,
    ) -> Option<Vec<(PartyId, Numbered<C>)>> {
        let mut shelves = self.shelves()?;
        let circle = shelves.range(start..).chain(shelves.range(..start));
        let stocked = circle.filter(|(party, shelf)| !shelf.held.is_empty() && eligible(**party));
        let parties: Vec<PartyId> = stocked.map(|(party, _)| *party).take(count).collect();
        if parties.len() < count {
            return None;
        }
        let chosen = parties.into_iter().filter_map(|party| Some((party, shelves.get_mut(&party)?.held.pop_front()?)));
        Some(chosen.collect())
    }

    /// How many commitments of a party there are.
    pub(super) fn held(&self, party: PartyId) -> usize {
        self.with(party, |shelf| shelf.held.len()).unwrap_or(0)
    }

    /// How many to ask of one that has none here.
    pub(super) fn first_batch(&self) -> u8 {
        if self.is_off() { 0 } else { u8::try_from(self.batch()).unwrap_or(u8::MAX) }
    }

    /// How many to ask of a signer beside its share: one for the one that is used, more where they run low.
    pub(super) fn wanted(&self, from: PartyId) -> u8 {
        let held = self.held(from);
        if self.is_off() || held >= self.per_peer {
            0
        } else if 2 * held >= self.per_peer {
            1
        } else {
            u8::try_from((self.per_peer / 8).clamp(1, MOST_POOLED)).unwrap_or(u8::MAX)
        }
    }

    /// Drops what a party has given: it does not answer, lies, or has forgotten it.
    pub(super) fn forget(&self, party: PartyId) {
        self.with(party, |shelf| shelf.held.clear());
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use theta_schemes::keys::{TypedKeyShare, deal_any};
    use theta_schemes::signatures::frost::Ed25519Sha512;
    use theta_schemes::{Suite, groups::Ed25519};
    use theta_sharing::{ShareIndex, Threshold};

    use super::*;

    type C = Ed25519Sha512;

    fn id(number: u16) -> PartyId {
        PartyId::of_share(ShareIndex::try_from(number).unwrap())
    }

    fn rng() -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(1)
    }

    fn reserve(per_peer: usize) -> (Reserve<C>, Arc<KeyShare<Ed25519>>) {
        let (_, shares) = deal_any(Suite::FrostEd25519, Threshold::new(2, 4).unwrap(), &mut rng());
        let TypedKeyShare::Ed25519(key) = shares[0].typed() else { panic!("a share of another suite") };
        (Reserve::new(Arc::new(Pool(Mutex::default())), per_peer), Arc::clone(key))
    }

    fn numbers(offered: &[Numbered<C>]) -> Vec<u64> {
        offered.iter().map(|numbered| numbered.number).collect()
    }

    #[test]
    fn nonces_come_out_once_and_the_oldest_are_forgotten() {
        let (reserve, key) = reserve(4);
        let mut rng = rng();
        let mut given = Vec::new();
        for _ in 0..20 {
            given.extend(numbers(&reserve.give(id(2), u8::MAX, &key, &mut rng)));
        }
        assert_eq!(given.len(), 20, "no more at once than a quarter of what a coordinator keeps");
        let known: Vec<u64> = given.iter().copied().filter(|number| reserve.has_nonces(id(2), *number)).collect();
        assert_eq!(known, given[12..]);
        assert!(reserve.take(id(3), given[19]).is_none(), "they are another coordinator's");
        assert!(reserve.take(id(2), given[19]).is_some());
        assert!(reserve.take(id(2), given[19]).is_none());
        assert!(reserve.take(id(2), given[0]).is_none());
        reserve.withdraw(id(2));
        assert!(!reserve.has_given(id(2)));
    }

    #[test]
    fn commitments_are_bounded_and_drawn_by_all_or_none() {
        let (reserve, key) = reserve(4);
        let mut rng = rng();
        let mut offered = Vec::new();
        for _ in 0..6 {
            offered.extend(reserve.give(id(9), 1, &key, &mut rng));
        }
        let expected = numbers(&offered);
        reserve.receive(id(2), offered.clone());
        assert_eq!((reserve.held(id(2)), reserve.wanted(id(2))), (4, 0));
        assert!(reserve.choose(2, id(3), |_| true).is_none());
        assert_eq!(reserve.held(id(2)), 4, "nothing was taken");
        reserve.receive(id(4), offered.split_off(4));
        assert!(reserve.choose(1, id(1), |party| party == id(3)).is_none());
        // Round the circle from party 3, the oldest that is left of each.
        let chosen = reserve.choose(2, id(3), |_| true).unwrap();
        let chosen: Vec<_> = chosen.into_iter().map(|(party, numbered)| (party, numbered.number)).collect();
        assert_eq!(chosen, [(id(4), expected[4]), (id(2), expected[2])]);
        assert_eq!((reserve.wanted(id(2)), reserve.wanted(id(4)), reserve.held(id(4))), (1, 1, 1));
        reserve.forget(id(2));
        assert_eq!((reserve.held(id(2)), reserve.held(id(4))), (0, 1));
    }

    #[test]
    fn where_it_is_off_there_is_nothing() {
        let (reserve, key) = reserve(0);
        assert!(reserve.is_off() && reserve.give(id(2), 5, &key, &mut rng()).is_empty());
        assert_eq!((reserve.wanted(id(2)), reserve.first_batch(), reserve.has_given(id(2))), (0, 0, false));
        let (public, _) = deal_any(Suite::Bls04MinPk, Threshold::new(1, 1).unwrap(), &mut rng());
        assert!(NoncePool::new(&public).into_any().is_none());
        let (public, _) = deal_any(Suite::FrostEd25519, Threshold::new(1, 1).unwrap(), &mut rng());
        assert!(NoncePool::new(&public).into_any().is_some_and(|pool| pool.suite() == Suite::FrostEd25519));
    }
}
