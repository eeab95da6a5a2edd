//! The shares of signatures that have come, by presignature.

use std::collections::{BTreeMap, BTreeSet};

use theta_groups::Group;
use theta_rounds::PartyId;

use super::choices::Choices;
use crate::Misbehaviour;

/// The most presignatures of one owner that this party takes out in an instance. An honest owner names one in each of its turns.
const MOST_TAKEN: usize = 16;

/// The most sums of shares, by sets of signers that are guessed, in an instance.
const MOST_GUESSES: usize = 64;

/// The shares of one presignature with one R.
struct Pile<G: Group> {
    element: G::Element,
    /// Who named it first.
    first: PartyId,
    /// Its signers, if this holder has it.
    signers: Option<BTreeSet<PartyId>>,
    shares: BTreeMap<PartyId, G::Scalar>,
    /// Whether the signers' shares have been summed up.
    tried: bool,
}

/// How many presignatures of an owner were taken out, and how many the stock was asked for that has not answered yet.
#[derive(Clone, Copy, Default)]
struct Takes {
    taken: usize,
    asked: usize,
}

/// The presignatures that have been named in an instance.
pub(super) struct Collected<G: Group> {
    /// By name. Whoever was in the program knows the name, and can tell of another R with it.
    piles: BTreeMap<[u8; 32], Vec<Pile<G>>>,
    /// The shares that each party has sent.
    sent: BTreeMap<PartyId, usize>,
    takes: BTreeMap<PartyId, Takes>,
    /// The most shares of one party: an honest one sends a share of whatever each owner names.
    most: usize,
    /// How many sums were tried of signers that this holder does not know.
    guesses: usize,
}

/// As many shares of a presignature as it has signers.
pub(super) struct Complete<G: Group> {
    pub(super) first: PartyId,
    pub(super) shares: Vec<(PartyId, G::Scalar)>,
    /// Whether this holder knows that these are the signers. If not, a liar may have sent one of the shares in place of a signer.
    pub(super) of_signers: bool,
}

impl<G: Group> Collected<G> {
    /// Nothing yet, of n parties.
    pub(super) fn of(n: u16) -> Self {
        let most = MOST_TAKEN * usize::from(n);
        Self { piles: BTreeMap::new(), sent: BTreeMap::new(), takes: BTreeMap::new(), most, guesses: 0 }
    }

    /// Whether one more presignature of an owner may be taken out.
    pub(super) fn may_take(&self, owner: PartyId) -> bool {
        self.takes.get(&owner).is_none_or(|takes| takes.taken + takes.asked < MOST_TAKEN)
    }

    /// Whether one more that was taken out may sign.
    pub(super) fn has_room(&self, owner: PartyId) -> bool {
        self.takes.get(&owner).is_none_or(|takes| takes.taken < MOST_TAKEN)
    }

    /// The stock is asked for a presignature of an owner, if one more may be taken out: it may answer late, as when it records first what it gives.
    pub(super) fn begins_take(&mut self, owner: PartyId) -> bool {
        let begins = self.may_take(owner);
        self.takes.entry(owner).or_default().asked += usize::from(begins);
        begins
    }

    /// The stock has answered.
    pub(super) fn end_take(&mut self, owner: PartyId) {
        let takes = self.takes.entry(owner).or_default();
        takes.asked = takes.asked.saturating_sub(1);
    }

    /// The stock's answers that are under way may be lost.
    pub(super) fn rest(&mut self) {
        self.takes.values_mut().for_each(|takes| takes.asked = 0);
    }

    /// Takes a party's share of a presignature. Says whether it is the party's first one of it: others are not heard, so that nobody has sums tried again
    /// and again.
    pub(super) fn add(
        &mut self,
        from: PartyId,
        id: [u8; 32],
        element: G::Element,
        share: G::Scalar,
    ) -> Result<bool, Misbehaviour> {
        let sent = self.sent.entry(from).or_default();
        *sent += 1;
        if *sent > self.most {
            return Err(Misbehaviour::TooMany);
        }
        Ok(self.of_pile(id, element, from, |pile| {
            let is_first = !pile.shares.contains_key(&from);
            if is_first {
                pile.shares.insert(from, share);
            }
            is_first
        }))
    }

    /// Whether this holder has had the presignature of this name, and so has taken it out.
    pub(super) fn is_known(&self, id: &[u8; 32]) -> bool {
        self.piles.get(id).into_iter().flatten().any(|pile| pile.signers.is_some())
    }

    /// This holder has the presignature, and knows what belongs to it. What others have said of it before counts no more.
    pub(super) fn know(&mut self, id: [u8; 32], element: G::Element, signers: BTreeSet<PartyId>, first: PartyId) {
        self.takes.entry(first).or_default().taken += 1;
        self.piles.entry(id).or_default().retain(|pile| pile.element == element);
        self.of_pile(id, element, first, |pile| {
            (pile.first, pile.tried) = (first, false);
            pile.shares.retain(|party, _| signers.contains(party));
            pile.signers = Some(signers);
        });
    }

    /// Looks at what has come of a presignature with this R, named first by this party if nothing has.
    fn of_pile<T>(
        &mut self,
        id: [u8; 32],
        element: G::Element,
        first: PartyId,
        look: impl FnOnce(&mut Pile<G>) -> T,
    ) -> T {
        let piles = self.piles.entry(id).or_default();
        if let Some(pile) = piles.iter_mut().find(|pile| pile.element == element) {
            return look(pile);
        }
        let mut pile = Pile { element, first, signers: None, shares: BTreeMap::new(), tried: false };
        let seen = look(&mut pile);
        piles.push(pile);
        seen
    }

    /// What may be all signers' shares of a presignature, now that this party's is there: where this holder knows the signers, theirs, once; where not,
    /// each k shares with that one, as long as few have been tried.
    pub(super) fn complete(
        &mut self,
        id: &[u8; 32],
        element: &G::Element,
        from: PartyId,
        k: usize,
    ) -> Vec<Complete<G>> {
        let piles = self.piles.get_mut(id).into_iter().flatten();
        let Some(pile) = piles.into_iter().find(|pile| pile.element == *element) else { return Vec::new() };
        let first = pile.first;
        let share = |party: &PartyId| Some((*party, *pile.shares.get(party)?));
        if let Some(signers) = &pile.signers {
            let shares: Vec<_> = signers.iter().filter_map(share).collect();
            if pile.tried || shares.len() != k {
                return Vec::new();
            }
            pile.tried = true;
            return vec![Complete { first, shares, of_signers: true }];
        }
        let Some(newest) = share(&from) else { return Vec::new() };
        let others: Vec<_> = pile.shares.keys().filter(|party| **party != from).filter_map(share).collect();
        let left = MOST_GUESSES.saturating_sub(self.guesses);
        let sets = Choices::of(&others, k.saturating_sub(1)).take(left);
        let with_newest = |mut set: Vec<_>| {
            set.push(newest);
            set.sort_unstable_by_key(|(party, _)| *party);
            Complete { first, shares: set, of_signers: false }
        };
        let guessed: Vec<_> = sets.map(with_newest).collect();
        self.guesses += guessed.len();
        guessed
    }

    /// The signers of presignatures that a party named first whose shares are missing.
    pub(super) fn missing(&self, first: PartyId) -> impl Iterator<Item = PartyId> {
        let named = self.piles.values().flatten().filter(move |pile| pile.first == first && !pile.tried);
        named.flat_map(|pile| {
            let signers = pile.signers.iter().flatten();
            signers.filter(|signer| !pile.shares.contains_key(*signer)).copied()
        })
    }

    /// Forgets a party's shares.
    pub(super) fn remove(&mut self, party: PartyId) {
        for pile in self.piles.values_mut().flatten() {
            pile.shares.remove(&party);
        }
    }

    /// The most shares of one presignature.
    pub(super) fn most(&self) -> usize {
        self.piles.values().flatten().map(|pile| pile.shares.len()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use theta_groups::P256;
    use theta_sharing::ShareIndex;

    use super::*;

    /// A stock that records first what it gives answers late. Whoever names many presignatures meanwhile has this party send no more shares than others
    /// hear of one party.
    #[test]
    fn what_is_asked_for_counts_like_what_is_taken() {
        let mut collected = Collected::<P256>::of(4);
        let [owner, other] = [0, 1].map(|place| PartyId::of_share(ShareIndex::at(place).unwrap()));
        let begun = (0..40).filter(|_| collected.begins_take(owner)).count();
        assert_eq!(begun, MOST_TAKEN);
        assert!(collected.may_take(other));
        // What was not there is forgotten, and what was is not.
        collected.end_take(owner);
        assert!(collected.may_take(owner));
        collected.know([1; 32], P256::generator(), BTreeSet::from([owner, other]), owner);
        assert!(!collected.may_take(owner));
    }
}
