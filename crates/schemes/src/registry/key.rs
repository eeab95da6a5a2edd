//! A key of any suite as one object.

use std::sync::Arc;

use theta_sharing::ShareIndex;

use super::{AnyKeyShare, Family, Kind, OneRoundKey, Registered, SchemeError};
use crate::keys::{KeyScheme, ShareError, Typed, TypedPublicKey};
use crate::signatures::ecdsa::EcdsaKey;
use crate::signatures::frost::FrostKey;
use crate::{MessageDigest, RequestError, Statement, ciphers::CipherKey};

/// The operations of a public key of any suite.
pub(crate) trait KeyObject: Send + Sync {
    /// The key itself.
    fn typed(&self) -> &TypedPublicKey;
    /// The public key as standard verifiers take it.
    fn verifying_key_bytes(&self) -> &[u8];
    /// The share with this secret, checked.
    fn share(&self, index: ShareIndex, secret: &[u8]) -> Result<AnyKeyShare, ShareError>;
    /// Whether the key answers the statement.
    fn check_request(&self, statement: &Statement<'_>) -> Result<(), RequestError>;
    /// Verifies a result.
    fn verify(&self, message: &[u8], result: &[u8], proof: &[u8]) -> Result<(), SchemeError>;
    /// What messages are hashed with first, if their digest is all that the scheme sees of them.
    fn message_digest(&self) -> Option<MessageDigest>;
    /// Verifies a signature of the message with this digest.
    fn verify_digest(&self, digest: &[u8], signature: &[u8]) -> Result<(), SchemeError>;
    /// If its parties answer in one round.
    fn one_round(&self) -> Option<&dyn OneRoundKey>;
    /// The key, if it is for encryption.
    fn cipher(&self) -> Option<&dyn CipherKey>;
    /// The key, if it is one of FROST.
    fn frost(&self) -> Option<&dyn FrostKey>;
    /// The key, if it is one of ECDSA.
    fn ecdsa(&self) -> Option<&dyn EcdsaKey>;
}

/// A key of scheme `S`.
pub struct Keyed<S: KeyScheme> {
    pub(crate) public: Arc<S::PublicKey>,
    typed: TypedPublicKey,
}

impl<S: KeyScheme> Keyed<S> {
    pub(crate) fn new(public: Arc<S::PublicKey>) -> Self {
        let typed = S::PublicKey::erase(Arc::clone(&public));
        Self { public, typed }
    }
}

impl<S: Registered> KeyObject for Keyed<S> {
    fn typed(&self) -> &TypedPublicKey {
        &self.typed
    }

    fn verifying_key_bytes(&self) -> &[u8] {
        S::verifying_key_bytes(&self.public)
    }

    fn share(&self, index: ShareIndex, secret: &[u8]) -> Result<AnyKeyShare, ShareError> {
        Ok(AnyKeyShare::of::<S>(Arc::new(S::Kind::share(&self.public, index, secret)?)))
    }

    fn check_request(&self, statement: &Statement<'_>) -> Result<(), RequestError> {
        S::Family::check_request(&self.public, statement)
    }

    fn verify(&self, message: &[u8], result: &[u8], proof: &[u8]) -> Result<(), SchemeError> {
        S::Family::verify(&self.public, message, result, proof)
    }

    fn message_digest(&self) -> Option<MessageDigest> {
        S::Family::DIGEST
    }

    fn verify_digest(&self, digest: &[u8], signature: &[u8]) -> Result<(), SchemeError> {
        S::Family::verify_digest(&self.public, digest, signature)
    }

    fn one_round(&self) -> Option<&dyn OneRoundKey> {
        S::Family::one_round(self)
    }

    fn cipher(&self) -> Option<&dyn CipherKey> {
        S::Family::cipher(self)
    }

    fn frost(&self) -> Option<&dyn FrostKey> {
        S::Family::frost(self)
    }

    fn ecdsa(&self) -> Option<&dyn EcdsaKey> {
        S::Family::ecdsa(self)
    }
}
