//! The keys of this node that answer requests.

mod collision;
mod entry;
mod error;
mod quarantines;
mod stored;
mod table;

pub use collision::check_new_key;
pub use entry::KeyEntry;
pub use error::{KeyTableError, ResolveError};
pub use quarantines::Quarantines;
pub use stored::{DealtKey, import_dealt, read_keys};
pub(crate) use stored::{entries, epoch_of};
pub use table::KeyTable;
