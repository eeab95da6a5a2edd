//! What does not change while a request runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use theta_groups::Transcript;
use theta_rounds::PartyId;
use theta_schemes::VerifyError;
use theta_schemes::keys::{KeyShare, PublicKeySet};
use theta_schemes::signatures::frost::{DerivedKey, FrostSuite, PackageError, SigningCommitments, SigningPackage};
use theta_sharing::Threshold;

use super::Misbehaviour;
use super::coordinator::MOST_OFFERS;

/// Packages of one coordinator that are read, and shares of one signer for sessions that are not known.
///
/// An honest coordinator does not need more, whatever the n - k others do: of all sessions with the same honest signer each
/// but the last is held up or spoiled by another party, which for that must have offered commitments
/// ([`MOST_OFFERS`] times at most). Twice that, for coordinators that restart.
pub(super) fn most_packages(threshold: Threshold) -> usize {
    2 * MOST_OFFERS * (usize::from(threshold.n().saturating_sub(threshold.k())) + 2)
}

/// Counts a message of a party, which is one too many if it has sent more than `most`.
pub(super) fn count(messages: &mut BTreeMap<PartyId, usize>, of: PartyId, most: usize) -> Result<(), Misbehaviour> {
    let messages = messages.entry(of).or_default();
    *messages += 1;
    if *messages <= most { Ok(()) } else { Err(Misbehaviour::TooMany) }
}

/// Who signs what with which key.
pub(super) struct Setting<C: FrostSuite> {
    pub(super) local: PartyId,
    pub(super) threshold: Threshold,
    pub(super) public: Arc<PublicKeySet<C::Group>>,
    pub(super) key: Arc<KeyShare<C::Group>>,
    pub(super) message: Bytes,
    /// Where the rotation of coordinators begins, 0 to n - 1.
    first: u16,
}

impl<C: FrostSuite> Setting<C> {
    pub(super) fn new(
        local: PartyId,
        threshold: Threshold,
        public: Arc<PublicKeySet<C::Group>>,
        key: Arc<KeyShare<C::Group>>,
        message: Bytes,
    ) -> Self {
        let hash = Transcript::new("theta/frost/coordinator/v1")
            .with("key id", public.key_id().as_bytes())
            .with("message", &message)
            .finish32();
        let [first, second, ..] = hash;
        let first = u16::from_be_bytes([first, second]).checked_rem(threshold.n()).unwrap_or(0);
        Self { local, threshold, public, key, message, first }
    }

    /// k.
    pub(super) fn needed(&self) -> usize {
        usize::from(self.threshold.k())
    }

    /// The coordinator of an attempt: one after the other, from one that follows from the request, so that the load
    /// spreads and everybody knows it without a word.
    pub(super) fn coordinator(&self, attempt: u32) -> Option<PartyId> {
        let place = (u32::from(self.first) + attempt).checked_rem(u32::from(self.threshold.n()))?;
        PartyId::try_from(u16::try_from(place).ok()?.checked_add(1)?).ok()
    }

    /// Whether these, by rising index, are k parties of the key.
    pub(super) fn can_have_signed(&self, signers: &[PartyId]) -> bool {
        signers.len() == self.needed() && signers.last().is_none_or(|last| last.get() <= self.threshold.n())
    }

    pub(super) fn package(&self, list: Vec<SigningCommitments<C>>) -> Result<SigningPackage<C>, PackageError> {
        SigningPackage::new(&self.public, list, &self.message)
    }

    pub(super) fn verify(&self, signature: &[u8]) -> Result<(), VerifyError> {
        DerivedKey::<C>::new(&self.public).verifying_key().verify(&self.message, signature)
    }
}
