//! Signing rules' slots, kept in the node's store.

use core::{fmt::Display, str::FromStr};
use std::sync::Arc;

use theta_names::SlotOrder;
use theta_policy::{SlotDecision, SlotScope, SlotState, SlotStateError};
use theta_statements::Digest;
use theta_store::{SlotRule, Store};

/// Why an unconfirmed store decides nothing.
const UNCONFIRMED: &str = "too few nodes have confirmed yet that this node's store is its latest: try again in a moment or ask \
                           another node";

/// The slots that a node has decided, in its store. Each decision is durable before it is answered, so asking blocks. A
/// store that is not confirmed as the latest of its copies decides nothing: it does not know what a later copy has
/// decided.
#[derive(Clone, Debug)]
pub struct StoreSlots(Arc<Store>);

impl StoreSlots {
    /// The slots of this store.
    #[must_use]
    pub const fn new(store: Arc<Store>) -> Self {
        Self(store)
    }
}

impl SlotState for StoreSlots {
    fn decide(
        &self,
        scope: SlotScope<'_>,
        slot: u64,
        digest: Digest,
        order: SlotOrder,
    ) -> Result<SlotDecision, SlotStateError> {
        let rule = SlotRule { key: name(scope.key)?, rule: name(scope.rule)? };
        if !self.0.is_confirmed() {
            return Err(SlotStateError(UNCONFIRMED.to_owned()));
        }
        self.0.decide(rule, slot, digest.0, order).map_err(|error| SlotStateError(error.to_string()))
    }

    fn decided(&self, scope: SlotScope<'_>, slot: u64) -> Result<Option<Digest>, SlotStateError> {
        let rule = SlotRule { key: name(scope.key)?, rule: name(scope.rule)? };
        let digest = self.0.slot_digest(&rule, slot).map_err(|error| SlotStateError(error.to_string()))?;
        Ok(digest.map(Digest))
    }
}

/// Names of keys and signing rules are in lower case, as the store requires.
fn name<T: FromStr<Err: Display>>(name: &str) -> Result<T, SlotStateError> {
    name.parse().map_err(|error: T::Err| SlotStateError(error.to_string()))
}
