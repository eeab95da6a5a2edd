//! What every part of the simulator knows of the group: its name, its client, its nodes' numbers and identities.

use theta_ceremonies::CeremonyKeys;
use theta_groups::Secret;
use theta_names::NodeId;

/// A mistake in the simulator itself, found before the run.
pub(crate) type Failed = String;

/// The group's name in policies and requests.
pub(crate) const GROUP: &str = "simulated";
/// The certificate of the only client.
pub(crate) const CERTIFICATE: [u8; 32] = [0xaa; 32];
/// The time at which runs begin, in seconds since 1970.
pub(crate) const EPOCH: u64 = 1_795_000_000;

pub(crate) fn party(node: u16) -> Result<NodeId, Failed> {
    NodeId::try_from(node).map_err(|_| "node 0".to_owned())
}

pub(crate) fn identity(node: u16) -> Result<CeremonyKeys, Failed> {
    Ok(CeremonyKeys::new(party(node)?, secret_of(node)))
}

pub(crate) const fn secret_of(node: u16) -> Secret<[u8; 32]> {
    let [high, low] = node.to_be_bytes();
    let mut secret = [0x5a; 32];
    secret[0] = high;
    secret[1] = low;
    Secret::new(secret)
}
