//! Nonces go on record as used up before they sign, where the node is told so.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

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
    There(Burner, mpsc::Sender<Option<Burn>>),
}

/// Nonces that an instance is to have when they are on record.
pub(crate) struct Burn {
    pub(crate) instance: InstanceId,
    pub(crate) key: KeyId,
    pub(crate) used: Used,
}

/// Today, as whoever drives the node says, in days since 1970.
#[derive(Debug, Default)]
pub(crate) struct Today(AtomicU32);

impl Today {
    /// It is so many seconds since 1970.
    pub(crate) fn set(&self, unix: u64) {
        self.0.store(u32::try_from(unix / (24 * 60 * 60)).unwrap_or(u32::MAX), Relaxed);
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

impl Burning {
    /// The day that nonces drawn today are good under.
    pub(crate) fn day(&self, today: &Today) -> u32 {
        match self {
            Self::Off => today.get(),
            Self::Here(burner) | Self::There(burner, _) => burner.day(today.get()),
        }
    }

    /// What the machine is supplied with, if it is at once.
    pub(crate) fn burn(&self, instance: InstanceId, key: KeyId, used: Used, today: &Today) -> Option<Supply> {
        match self {
            Self::Off => Some(used.into()),
            Self::Here(burner) => burn_all(burner, vec![(key, used)], today).pop(),
            Self::There(_, thread) => {
                let unsent = thread.try_send(Some(Burn { instance, key, used })).err()?;
                warn!(
                    "nonces wait for the store in greater number than this node has room for: it does not sign with these"
                );
                match unsent {
                    mpsc::error::TrySendError::Full(burn) | mpsc::error::TrySendError::Closed(burn) => {
                        burn.map(|burn| burn.used.refused())
                    }
                }
            }
        }
    }

    /// Wakes the thread to stop; a full inbox needs no waking.
    pub(crate) fn stop(&self) {
        if let Self::There(_, thread) = self {
            drop(thread.try_send(None));
        }
    }
}

/// Puts nonces on record; nothing comes of them if that fails, and they are wiped.
pub(crate) fn burn_all(burner: &Burner, used: Vec<(KeyId, Used)>, today: &Today) -> Vec<Supply> {
    burner.burn(used, today.get()).unwrap_or_else(|error| {
        warn!(%error, "nonces were not put on record as used up, and sign nothing");
        Vec::new()
    })
}
