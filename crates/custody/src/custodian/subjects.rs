//! What this node's keys have to do with a ceremony.

use std::sync::Arc;

use theta_names::{Delivery, Epoch, Holders, KeyState, Version};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyName};

use super::Custodian;
use crate::CustodyError;
use crate::ceremony::Subject;
use crate::codec::{numbers, parties};
use crate::keys::check_new_key;

impl Custodian {
    /// This node's share of the source of a ceremony, if it has it.
    pub(super) fn share_for(&self, subject: &Subject) -> Option<Arc<AnyKeyShare>> {
        let source = subject.source.as_ref()?;
        let versions = self.table.versions(subject.request.change.key().as_str());
        let entry = versions.into_iter().find(|entry| entry.version == subject.version)?;
        let same = entry.public == source.public && numbers(entry.holders.nodes()) == source.holders;
        entry.share.clone().filter(|_| same)
    }

    /// Whether the result of the ceremony could still be used here.
    pub(super) fn admits(&self, subject: &Subject) -> Result<bool, CustodyError> {
        self.admits_epoch(subject.about(), subject.is_recovery())
    }

    /// Whether a sharing could be used here; `again` if it may be the one that serves.
    pub(super) fn admits_epoch(
        &self,
        (key, version, epoch): (&KeyName, Version, Epoch),
        again: bool,
    ) -> Result<bool, CustodyError> {
        let Some(record) = self.store.key(key)? else { return Ok(true) };
        let Some(known) = record.version(version) else {
            // It may be older than those that are here: a node that was away is told of the newest first.
            return Ok(record.state != KeyState::Destroyed);
        };
        let serving = known.serving.as_ref().map(|serving| serving.number);
        let newer = serving.is_none_or(|serving| epoch > serving || (again && epoch == serving));
        Ok(newer && record.effective_state(known) != KeyState::Destroyed)
    }

    /// Whether a sharing can be stored: a version keeps its key and its delivery, no two keys are one, and its numbers go together. What cannot is not
    /// written, since it would take everything with it that becomes durable at the same time.
    pub(super) fn takes(
        &self,
        (key, version, _): (&KeyName, Version, Epoch),
        public: &AnyPublicKey,
        delivery: Delivery,
        holders: &[u16],
    ) -> bool {
        let versions = self.table.versions(key.as_str());
        let keeps = match versions.iter().find(|known| known.version == version) {
            Some(known) => {
                known.key_id == *public.key_id() && known.suite == public.suite() && known.delivery == delivery
            }
            None => check_new_key(&self.store, key, public).is_ok(),
        };
        let n = usize::from(public.threshold().n());
        keeps && public.suite().supports(delivery) && n == holders.len() && Holders::new(parties(holders)).is_ok()
    }
}
