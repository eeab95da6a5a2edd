//! FROST's keys behind the objects of all suites.

use theta_groups::Secret;

use super::{DerivedKey, Frost, FrostKey, FrostSuite, VerifyingKey};
use crate::keys::scheme::TwoRounds;
use crate::keys::{KeyScheme, SchemeError};
use crate::limits::MAX_MESSAGE_LEN;
use crate::registry::{Family, Keyed, MadeAhead};
use crate::{Purpose, RequestError, SignatureScheme, Statement, VerifyError};

impl<C: FrostSuite> FrostKey for Keyed<Frost<C>> {
    fn randomized(&self, seed: &Secret<Vec<u8>>, encoded_commitments: &[u8]) -> Option<Vec<u8>> {
        let key = DerivedKey::<C>::randomized(&self.public, seed, encoded_commitments).ok()?;
        Some(key.verifying_key().bytes().to_vec())
    }

    fn verify_with(&self, [key, message, signature]: [&[u8]; 3]) -> Result<(), VerifyError> {
        VerifyingKey::<C>::decode(key)?.verify(message, signature)
    }
}

impl<C: FrostSuite> Family<Frost<C>> for TwoRounds {
    const MADE_AHEAD: Option<MadeAhead> = Some(MadeAhead::Commitments);

    fn check_request(
        _public: &<Frost<C> as KeyScheme>::PublicKey,
        statement: &Statement<'_>,
    ) -> Result<(), RequestError> {
        statement.for_purpose(Purpose::Sign, "message", MAX_MESSAGE_LEN).map(drop)
    }

    fn verify(
        public: &<Frost<C> as KeyScheme>::PublicKey,
        message: &[u8],
        result: &[u8],
        _proof: &[u8],
    ) -> Result<(), SchemeError> {
        Ok(Frost::<C>::verify(public, message, result)?)
    }

    fn frost(key: &Keyed<Frost<C>>) -> Option<&dyn FrostKey> {
        Some(key)
    }
}
