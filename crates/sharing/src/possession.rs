//! What the holders of a shared key prove together to those who demand that a secret key be known to somebody.

use core::fmt::Debug;

use theta_groups::Secret;

use crate::ShareIndex;

/// A scheme's proof of possession, whatever its group: all keys, shares and proofs are canonical encodings, and bytes that are none
/// prove nothing.
///
/// The proof is linear in the secret: each holder gives a share of it, and k shares interpolate to what a holder of the whole
/// secret key would have given.
pub trait ProofOfPossession: Debug + Send + Sync {
    /// The share of the proof that follows from a share x_i of the secret key; the proof itself from the secret key. `None` for
    /// bytes that are no scalar or no key.
    fn prove(&self, secret: &Secret<Vec<u8>>, public_key: &[u8]) -> Option<Vec<u8>>;

    /// Whether `share` is what follows from the share behind `verification_key`.
    fn vartime_verify_share(&self, public_key: &[u8], verification_key: &[u8], share: &[u8]) -> bool;

    /// The proof from k shares; it is as good as they are. `None` for shares that are no group elements.
    fn vartime_combine(&self, shares: &[(ShareIndex, Vec<u8>)]) -> Option<Vec<u8>>;

    /// Whether the proof is the public key's.
    fn vartime_verify(&self, public_key: &[u8], proof: &[u8]) -> bool;
}
