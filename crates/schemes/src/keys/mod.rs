//! Keys: their public material, their shares, the dealer, their parts as bytes, and the schemes on encoded bytes.

mod curve;
mod dealer;
mod encoded;
mod error;
mod id;
mod material;
mod parts;
mod public;
pub(crate) mod scheme;
mod share;
mod typed;

pub use crate::answer::Combined;
pub use crate::registry::{AnyKeyShare, AnyPublicKey, SchemeError, deal_any, deal_rsa, deal_rsa_primes, import_any};
pub use curve::CurveScheme;
pub use dealer::{DealError, Dealt, deal, deal_secret};
pub use encoded::proof_of_possession;
pub use error::PublicKeyError;
pub use id::KeyId;
pub use material::{PublicMaterial, SecretMaterial};
pub use parts::{KeyKind, Part, PartsError, PublicBytesError, PublicParts, ShareBytesError, ShareError};
pub use public::PublicKeySet;
pub use scheme::KeyScheme;
pub use share::KeyShare;
pub use theta_names::{KeyName, KeyNameError};
pub use typed::{KeyGroup, Typed, TypedKeyShare, TypedPublicKey};
