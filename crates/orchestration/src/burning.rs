//! Records used nonces and presignatures before they sign, if the node is configured to.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use theta_authority::InstanceId;
use theta_custody::{Burner, Burnt};
use theta_protocols::{Supply, Used};
use theta_schemes::keys::KeyId;
use tokio::sync::mpsc;
use tracing::warn;

/// Whether used nonces are recorded, and by whom.
pub(crate) enum Burning {
    /// They are not: nonces are in memory only, and are taken out when they sign.
    Off,
    /// The calling thread records them, and waits for the disk.
    Here(Burner),
    /// A thread of its own records them; other threads do not wait for it.
    There(Burner, mpsc::Sender<Option<Burn>>),
}

/// Nonces for an instance that must be recorded first.
pub(crate) struct Burn {
    pub(crate) instance: InstanceId,
    pub(crate) key: KeyId,
    pub(crate) used: Used,
}

/// The present day, in days since 1970, as the code that drives the node sets it.
#[derive(Debug, Default)]
pub(crate) struct Today(AtomicU32);

impl Today {
    /// Sets the time, in seconds since 1970.
    pub(crate) fn set(&self, unix: u64) {
        self.0.store(u32::try_from(unix / (24 * 60 * 60)).unwrap_or(u32::MAX), Relaxed);
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

impl Burning {
    /// The day under which nonces drawn today are recorded.
    pub(crate) fn day(&self, today: &Today) -> u32 {
        match self {
            Self::Off => today.get(),
            Self::Here(burner) | Self::There(burner, _) => burner.day(today.get()),
        }
    }

    /// The day before which nothing signs any more that was made in advance.
    pub(crate) fn oldest(&self, today: &Today) -> u32 {
        match self {
            Self::Off => 0,
            Self::Here(burner) | Self::There(burner, _) => burner.oldest(today.get()),
        }
    }

    /// The supply for the machine; `None` if it comes later.
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

    /// Wakes the thread so that it stops; with a full inbox it is awake.
    pub(crate) fn stop(&self) {
        if let Self::There(_, thread) = self {
            drop(thread.try_send(None));
        }
    }
}

/// Records nonces as used. If that fails, they are wiped, and the machines are told so at once: they go on without.
pub(crate) fn burn_all(burner: &Burner, used: Vec<(KeyId, Used)>, today: &Today) -> Vec<Supply> {
    let Burnt { supplies, failure } = burner.burn(used, today.get());
    if let Some(error) = failure {
        warn!(%error, "nonces were not put on record as used up, and sign nothing");
    }
    supplies
}
