//! ECDSA's keys behind the objects of all suites.

use super::{Ecdsa, EcdsaCurve, EcdsaKey, verify::vartime_recovery_id};
use crate::keys::scheme::Preprocessed;
use crate::keys::{KeyScheme, SchemeError};
use crate::limits::MAX_MESSAGE_LEN;
use crate::registry::{Family, Keyed, MadeAhead};
use crate::{MessageDigest, Purpose, RequestError, SignatureScheme, Statement};

impl<C: EcdsaCurve> EcdsaKey for Keyed<Ecdsa<C>> {
    fn uncompressed(&self) -> Option<[u8; 65]> {
        C::uncompressed(self.public.public_key())
    }

    fn vartime_recovery_id(&self, digest: &[u8], signature: &[u8]) -> Option<u8> {
        vartime_recovery_id::<C>(self.public.fixed_public_key(), digest, signature)
    }
}

impl<C: EcdsaCurve> Family<Ecdsa<C>> for Preprocessed {
    const MADE_AHEAD: Option<MadeAhead> = Some(MadeAhead::Presignatures);

    fn check_request(
        _public: &<Ecdsa<C> as KeyScheme>::PublicKey,
        statement: &Statement<'_>,
    ) -> Result<(), RequestError> {
        match statement {
            Statement::SignDigest(digest) => MessageDigest::Sha256.check_len(digest),
            _ => statement.for_purpose(Purpose::Sign, "message", MAX_MESSAGE_LEN).map(drop),
        }
    }

    fn verify(
        public: &<Ecdsa<C> as KeyScheme>::PublicKey,
        message: &[u8],
        result: &[u8],
        _proof: &[u8],
    ) -> Result<(), SchemeError> {
        Ok(Ecdsa::<C>::verify(public, message, result)?)
    }

    const DIGEST: Option<MessageDigest> = Ecdsa::<C>::DIGEST;

    fn verify_digest(
        public: &<Ecdsa<C> as KeyScheme>::PublicKey,
        digest: &[u8],
        signature: &[u8],
    ) -> Result<(), SchemeError> {
        Ok(Ecdsa::<C>::verify_digest(public, digest, signature)?)
    }

    fn ecdsa(key: &Keyed<Ecdsa<C>>) -> Option<&dyn EcdsaKey> {
        Some(key)
    }
}
