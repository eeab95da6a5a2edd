//! A party as a signer: the nonces whose commitments it has published in this instance, and its answers to packages.

use std::collections::BTreeMap;

use rand_core::CryptoRng;
use theta_rounds::PartyId;
use theta_schemes::signatures::frost::{FrostSuite, SignError, SignatureShare, SigningNonces, commit, sign};

use super::coordinator::MOST_OFFERS;
use super::message::{Numbered, PackageMessage, decode_list};
use super::setting::{Setting, count, most_packages};
use super::stock::{Ask, Used};
use super::suites::{AnyNonces, StockSuite};
use crate::Misbehaviour;

/// One party's nonces for one signature, in memory only.
pub(super) struct Signer {
    /// The number of the next commitments. The first is random.
    next: u64,
    /// Nonces whose commitments are published and not used, each with the only coordinator that may use them.
    /// In the stock's type, so that this map is compiled once and not for every suite.
    nonces: BTreeMap<u64, (PartyId, AnyNonces)>,
    /// Packages whose nonces have been asked for, by coordinator and number.
    waiting: BTreeMap<(PartyId, u64), PackageMessage>,
    packages: BTreeMap<PartyId, usize>,
    requests: BTreeMap<PartyId, usize>,
}

/// The result of taking a package.
pub(super) enum Taken {
    /// Its nonces must be asked for.
    Asked(Ask),
    /// Its nonces were asked for already, for another package. New commitments are the only answer.
    Stale,
}

/// The answer to a package.
pub(super) struct Answer<C: FrostSuite> {
    /// Its session.
    pub(super) session: u16,
    /// How many more commitments its coordinator wants.
    pub(super) wanted: u8,
    /// The share. `None` if the nonces of the package have been used, were refused, or were forgotten in a restart.
    pub(super) share: Option<SignatureShare<C>>,
}

impl Signer {
    pub(super) const fn new(first: u64) -> Self {
        Self {
            next: first,
            nonces: BTreeMap::new(),
            waiting: BTreeMap::new(),
            packages: BTreeMap::new(),
            requests: BTreeMap::new(),
        }
    }

    /// Whether that coordinator has commitments of this party that it can use.
    pub(super) fn has_committed_to(&self, coordinator: PartyId) -> bool {
        self.nonces.values().any(|(party, _)| *party == coordinator)
    }

    /// Makes new nonces that this coordinator alone may use.
    pub(super) fn commit<C: StockSuite>(
        &mut self,
        setting: &Setting<C>,
        coordinator: PartyId,
        rng: &mut dyn CryptoRng,
    ) -> Numbered<C> {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let (nonces, commitments) = commit::<C>(&setting.key, rng);
        self.nonces.insert(number, (coordinator, C::any_nonces(nonces)));
        Numbered { number, commitments }
    }

    /// Counts a coordinator's request for commitments. Returns whether it is the first: only then does the coordinator
    /// get commitments for later signatures, too.
    pub(super) fn request(&mut self, coordinator: PartyId) -> Result<bool, Misbehaviour> {
        let first = !self.requests.contains_key(&coordinator);
        count(&mut self.requests, coordinator, MOST_OFFERS)?;
        Ok(first)
    }

    /// Takes a package and returns the question for its nonces. Its list is not read before the nonces are here.
    pub(super) fn take<C: StockSuite>(
        &mut self,
        setting: &Setting<C>,
        coordinator: PartyId,
        package: PackageMessage,
    ) -> Result<Taken, Misbehaviour> {
        count(&mut self.packages, coordinator, most_packages(setting.threshold))?;
        let number = package.number;
        if self.waiting.contains_key(&(coordinator, number)) {
            return Ok(Taken::Stale);
        }
        self.waiting.insert((coordinator, number), package);
        let own = self.nonces.get(&number).is_some_and(|(party, _)| *party == coordinator);
        Ok(Taken::Asked(match if own { self.nonces.remove(&number) } else { None } {
            Some((_, nonces)) => Ask::Use(Used { coordinator, number, day: setting.day, nonces, in_advance: false }),
            None => Ask::Take { coordinator, number },
        }))
    }

    /// Answers the package that waits for these nonces. They are used up, whatever the answer.
    pub(super) fn answer<C: StockSuite>(
        &mut self,
        setting: &Setting<C>,
        (coordinator, number): (PartyId, u64),
        nonces: Option<SigningNonces<C>>,
    ) -> Option<Result<Answer<C>, Misbehaviour>> {
        let PackageMessage { session, wanted, list, .. } = self.waiting.remove(&(coordinator, number))?;
        let share = nonces.map(|nonces| {
            let list = decode_list(&list).map_err(|_| Misbehaviour::MalformedPackage)?;
            let package = setting.package(list).map_err(Misbehaviour::InvalidPackage)?;
            // The nonces and the key share are this party's own, so whatever does not fit is wrong in the package.
            sign(&package, nonces, &setting.key).map_err(|error| match error {
                SignError::NotInPackage | SignError::OtherKey | SignError::OtherParty { .. } => {
                    Misbehaviour::AlteredCommitments
                }
            })
        });
        Some(share.transpose().map(|share| Answer { session, wanted, share }))
    }

    /// Forgets the nonces for a coordinator that is not trusted any more.
    pub(super) fn exclude(&mut self, party: PartyId) {
        self.nonces.retain(|_, (coordinator, _)| *coordinator != party);
        self.waiting.retain(|(coordinator, _), _| *coordinator != party);
    }
}
