//! The schemes on encoded bytes, whatever the suite: what a service or a client calls.

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Secret};
use theta_sharing::ShareIndex;

use super::{AnyKeyShare, AnyPublicKey};
use crate::registry::OneRoundKey;
use crate::{Answer, CombineError, RequestError, Statement, Suite, VerifyError};

/// A combined result.
#[derive(Debug)]
pub struct Combined {
    /// The payload key, signature or coin value.
    pub result: Secret<Vec<u8>>,
    /// The coin's proof; empty where the result proves itself.
    pub proof: Vec<u8>,
}

/// Why a call on bytes did not do what was asked. The variants keep apart whose doing it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// The statement is not one that the key answers: the caller's doing.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A key that takes two rounds, on an operation of one: the caller's doing.
    #[error("{0} signs in two rounds: ask the group to sign, a share cannot be made alone")]
    TwoRounds(Suite),
    /// The share is not of this key: the caller's doing.
    #[error("the share is not of this key: pair the files of one key")]
    OtherKey,
    /// The bytes are not a share: the sender's doing.
    #[error("the share of party {index} is malformed: {error}")]
    MalformedShare {
        /// Whose.
        index: ShareIndex,
        /// Why.
        error: DecodeError,
    },
    /// The shares are false: their senders' doing.
    #[error("false shares, of party {}", list(.0))]
    FalseShares(Vec<ShareIndex>),
    /// The shares do not make a result.
    #[error(transparent)]
    Combine(#[from] CombineError),
    /// A result that does not verify.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

fn list(indices: &[ShareIndex]) -> String {
    indices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl AnyPublicKey {
    /// Whether the key answers the statement: for a ciphertext header, whether it is valid.
    ///
    /// # Errors
    /// [`RequestError`] with the reason why not.
    pub fn check_request<'a>(&self, statement: impl Into<Statement<'a>>) -> Result<(), RequestError> {
        self.object().check_request(&statement.into())
    }

    /// The part of the party that holds `share` in the group's answer to a statement.
    ///
    /// # Errors
    /// [`SchemeError::Request`], [`SchemeError::TwoRounds`], [`SchemeError::OtherKey`].
    pub fn answer<'a>(
        &self,
        share: &AnyKeyShare,
        statement: impl Into<Statement<'a>>,
    ) -> Result<Arc<dyn Answer>, SchemeError> {
        if share.key_id() != self.key_id() {
            return Err(SchemeError::OtherKey);
        }
        self.one_round()?.answer(share, &statement.into())
    }

    /// Makes the share of the statement that `share`'s party owes.
    ///
    /// # Errors
    /// [`SchemeError::Request`], [`SchemeError::TwoRounds`], [`SchemeError::OtherKey`].
    pub fn create_share<'a>(
        &self,
        share: &AnyKeyShare,
        statement: impl Into<Statement<'a>>,
        rng: &mut dyn CryptoRng,
    ) -> Result<Vec<u8>, SchemeError> {
        if share.key_id() != self.key_id() {
            return Err(SchemeError::OtherKey);
        }
        self.one_round()?.create_share(share, &statement.into(), rng)
    }

    /// Checks party `index`'s share of the statement.
    ///
    /// # Errors
    /// [`SchemeError::Request`], [`SchemeError::TwoRounds`], [`SchemeError::MalformedShare`], [`SchemeError::FalseShares`].
    pub fn verify_share<'a>(
        &self,
        statement: impl Into<Statement<'a>>,
        index: ShareIndex,
        share: &[u8],
        rng: &mut dyn CryptoRng,
    ) -> Result<(), SchemeError> {
        self.one_round()?.verify_share(&statement.into(), (index, share), rng)
    }

    /// Combines the first k of the shares; a false result never comes back. If shares are false, all of their senders
    /// are named, as far as their shares carry proofs: with bare shares alone it stays [`CombineError::ResultInvalid`].
    ///
    /// # Errors
    /// Any [`SchemeError`] but [`SchemeError::OtherKey`] and [`SchemeError::Verify`].
    pub fn combine<'a>(
        &self,
        statement: impl Into<Statement<'a>>,
        shares: &[(ShareIndex, &[u8])],
        rng: &mut dyn CryptoRng,
    ) -> Result<Combined, SchemeError> {
        self.one_round()?.combine(&statement.into(), shares, rng)
    }

    /// Verifies a signature of a message, or the value of a coin's name with its proof.
    ///
    /// # Errors
    /// [`SchemeError::Verify`], or [`SchemeError::Request`] if keys of this purpose have no results to verify.
    pub fn verify(&self, message: &[u8], result: &[u8], proof: &[u8]) -> Result<(), SchemeError> {
        self.object().verify(message, result, proof)
    }

    fn one_round(&self) -> Result<&dyn OneRoundKey, SchemeError> {
        self.object().one_round().ok_or(SchemeError::TwoRounds(self.suite()))
    }
}
