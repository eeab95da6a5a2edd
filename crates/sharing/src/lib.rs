//! Sharing a secret among parties, and proving that a share was used correctly.
//!
//! - [`split`]: Shamir's sharing, with [`ShareIndex`] and [`Threshold`];
//! - [`InterpolationSet`]: Lagrange interpolation at zero, of scalars and "in the exponent";
//! - [`dleq`]: Chaum-Pedersen proofs of equal discrete logarithms, one by one and in batches;
//! - [`Polynomial`], [`Commitments`], [`pedersen`]: verifiable sharing by untrusted dealers (Feldman, Pedersen);
//! - [`vartime_on_one_polynomial`]: whether a public key and its verification keys belong together;
//! - [`Encoded`]: an element beside its encoding, which is computed once; [`EncodedKey`], [`EncodedShare`] and
//!   [`ProofOfPossession`]: keys as bytes, for code that handles keys of all groups alike.

mod consistency;
mod dealing;
pub mod dleq;
mod encoded;
mod encoded_key;
mod feldman;
mod interpolation;
pub mod pedersen;
mod proof_of_possession;
mod shamir;
mod threshold;

pub use consistency::vartime_on_one_polynomial;
pub use dealing::{Polynomial, coefficients_at, interpolate_at};
pub use encoded::Encoded;
pub use encoded_key::{EncodedKey, EncodedShare};
pub use feldman::{Commitments, CommittedShare, vartime_false_shares};
pub use interpolation::{InterpolationError, InterpolationSet, coefficients_at_zero, vartime_interpolate_at_zero};
pub use proof_of_possession::ProofOfPossession;
pub use shamir::{split, split_lazily};
pub use theta_names::ShareIndex;
pub use threshold::{Threshold, ThresholdError};
