//! The secret side of a key.

use core::fmt;

use theta_groups::{Group, Scalar, Secret};
use theta_sharing::ShareIndex;

use super::{KeyId, SecretMaterial};

/// One party's secret share x_i of a key. It cannot be copied; several owners share it in an `Arc`.
pub struct KeyShare<G: Group> {
    key_id: KeyId,
    index: ShareIndex,
    secret: Secret<G::Scalar>,
}

impl<G: Group> KeyShare<G> {
    /// The share `secret` of party `index`, unchecked; [`super::PublicKeySet::matches`] checks it.
    #[must_use]
    pub const fn new(key_id: KeyId, index: ShareIndex, secret: Secret<G::Scalar>) -> Self {
        Self { key_id, index, secret }
    }

    /// The key that this is a share of.
    #[must_use]
    pub const fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// Whose share this is.
    #[must_use]
    pub const fn index(&self) -> ShareIndex {
        self.index
    }

    /// x_i.
    #[must_use]
    pub const fn secret(&self) -> &Secret<G::Scalar> {
        &self.secret
    }
}

impl<G: Group> SecretMaterial for KeyShare<G> {
    fn index(&self) -> ShareIndex {
        self.index
    }

    fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    fn secret_bytes(&self) -> Secret<Vec<u8>> {
        let encoding = Secret::new(self.secret.expose().encode());
        Secret::new(encoding.expose().as_ref().to_vec())
    }
}

impl<G: Group> fmt::Debug for KeyShare<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyShare({} of {}, <redacted>)", self.index, self.key_id.abbreviated())
    }
}
