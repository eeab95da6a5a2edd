//! Threshold ciphers, signatures and coins as pure functions, without rounds, files or other input and output. Only dealers use
//! threads.
//!
//! - [`ThresholdScheme`] and its families are the traits of one-round schemes: share, verify, combine.
//! - [`ciphers::sg02`], [`ciphers::bz03`], [`signatures::bls04`], [`signatures::frost`], [`signatures::sh00`],
//!   [`signatures::ecdsa`], [`coins::cks05`] and its siblings are the schemes, generic over the group or form.
//! - [`keys`] has the keys, their dealer, their parts as bytes, and the schemes on encoded bytes.
//!
//! A signature by any 2 of 3 parties, from the dealer to the verifier:
//!
//! ```
//! use theta_schemes::{Statement, Suite, keys::deal_any};
//! use theta_sharing::Threshold;
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # let mut rng = ChaCha20Rng::seed_from_u64(1); // A fixed seed is for examples only.
//!
//! let (public, shares) = deal_any(Suite::Bls04MinPk, Threshold::new(2, 3)?, &mut rng);
//! let statement = Statement::Sign(b"report 7");
//! let first = public.create_share(&shares[0], statement, &mut rng)?;
//! let third = public.create_share(&shares[2], statement, &mut rng)?;
//!
//! let answers = [(shares[0].index(), &first[..]), (shares[2].index(), &third[..])];
//! let combined = public.combine(statement, &answers, &mut rng)?;
//! public.verify(b"report 7", combined.result.expose(), &combined.proof)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod bisection;
pub mod ciphers;
pub mod coins;
mod derived_rng;
mod digest;
mod dleq_share;
mod error;
mod family;
pub mod keys;
mod limits;
mod point_share;
mod registry;
mod selection;
pub mod signatures;
mod statement;
mod suite;

pub use answer::{
    Answer, Claim, Gathered, PendingProof, PendingShare, RequestProof, Shares, Unproven, check_together, prove_together,
};
pub use digest::{MessageDigest, MessageHasher};
pub use error::{CombineError, RequestError, VerifyError};
pub use family::{SignatureScheme, ThresholdCipher, ThresholdCoin, ThresholdScheme};
pub use keys::scheme::{Ciphers, Coins, Curve, Preprocessed, Rsa, Signatures, TwoRounds};
pub use limits::{MAX_COIN_NAME_LEN, MAX_LABEL_LEN, MAX_MESSAGE_LEN};
pub use registry::{Family, Kind, MadeAhead, Registered, UnfitThreshold, UnsupportedDelivery};
pub use statement::{Statement, StatementBytes};
pub use suite::{Suite, UnknownSuite};
pub use theta_names::{Delivery, Purpose};

#[doc(hidden)]
pub use theta_groups as groups;
