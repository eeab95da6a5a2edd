//! The families of operations that keys have.

use super::{Keyed, OneRoundKey, SchemeError};
use crate::ciphers::CipherKey;
use crate::keys::scheme::{Ciphers, Coins, KeyScheme, Signatures};
use crate::signatures::ecdsa::EcdsaKey;
use crate::signatures::frost::FrostKey;
use crate::{
    MessageDigest, Purpose, RequestError, SignatureScheme, Statement, Suite, ThresholdCipher, ThresholdCoin,
    ThresholdScheme,
};

/// The operations of keys of scheme `S`.
pub trait Family<S: KeyScheme> {
    /// Whether the key answers the statement.
    ///
    /// # Errors
    /// [`RequestError`] with the reason why not.
    fn check_request(public: &S::PublicKey, statement: &Statement<'_>) -> Result<(), RequestError>;

    /// Verifies a result.
    ///
    /// # Errors
    /// [`SchemeError::Verify`], or [`SchemeError::Request`] if keys of this family have no results to verify.
    fn verify(public: &S::PublicKey, message: &[u8], result: &[u8], proof: &[u8]) -> Result<(), SchemeError>;

    /// Whether one holder can tell the others what it combined: see [`ThresholdScheme::HAS_COMBINED_VALUE`].
    const HAS_COMBINED_VALUE: bool = false;

    /// The suite's code in headers of ciphertexts, if keys are for encryption.
    const HEADER_CODE: Option<u8> = None;

    /// What holders make before a signature is asked for, if they can.
    const MADE_AHEAD: Option<MadeAhead> = None;

    /// What messages are hashed with first, if their digest is all that the scheme sees of them.
    const DIGEST: Option<MessageDigest> = None;

    /// Verifies a signature of the message with this digest.
    ///
    /// # Errors
    /// [`SchemeError::Verify`]; [`SchemeError::Request`] without [`Family::DIGEST`].
    fn verify_digest(_public: &S::PublicKey, _digest: &[u8], _signature: &[u8]) -> Result<(), SchemeError> {
        Err(RequestError::NoDigests.into())
    }

    /// The key as one whose parties answer in one round.
    fn one_round(_key: &Keyed<S>) -> Option<&dyn OneRoundKey> {
        None
    }

    /// The key, if it is for encryption.
    fn cipher(_key: &Keyed<S>) -> Option<&dyn CipherKey> {
        None
    }

    /// The key, if it is one of FROST.
    fn frost(_key: &Keyed<S>) -> Option<&dyn FrostKey> {
        None
    }

    /// The key, if it is one of ECDSA.
    fn ecdsa(_key: &Keyed<S>) -> Option<&dyn EcdsaKey> {
        None
    }
}

/// What the holders of a key make together before signatures are asked for, so that these take fewer rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeAhead {
    /// Commitments to nonces, each of one holder for one other.
    Commitments,
    /// Presignatures, each for one signature.
    Presignatures,
}

impl MadeAhead {
    /// The name in metrics and in what nodes say of their keys.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Commitments => "commitments",
            Self::Presignatures => "presignatures",
        }
    }
}

impl Suite {
    /// What the holders of keys of this suite make before signatures are asked for; `None` if each request is answered by itself.
    #[must_use]
    pub fn made_ahead(self) -> Option<MadeAhead> {
        self.ops().made_ahead()
    }
}

impl<S: ThresholdCipher> Family<S> for Ciphers {
    const HAS_COMBINED_VALUE: bool = S::HAS_COMBINED_VALUE;
    const HEADER_CODE: Option<u8> = Some(S::HEADER_CODE);

    fn check_request(public: &S::PublicKey, statement: &Statement<'_>) -> Result<(), RequestError> {
        S::parse_request(public, statement).map(drop)
    }

    fn verify(_public: &S::PublicKey, _message: &[u8], _result: &[u8], _proof: &[u8]) -> Result<(), SchemeError> {
        Err(RequestError::Purpose { key: Purpose::Decrypt, asked: Purpose::Sign }.into())
    }

    fn one_round(key: &Keyed<S>) -> Option<&dyn OneRoundKey> {
        Some(key)
    }

    fn cipher(key: &Keyed<S>) -> Option<&dyn CipherKey> {
        Some(key)
    }
}

impl<S: ThresholdScheme + SignatureScheme> Family<S> for Signatures {
    const HAS_COMBINED_VALUE: bool = S::HAS_COMBINED_VALUE;

    fn check_request(public: &S::PublicKey, statement: &Statement<'_>) -> Result<(), RequestError> {
        S::parse_request(public, statement).map(drop)
    }

    fn verify(public: &S::PublicKey, message: &[u8], result: &[u8], _proof: &[u8]) -> Result<(), SchemeError> {
        Ok(S::verify(public, message, result)?)
    }

    const DIGEST: Option<MessageDigest> = S::DIGEST;

    fn verify_digest(public: &S::PublicKey, digest: &[u8], signature: &[u8]) -> Result<(), SchemeError> {
        match S::DIGEST {
            Some(_) => Ok(S::verify_digest(public, digest, signature)?),
            None => Err(RequestError::NoDigests.into()),
        }
    }

    fn one_round(key: &Keyed<S>) -> Option<&dyn OneRoundKey> {
        Some(key)
    }
}

impl<S: ThresholdCoin> Family<S> for Coins {
    const HAS_COMBINED_VALUE: bool = S::HAS_COMBINED_VALUE;

    fn check_request(public: &S::PublicKey, statement: &Statement<'_>) -> Result<(), RequestError> {
        S::parse_request(public, statement).map(drop)
    }

    fn verify(public: &S::PublicKey, message: &[u8], result: &[u8], proof: &[u8]) -> Result<(), SchemeError> {
        Ok(S::verify(public, message, result, proof)?)
    }

    fn one_round(key: &Keyed<S>) -> Option<&dyn OneRoundKey> {
        Some(key)
    }
}
