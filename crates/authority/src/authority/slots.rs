//! Warnings about slots at the start.

use theta_custody::Custodian;
use theta_names::Operation;

use super::Authority;

impl Authority {
    /// Warns at the start for which keys requests for slots stop when a node is away, and for which they cannot be
    /// served at all.
    pub fn warn_of_slots(&self, custodian: &Custodian) {
        let (policy, certifier) = (self.policy(), custodian.certifier());
        let covered = |key: &str| {
            [Operation::Sign, Operation::FlipCoin].iter().any(|operation| policy.takes_slot(Some(key), *operation))
        };
        for entry in custodian.keys().primaries().filter(|entry| covered(entry.name.as_str())) {
            let (key, k) = (entry.name.as_str(), entry.public.threshold().k());
            if !certifier.is_able() {
                tracing::error!(
                    key,
                    "a signing rule covers this key, and this node has no identity to promise slots with"
                );
            } else if let Some(warning) = certifier.quorum(k, key).warning() {
                tracing::warn!(key, "{warning}");
            }
        }
    }
}
