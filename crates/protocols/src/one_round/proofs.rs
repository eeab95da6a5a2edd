//! How a party answers those that doubt a result: it proves its share.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use theta_rounds::{PartyId, Replies, Slot};

use super::message::{PROOF_REQUEST, ShareMessage};
use super::setting::Setting;

/// Proves this party's share once to each party that asks.
pub(super) struct Proofs {
    setting: Arc<Setting>,
    share: Option<Bytes>,
    answered: BTreeSet<PartyId>,
}

impl Proofs {
    pub(super) const fn new(setting: Arc<Setting>) -> Self {
        Self { setting, share: None, answered: BTreeSet::new() }
    }
}

impl Replies<ShareMessage> for Proofs {
    fn reply(&mut self, from: PartyId, slot: Slot) -> Option<ShareMessage> {
        if slot != PROOF_REQUEST || !self.answered.insert(from) {
            return None;
        }
        if self.share.is_none() {
            self.share = self.setting.proven_share();
        }
        self.share.clone().map(ShareMessage::ProvenShare)
    }
}
