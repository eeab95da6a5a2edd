//! Keys: their public material, the shares, the dealer, their files, and the schemes for those who have only bytes.

mod any;
mod api;
mod dealer;
pub(crate) mod dispatch;
mod encoded;
mod error;
mod public;
pub(crate) mod public_file;
mod scheme;
mod share;
pub(crate) mod share_file;

pub use any::{AnyKeyShare, AnyPublicKey, deal_any, deal_rsa, deal_rsa_primes, import_any};
pub use api::{Combined, SchemeError};
pub use dealer::{DealError, Dealt, deal, deal_secret};
pub use encoded::possession_of;
pub use error::{EncodedKeyError, KeyFileError, PublicKeyError};
pub use public::{KeyId, PublicKeySet};
pub use scheme::{CurveScheme, KeyScheme, PublicMaterial, SecretMaterial};
pub use share::KeyShare;
pub use theta_names::{KeyName, KeyNameError};
