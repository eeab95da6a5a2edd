//! Threshold ciphers, signatures and coins as pure mathematics: no rounds, no input or output beyond the reader and
//! writer that the caller hands in.
//!
//! - [`ThresholdScheme`] and its families say what a one-round scheme can do: share, verify, combine.
//! - [`ciphers::sg02`], [`ciphers::bz03`], [`signatures::bls04`], [`coins::cks05`] are the schemes, generic over the group or form.
//! - [`ciphers::payload`] seals what a cipher's key wraps: files of any size in constant memory.
//! - [`keys`] holds the keys, their dealer, their files, and the interface for those who have only bytes.
//!
//! A file for any 2 of 3 parties, from the dealer to the plaintext:
//!
//! ```
//! use theta_schemes::ciphers::payload::{Aead, PayloadKey, open_bytes, split_ciphertext};
//! use theta_schemes::{Statement, Suite, keys::deal_any};
//! use theta_sharing::Threshold;
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # let mut rng = ChaCha20Rng::seed_from_u64(1); // Never so in earnest.
//!
//! let (public, shares) = deal_any(Suite::Sg02Ristretto255, Threshold::new(2, 3)?, &mut rng);
//! let ciphertext = public.encrypt(b"the contents", b"report 7", Aead::default(), &mut rng)?;
//!
//! // The parties see the header alone.
//! let (header, _payload) = split_ciphertext(&ciphertext)?;
//! let statement = Statement::Decapsulate(header);
//! let first = public.create_share(&shares[0], statement, &mut rng)?;
//! let third = public.create_share(&shares[2], statement, &mut rng)?;
//!
//! let answers = [(shares[0].index(), &first[..]), (shares[2].index(), &third[..])];
//! let combined = public.combine(statement, &answers, &mut rng)?;
//! let key = PayloadKey::from_bytes(combined.result.expose())?;
//! assert_eq!(open_bytes(&key, &ciphertext)?.expose(), b"the contents");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bisection;
pub mod ciphers;
pub mod coins;
mod derived_rng;
mod dleq_share;
mod family;
pub mod import;
pub mod keys;
mod selection;
pub mod signatures;
mod statement;
mod suite;

pub use family::{
    CombineError, RequestError, SignatureScheme, Statement, ThresholdCipher, ThresholdCoin, ThresholdScheme,
    VerifyError,
};
pub use statement::{MAX_COIN_NAME_LEN, MAX_LABEL_LEN, MAX_MESSAGE_LEN, StatementBytes};
pub use suite::{Suite, UnknownSuite};
pub use theta_names::Purpose;

#[doc(hidden)]
pub use theta_groups as groups;
