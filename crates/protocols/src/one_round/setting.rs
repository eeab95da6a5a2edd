//! What does not change while a request runs.

use std::sync::Arc;

use bytes::Bytes;
use theta_groups::{Secret, SecretRng};
use theta_rounds::{Abort, Bug, PartyId};
use theta_schemes::{Answer, CombineError, Purpose};
use theta_sharing::Threshold;

/// The data that do not change during a run.
pub(super) struct Setting {
    pub(super) local: PartyId,
    pub(super) threshold: Threshold,
    pub(super) purpose: Purpose,
    pub(super) answer: Arc<dyn Answer>,
    pub(super) share_seed: Secret<[u8; 32]>,
    /// Whether only the makers that the request draws make shares at first.
    pub(super) quorum: bool,
}

impl Setting {
    /// This party's share with its proof; the same bytes at every call. `None` after a fault of the machine.
    pub(super) fn proven_share(&self) -> Option<Bytes> {
        self.answer.proven_share(&mut self.share_rng()).map(Bytes::from)
    }

    /// The randomness of this party's share. The nonce of its proof follows from it, and with that the key share.
    pub(super) fn share_rng(&self) -> SecretRng {
        SecretRng::new(&self.share_seed)
    }

    /// Why verified shares do not combine. From outside, only a lying encryptor can cause this.
    pub(super) fn failure(&self, error: &CombineError) -> Abort {
        match error {
            CombineError::ResultInvalid if self.purpose == Purpose::Decrypt => Abort::Input(
                "every share is right but the ciphertext does not open: whoever encrypted it made it so on purpose",
            ),
            CombineError::ResultInvalid => Abort::Bug(Bug("true shares give a false result")),
            CombineError::TooFew { .. } => Abort::Bug(Bug("combined fewer than k shares")),
            CombineError::Duplicate(_) => Abort::Bug(Bug("combined two shares of one party")),
            CombineError::UnknownParty(_) => Abort::Bug(Bug("combined the share of a stranger")),
        }
    }
}
