//! Keys: their public material, their shares, the dealer, their parts as bytes, and the schemes on encoded bytes.

mod any;
mod api;
mod dealer;
mod encoded;
mod error;
mod parts;
mod public;
mod scheme;
mod share;
mod typed;

pub use any::{AnyKeyShare, AnyPublicKey, deal_any, deal_rsa, deal_rsa_primes, import_any};
pub use api::{Combined, SchemeError};
pub use dealer::{DealError, Dealt, deal, deal_secret};
pub use encoded::possession_of;
pub use error::PublicKeyError;
pub use parts::{KeyKind, Part, PartsError, PublicParts, ShareError};
pub use public::{KeyId, PublicKeySet};
pub use scheme::{CurveScheme, KeyScheme, PublicMaterial, SecretMaterial};
pub use share::KeyShare;
pub use theta_names::{KeyName, KeyNameError};
pub use typed::{KeyGroup, Typed, TypedKeyShare, TypedPublicKey};
