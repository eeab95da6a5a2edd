//! Sharing a secret among parties, and proving that a share was used as it should be: the second floor.
//!
//! - [`split`]: Shamir's sharing; [`ShareIndex`] and [`Threshold`] say who holds what and how many must agree;
//! - [`InterpolationSet`]: Lagrange interpolation at zero, of scalars and "in the exponent";
//! - [`dleq`]: Chaum-Pedersen proofs of equal discrete logarithms, one by one and in batches;
//! - [`Polynomial`], [`Commitments`], [`pedersen`]: sharing by dealers that nobody trusts (Feldman, Pedersen);
//! - [`vartime_on_one_polynomial`]: whether a public key and its verification keys belong together;
//! - [`Encoded`]: an element beside its encoding, for those who need both more than once; [`EncodedKey`], [`EncodedShare`] and
//!   [`ProofOfPossession`]: keys as bytes, for those who serve keys of every group alike.

mod consistency;
mod dealing;
pub mod dleq;
mod encoded;
mod encoded_key;
mod feldman;
mod interpolation;
pub mod pedersen;
mod possession;
mod shamir;
mod threshold;

pub use consistency::vartime_on_one_polynomial;
pub use dealing::{Polynomial, coefficients_at, interpolate_at};
pub use encoded::Encoded;
pub use encoded_key::{EncodedKey, EncodedShare};
pub use feldman::{Commitments, CommittedShare, vartime_false_shares};
pub use interpolation::{InterpolationError, InterpolationSet, coefficients_at_zero, vartime_interpolate_at_zero};
pub use possession::ProofOfPossession;
pub use shamir::{split, split_lazily};
pub use theta_names::ShareIndex;
pub use threshold::{Threshold, ThresholdError};
