//! The epilogue by which a node helps others.

use theta_ceremonies::Remains;

use crate::custodian::message::Id;

/// The epilogue that was read last.
pub(in crate::custodian) struct Helped {
    pub(super) id: Id,
    pub(super) remains: Remains,
    pub(super) read_at: u64,
}
