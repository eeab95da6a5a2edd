//! The parties of a key's protocols: the holders of its shares.

use theta_rounds::PartyId;
use theta_sharing::Threshold;

/// Parties 1 to n.
pub(crate) fn parties(threshold: Threshold) -> impl Iterator<Item = PartyId> {
    threshold.indices().map(PartyId::of_share)
}
