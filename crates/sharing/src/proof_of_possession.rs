//! Proofs of possession of a shared secret key, which its holders make together.

use core::fmt::Debug;

use theta_groups::Secret;

use crate::ShareIndex;

/// A scheme's proof of possession, whatever its group. Keys, shares and proofs are canonical encodings; other bytes prove nothing.
///
/// The proof is linear in the secret key: each holder makes a share of it, and k shares interpolate to the proof that the whole
/// secret key would make.
pub trait ProofOfPossession: Debug + Send + Sync {
    /// From a share x_i of the secret key, the share of the proof; from the secret key, the proof. `None` for bytes that are no
    /// scalar or no key.
    fn prove(&self, secret: &Secret<Vec<u8>>, public_key: &[u8]) -> Option<Vec<u8>>;

    /// Whether `share` is the share of the proof that the share x_i of `verification_key` makes.
    fn vartime_verify_share(&self, public_key: &[u8], verification_key: &[u8], share: &[u8]) -> bool;

    /// The proof from k shares. It is true if all shares are, which is not checked. `None` for shares that are no group elements.
    fn vartime_combine(&self, shares: &[(ShareIndex, Vec<u8>)]) -> Option<Vec<u8>>;

    /// Whether the proof is true for the public key.
    fn vartime_verify(&self, public_key: &[u8], proof: &[u8]) -> bool;
}
