//! What keys and shares of all kinds can tell.

use core::fmt::Debug;

use theta_groups::Secret;
use theta_sharing::{ShareIndex, Threshold};

use super::{KeyId, PublicParts};
use crate::Suite;

/// The public material of a key of any kind.
pub trait PublicMaterial: Debug + Send + Sync + 'static {
    /// The key's suite.
    fn suite(&self) -> Suite;
    /// k and n.
    fn threshold(&self) -> Threshold;
    /// The key's id.
    fn key_id(&self) -> &KeyId;
    /// The canonical encoding of the public key, of which the key's id is a hash.
    fn public_key_bytes(&self) -> &[u8];
    /// The parts from which the rest follows.
    fn parts(&self) -> PublicParts;
    /// Length in bytes of the secret in each share of the key.
    fn share_secret_len(&self) -> usize;
}

/// One party's share of a key of any kind.
pub trait SecretMaterial: Debug + Send + Sync + 'static {
    /// Whose share this is.
    fn index(&self) -> ShareIndex;
    /// The key that this is a share of.
    fn key_id(&self) -> &KeyId;
    /// The secret's canonical bytes.
    fn secret_bytes(&self) -> Secret<Vec<u8>>;
}
