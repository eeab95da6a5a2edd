//! What a party that has finished does for one that has not.

use std::collections::BTreeSet;
use std::sync::Arc;

use theta_rounds::{Epilogue, PartyId, Slot};
use theta_schemes::ThresholdScheme;

use super::message::{PROOF_REQUEST, ShareMessage};
use super::protocol::Setting;

/// Proves this party's share to each that asks, once.
pub(super) struct LateProofs<S: ThresholdScheme> {
    setting: Arc<Setting<S>>,
    share: Option<S::Share>,
    answered: BTreeSet<PartyId>,
}

impl<S: ThresholdScheme> LateProofs<S> {
    pub(super) const fn new(setting: Arc<Setting<S>>) -> Self {
        Self { setting, share: None, answered: BTreeSet::new() }
    }
}

impl<S: ThresholdScheme> Epilogue<ShareMessage<S>> for LateProofs<S> {
    fn reply(&mut self, from: PartyId, slot: Slot) -> Option<ShareMessage<S>> {
        if slot != PROOF_REQUEST || !self.answered.insert(from) {
            return None;
        }
        let share = self.share.get_or_insert_with(|| self.setting.proven_share());
        Some(ShareMessage::ProvenShare(Ok(share.clone())))
    }
}
