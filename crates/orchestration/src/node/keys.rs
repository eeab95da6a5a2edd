//! Where a node's keys are.

use std::sync::Arc;

use theta_custody::{Custodian, KeyTable};

/// Where a node's keys are.
pub enum Keys {
    /// In memory, as they are for as long as the node runs.
    Fixed(Arc<KeyTable>),
    /// With a custodian, who makes and renews them.
    Kept(Box<Custodian>),
}

impl Keys {
    pub(crate) fn table(&self) -> &Arc<KeyTable> {
        match self {
            Self::Fixed(table) => table,
            Self::Kept(custodian) => custodian.keys(),
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
            Self::Kept(_) => "Keys::Kept",
        })
    }
}
