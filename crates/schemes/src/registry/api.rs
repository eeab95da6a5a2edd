//! The schemes of all suites on encoded bytes, for services and clients.

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::DecodeError;
use theta_sharing::ShareIndex;

use super::{AnyKeyShare, AnyPublicKey, OneRoundKey};
use crate::answer::Combined;
use crate::{Answer, CombineError, RequestError, Statement, Suite, Unproven, VerifyError};

/// Why a call on bytes failed. The variants keep apart whose fault it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// The key does not answer the statement: the caller's fault.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The key signs in two rounds, and the operation is of one: the caller's fault.
    #[error("{0} signs in two rounds: ask the group to sign, a share cannot be made alone")]
    TwoRounds(Suite),
    /// The key signs with what its holders have made together before, and the operation is of one round: the caller's fault.
    #[error(
        "{0} signs with what its holders make together before: ask the group to sign, a share cannot be made alone"
    )]
    Preprocessed(Suite),
    /// The key share is not of this key: the caller's fault.
    #[error("the share is not of this key: pair the files of one key")]
    OtherKey,
    /// The bytes are not a share: the sender's fault.
    #[error("the share of party {index} is malformed: {error}")]
    MalformedShare {
        /// The sender.
        index: ShareIndex,
        /// What is wrong with the bytes.
        error: DecodeError,
    },
    /// The shares are false: their senders' fault.
    #[error("false shares, of party {}", list(.0))]
    FalseShares(Vec<ShareIndex>),
    /// The proof of one's own share is false: this machine's fault, if the share is of this key.
    #[error("the proof of this share came out false: ask again, and use another machine if that helps nothing")]
    FalseProof,
    /// The shares do not give a result.
    #[error(transparent)]
    Combine(#[from] CombineError),
    /// The result does not verify.
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

    /// The part in the answer to a statement of the party that holds `share`.
    ///
    /// # Errors
    /// [`SchemeError::Request`], [`SchemeError::TwoRounds`], [`SchemeError::Preprocessed`], [`SchemeError::OtherKey`].
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

    /// The same, before the statement's proof is checked, so that those of many are checked [together](crate::prove_together).
    ///
    /// # Errors
    /// As [`answer`](AnyPublicKey::answer).
    pub fn answer_unproven<'a>(
        &self,
        share: &AnyKeyShare,
        statement: impl Into<Statement<'a>>,
    ) -> Result<Unproven<Arc<dyn Answer>>, SchemeError> {
        if share.key_id() != self.key_id() {
            return Err(SchemeError::OtherKey);
        }
        self.one_round()?.answer_unproven(share, &statement.into())
    }

    /// Makes the share of the answer to a statement, with its proof, for the party that holds `share`.
    ///
    /// # Errors
    /// [`SchemeError::Request`], [`SchemeError::TwoRounds`], [`SchemeError::Preprocessed`], [`SchemeError::OtherKey`].
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

    /// Verifies the share of party `index` in the answer to a statement.
    ///
    /// # Errors
    /// [`SchemeError::Request`], [`SchemeError::TwoRounds`], [`SchemeError::Preprocessed`], [`SchemeError::MalformedShare`],
    /// [`SchemeError::FalseShares`].
    pub fn verify_share<'a>(
        &self,
        statement: impl Into<Statement<'a>>,
        index: ShareIndex,
        share: &[u8],
        rng: &mut dyn CryptoRng,
    ) -> Result<(), SchemeError> {
        self.one_round()?.verify_share(&statement.into(), (index, share), rng)
    }

    /// Combines the first k of the shares; never returns a false result. If shares are false, the error names all senders of
    /// false shares with proofs; with bare shares alone it is [`CombineError::ResultInvalid`].
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
        let object = self.object();
        object.one_round().ok_or_else(|| match object.ecdsa() {
            Some(_) => SchemeError::Preprocessed(self.suite()),
            None => SchemeError::TwoRounds(self.suite()),
        })
    }
}
