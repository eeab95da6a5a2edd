//! Nonces go on record as used up before they sign, where the node is told so.

use std::time::{SystemTime, UNIX_EPOCH};

use theta_authority::InstanceId;
use theta_custody::Burner;
use theta_protocols::frost::{Supply, Used};
use theta_schemes::keys::KeyId;
use tokio::sync::mpsc;
use tracing::warn;

/// Whether nonces go on record, and who does it.
pub(crate) enum Burning {
    /// They do not: they are in memory only, and are taken out of it when they sign.
    Off,
    /// Whoever asks does it itself, and waits for the disk.
    Here(Burner),
    /// A thread of its own does, which nobody waits for.
    There(mpsc::Sender<Option<Burn>>),
}

/// Nonces that an instance is to have when they are on record.
pub(crate) struct Burn {
    pub(crate) instance: InstanceId,
    pub(crate) key: KeyId,
    pub(crate) used: Used,
}

impl Burning {
    /// What the machine is supplied with, if it is at once.
    pub(crate) fn burn(&self, instance: InstanceId, key: KeyId, used: Used) -> Option<Supply> {
        match self {
            Self::Off => Some(used.into()),
            Self::Here(burner) => burn_all(burner, vec![(key, used)]).pop(),
            // What does not fit in is wiped: this node signs in another session.
            Self::There(thread) => {
                drop(thread.try_send(Some(Burn { instance, key, used })));
                None
            }
        }
    }
}

impl Burning {
    /// Wakes the thread to stop; a full inbox needs no waking.
    pub(crate) fn stop(&self) {
        if let Self::There(thread) = self {
            drop(thread.try_send(None));
        }
    }
}

/// Puts nonces on record; nothing comes of them if that fails, and they are wiped.
pub(crate) fn burn_all(burner: &Burner, used: Vec<(KeyId, Used)>) -> Vec<Supply> {
    burner.burn(used, today()).unwrap_or_else(|error| {
        warn!(%error, "nonces were not put on record as used up, and sign nothing");
        Vec::new()
    })
}

/// In days since 1970.
pub(crate) fn today() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs() / (24 * 60 * 60)).unwrap_or(u32::MAX)
}
