//! The shares of signatures that have come, by presignature.

use std::collections::{BTreeMap, BTreeSet};

use theta_groups::Group;
use theta_rounds::PartyId;

use crate::Misbehaviour;

/// The most presignatures of one owner that this party takes out in an instance. An honest owner names one in each of its turns.
const MOST_TAKEN: usize = 16;

/// The shares of one presignature.
pub(super) struct Pile<G: Group> {
    /// R, as the first to send a share has it, or as this holder does.
    pub(super) element: G::Element,
    /// Who named it first.
    pub(super) first: PartyId,
    /// Its signers, if this holder has it.
    signers: Option<BTreeSet<PartyId>>,
    shares: BTreeMap<PartyId, G::Scalar>,
    /// Whether the shares have been summed up.
    tried: bool,
}

/// The presignatures that have been named in an instance.
pub(super) struct Collected<G: Group> {
    piles: BTreeMap<[u8; 32], Pile<G>>,
    /// The shares that each party has sent.
    sent: BTreeMap<PartyId, usize>,
    /// The presignatures of each owner that were taken out.
    taken: BTreeMap<PartyId, usize>,
    /// The most shares of one party: an honest one sends a share of whatever each owner names.
    most: usize,
}

/// All signers' shares of one presignature.
pub(super) struct Complete<G: Group> {
    pub(super) element: G::Element,
    pub(super) first: PartyId,
    pub(super) shares: Vec<(PartyId, G::Scalar)>,
    /// Whether this holder knows that these are the signers. If not, a liar may have sent one of the shares in place of a signer.
    pub(super) of_signers: bool,
}

impl<G: Group> Collected<G> {
    /// Nothing yet, of n parties.
    pub(super) fn of(n: u16) -> Self {
        let most = MOST_TAKEN * usize::from(n);
        Self { piles: BTreeMap::new(), sent: BTreeMap::new(), taken: BTreeMap::new(), most }
    }

    /// Whether one more presignature of an owner may be taken out.
    pub(super) fn may_take(&self, owner: PartyId) -> bool {
        self.taken.get(&owner).is_none_or(|taken| *taken < MOST_TAKEN)
    }

    /// Takes a party's share of a presignature.
    pub(super) fn add(
        &mut self,
        from: PartyId,
        id: [u8; 32],
        element: G::Element,
        share: G::Scalar,
    ) -> Result<(), Misbehaviour> {
        let sent = self.sent.entry(from).or_default();
        *sent += 1;
        if *sent > self.most {
            return Err(Misbehaviour::TooMany);
        }
        let pile = self.pile(id, element, from);
        pile.shares.insert(from, share);
        Ok(())
    }

    /// This holder has the presignature, and knows what belongs to it. What others have said of it before counts no more: whoever was in the program
    /// knows its name, and can name it first.
    pub(super) fn know(&mut self, id: [u8; 32], element: G::Element, signers: BTreeSet<PartyId>, first: PartyId) {
        *self.taken.entry(first).or_default() += 1;
        let pile = self.pile(id, element, first);
        (pile.element, pile.first, pile.tried) = (element, first, false);
        pile.shares.retain(|party, _| signers.contains(party));
        pile.signers = Some(signers);
    }

    fn pile(&mut self, id: [u8; 32], element: G::Element, first: PartyId) -> &mut Pile<G> {
        let (shares, signers) = (BTreeMap::new(), None);
        self.piles.entry(id).or_insert(Pile { element, first, signers, shares, tried: false })
    }

    /// The shares of all signers of a presignature, once, when they are there: of k signers, whoever they are if this holder does not know.
    pub(super) fn complete(&mut self, id: &[u8; 32], k: usize) -> Option<Complete<G>> {
        let pile = self.piles.get_mut(id).filter(|pile| !pile.tried)?;
        let of_signer = |party: &PartyId| pile.signers.as_ref().is_none_or(|signers| signers.contains(party));
        let of_signers = || pile.shares.iter().filter(|(party, _)| of_signer(party));
        let shares: Vec<_> = of_signers().map(|(party, share)| (*party, *share)).collect();
        if shares.len() != k {
            return None;
        }
        pile.tried = true;
        Some(Complete { element: pile.element, first: pile.first, shares, of_signers: pile.signers.is_some() })
    }

    /// The signers of presignatures that a party named first whose shares are missing.
    pub(super) fn missing(&self, first: PartyId) -> impl Iterator<Item = PartyId> {
        let named = self.piles.values().filter(move |pile| pile.first == first && !pile.tried);
        named.flat_map(|pile| {
            let signers = pile.signers.iter().flatten();
            signers.filter(|signer| !pile.shares.contains_key(*signer)).copied()
        })
    }

    /// Forgets a party's shares.
    pub(super) fn remove(&mut self, party: PartyId) {
        for pile in self.piles.values_mut() {
            pile.shares.remove(&party);
        }
    }

    /// The most shares of one presignature.
    pub(super) fn most(&self) -> usize {
        self.piles.values().map(|pile| pile.shares.len()).max().unwrap_or(0)
    }
}
