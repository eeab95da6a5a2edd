//! What keys of FROST can do that others cannot.

use theta_groups::Secret;

use crate::VerifyError;

/// The operations of FROST's keys for re-randomisation.
pub trait FrostKey {
    /// The re-randomised key of a seed and the commitments of a session, in its standard encoding.
    fn randomized(&self, seed: &Secret<Vec<u8>>, encoded_commitments: &[u8]) -> Option<Vec<u8>>;
    /// Verifies a signature of a message with another key of the suite: key, message, signature.
    fn verify_with(&self, parts: [&[u8]; 3]) -> Result<(), VerifyError>;
}
