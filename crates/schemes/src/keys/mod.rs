//! Keys: their public material, the shares, the dealer, their files, and the schemes for those who have only bytes.

mod any;
mod api;
mod consistency;
mod dealer;
mod dispatch;
mod error;
mod public;
mod public_file;
mod share;
mod share_file;

pub use any::{AnyKeyShare, AnyPublicKey, deal_any, import_any};
pub use api::{Combined, SchemeError};
pub use dealer::{DealError, Dealt, deal, deal_secret};
pub use error::{KeyFileError, KeyName, KeyNameError, PublicKeyError};
pub use public::{KeyId, KeyScheme, PublicKeySet};
pub use share::KeyShare;
