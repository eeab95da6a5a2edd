//! The source of a node's keys.

use std::sync::Arc;

use theta_custody::{Burner, Certifier, Custodian, KeyTable, Quarantines, StoreStanding};

use super::StartError;
use crate::OrchestratorConfig;

/// The source of a node's keys.
pub enum Keys {
    /// Keys in memory, which stay the same as long as the node runs.
    Fixed(Arc<KeyTable>),
    /// As `Fixed`, with a certifier of slots.
    Guarded(Arc<KeyTable>, Box<Certifier>),
    /// Keys of a custodian, which makes and renews them.
    Kept(Box<Custodian>),
}

impl Keys {
    pub(crate) fn table(&self) -> &Arc<KeyTable> {
        match self {
            Self::Fixed(table) | Self::Guarded(table, _) => table,
            Self::Kept(custodian) => custodian.keys(),
        }
    }

    /// The standing of the custodian's store, if there is a custodian.
    pub(crate) fn store(&self) -> Option<StoreStanding> {
        match self {
            Self::Fixed(_) | Self::Guarded(..) => None,
            Self::Kept(custodian) => Some(custodian.standing()),
        }
    }

    /// Records which holders compute no more together, if there is a custodian.
    pub(crate) fn quarantines(&self) -> Option<Quarantines> {
        match self {
            Self::Fixed(_) | Self::Guarded(..) => None,
            Self::Kept(custodian) => Some(custodian.quarantines()),
        }
    }

    /// Records used nonces, if the configuration asks for it.
    ///
    /// # Errors
    /// [`StartError::NoStore`]: there is no store to record them in.
    pub(crate) fn burner(&self, config: &OrchestratorConfig) -> Result<Option<Burner>, StartError> {
        match self {
            _ if !config.burn_nonces => Ok(None),
            Self::Fixed(_) | Self::Guarded(..) => Err(StartError::NoStore),
            Self::Kept(custodian) => Ok(Some(custodian.burner())),
        }
    }

    /// The custodian and the certifier, if there are any.
    pub(crate) fn into_parts(self) -> (Option<Box<Custodian>>, Option<Certifier>) {
        match self {
            Self::Fixed(_) => (None, None),
            Self::Guarded(_, certifier) => (None, Some(*certifier)),
            Self::Kept(custodian) => {
                let certifier = custodian.certifier();
                (Some(custodian), Some(certifier))
            }
        }
    }
}

impl From<KeyTable> for Keys {
    fn from(table: KeyTable) -> Self {
        Self::Fixed(Arc::new(table))
    }
}

impl From<Custodian> for Keys {
    fn from(custodian: Custodian) -> Self {
        Self::Kept(Box::new(custodian))
    }
}

impl core::fmt::Debug for Keys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Keys::Fixed",
            Self::Guarded(..) => "Keys::Guarded",
            Self::Kept(_) => "Keys::Kept",
        })
    }
}
