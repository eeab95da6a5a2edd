//! The store: a redb database whose records are sealed.

pub(crate) mod files;
mod ground;
mod group_commit;
mod open;
mod recovery;
mod reserve;
mod rows;
mod settings;
mod store;
mod tables;

pub use open::Options;
pub(crate) use rows::{Rows, Snapshot, Writes};
pub(crate) use settings::Settings;
pub use store::{Store, Transaction};
pub(crate) use tables::Table;
