//! The keys of this node that answer requests.

mod entry;
mod error;
mod holders;
mod key_ref;
mod stored;
mod table;

pub use entry::KeyEntry;
pub(crate) use entry::stored_purpose;
pub use error::{KeyTableError, ResolveError};
pub use holders::{Holders, HoldersError};
pub use key_ref::{KeyRef, KeyRefError};
pub use stored::{DealtKey, import_dealt, read_keys};
pub(crate) use stored::{entries, epoch_of, share_bytes, stored_name};
pub use table::KeyTable;
