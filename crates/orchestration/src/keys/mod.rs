//! The keys of this node.

mod error;
mod files;
mod store;

pub use error::KeyStoreError;
pub use store::{KeyEntry, KeyStore};
