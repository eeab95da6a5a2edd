//! A party as a signer: the nonces that it has published the commitments of, and what it does with a package.

use std::collections::BTreeMap;

use rand_core::CryptoRng;
use theta_rounds::PartyId;
use theta_schemes::signatures::frost::{FrostSuite, SignError, SignatureShare, SigningNonces, commit, sign};

use super::Misbehaviour;
use super::message::{Numbered, PackageMessage};
use super::setting::{Setting, count, most_packages};

/// One party's nonces, in memory only.
pub(super) struct Signer<C: FrostSuite> {
    /// The number of the next commitments. The first is random.
    next: u16,
    issued: u16,
    /// Published and not used, with the coordinator that may use them.
    nonces: BTreeMap<u16, (PartyId, SigningNonces<C>)>,
    packages: BTreeMap<PartyId, usize>,
}

/// What to answer to a package.
pub(super) enum Answer<C: FrostSuite> {
    /// The share.
    Share(SignatureShare<C>),
    /// Nothing but new commitments: those of the package have been used, or forgotten in a restart.
    Stale,
}

impl<C: FrostSuite> Signer<C> {
    pub(super) const fn new(first: u16) -> Self {
        Self { next: first, issued: 0, nonces: BTreeMap::new(), packages: BTreeMap::new() }
    }

    /// Whether that coordinator has commitments of ours that it can use.
    pub(super) fn has_committed_to(&self, coordinator: PartyId) -> bool {
        self.nonces.values().any(|(party, _)| *party == coordinator)
    }

    /// Fresh nonces for that coordinator alone. None when the numbers are used up, which takes 65,535.
    pub(super) fn commit(
        &mut self,
        setting: &Setting<C>,
        coordinator: PartyId,
        rng: &mut dyn CryptoRng,
    ) -> Option<Numbered<C>> {
        self.issued = self.issued.checked_add(1)?;
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let (nonces, commitments) = commit::<C>(&setting.key, rng);
        self.nonces.insert(number, (coordinator, nonces));
        Some(Numbered { number, commitments })
    }

    /// Answers a package, which uses up the nonces.
    pub(super) fn answer(
        &mut self,
        setting: &Setting<C>,
        coordinator: PartyId,
        package: PackageMessage<C>,
    ) -> Result<Answer<C>, Misbehaviour> {
        let PackageMessage { number, list, .. } = package;
        count(&mut self.packages, coordinator, most_packages(setting.threshold))?;
        if self.nonces.get(&number).is_none_or(|(party, _)| *party != coordinator) {
            return Ok(Answer::Stale);
        }
        let package = setting.package(list).map_err(Misbehaviour::InvalidPackage)?;
        let Some((_, nonces)) = self.nonces.remove(&number) else { return Ok(Answer::Stale) };
        match sign(&package, nonces, &setting.key) {
            Ok(share) => Ok(Answer::Share(share)),
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
