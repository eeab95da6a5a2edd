//! A party as a signer: the nonces that it has published the commitments of in this instance, and what it does with a
//! package.

use std::collections::BTreeMap;

use rand_core::CryptoRng;
use theta_rounds::PartyId;
use theta_schemes::signatures::frost::{FrostSuite, SignError, SignatureShare, SigningNonces, commit, sign};

use super::Misbehaviour;
use super::coordinator::MOST_OFFERS;
use super::message::{Numbered, PackageMessage, decode_list};
use super::setting::{Setting, count, most_packages};

/// One party's nonces for one signature, in memory only.
pub(super) struct Signer<C: FrostSuite> {
    /// The number of the next commitments. The first is random.
    next: u64,
    /// Published and not used, with the coordinator that may use them.
    nonces: BTreeMap<u64, (PartyId, SigningNonces<C>)>,
    packages: BTreeMap<PartyId, usize>,
    requests: BTreeMap<PartyId, usize>,
}

/// What to answer to a package.
pub(super) enum Answer<C: FrostSuite> {
    /// The share, made with nonces of this instance or with such as were made in advance.
    Share { share: SignatureShare<C>, in_advance: bool },
    /// Nothing but new commitments: those of the package have been used, or forgotten in a restart.
    Stale,
}

impl<C: FrostSuite> Signer<C> {
    pub(super) const fn new(first: u64) -> Self {
        Self { next: first, nonces: BTreeMap::new(), packages: BTreeMap::new(), requests: BTreeMap::new() }
    }

    /// Whether that coordinator has commitments of ours that it can use.
    pub(super) fn has_committed_to(&self, coordinator: PartyId) -> bool {
        self.nonces.values().any(|(party, _)| *party == coordinator)
    }

    /// Fresh nonces for that coordinator alone.
    pub(super) fn commit(
        &mut self,
        setting: &Setting<C>,
        coordinator: PartyId,
        rng: &mut dyn CryptoRng,
    ) -> Numbered<C> {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let (nonces, commitments) = commit::<C>(&setting.key, rng);
        self.nonces.insert(number, (coordinator, nonces));
        Numbered { number, commitments }
    }

    /// Whether to give a coordinator that asks commitments for later signatures, too: once.
    pub(super) fn request(&mut self, coordinator: PartyId) -> Result<bool, Misbehaviour> {
        let first = !self.requests.contains_key(&coordinator);
        count(&mut self.requests, coordinator, MOST_OFFERS)?;
        Ok(first)
    }

    /// Answers a package, which uses up the nonces.
    pub(super) fn answer(
        &mut self,
        setting: &Setting<C>,
        coordinator: PartyId,
        package: PackageMessage,
    ) -> Result<Answer<C>, Misbehaviour> {
        let PackageMessage { number, list, .. } = package;
        count(&mut self.packages, coordinator, most_packages(setting.threshold))?;
        let here = self.nonces.get(&number).is_some_and(|(party, _)| *party == coordinator);
        if !here && !setting.reserve.has_nonces(coordinator, number) {
            return Ok(Answer::Stale);
        }
        // Only now: each package that is read in full uses up nonces, or is its sender's last.
        let list = decode_list(&list).map_err(|_| Misbehaviour::MalformedPackage)?;
        let package = setting.package(list).map_err(Misbehaviour::InvalidPackage)?;
        let nonces = if here {
            self.nonces.remove(&number).map(|(_, nonces)| nonces)
        } else {
            setting.reserve.take(coordinator, number)
        };
        let Some(nonces) = nonces else { return Ok(Answer::Stale) };
        match sign(&package, nonces, &setting.key) {
            Ok(share) => Ok(Answer::Share { share, in_advance: !here }),
            // Nonces and key share are both ours: what does not fit is the package.
            Err(SignError::NotInPackage | SignError::OtherKey | SignError::OtherParty { .. }) => {
                Err(Misbehaviour::AlteredCommitments)
            }
        }
    }

    /// Forgets the nonces for a coordinator that is not trusted any more.
    pub(super) fn exclude(&mut self, party: PartyId) {
        self.nonces.retain(|_, (coordinator, _)| *coordinator != party);
    }
}
