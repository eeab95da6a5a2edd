//! Round two: signature shares (RFC 9591, section 5.2).

use theta_groups::{DecodeError, Scalar};
use theta_sharing::ShareIndex;

use super::{FrostSuite, ScalarOf, SigningNonces, SigningPackage};
use crate::keys::KeyShare;

/// One signer's z_i = d_i + e_i rho_i + lambda_i c x_i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureShare<C: FrostSuite> {
    index: ShareIndex,
    response: ScalarOf<C>,
}

/// Why a signer does not sign. The nonces are used up nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The package is for another key: the caller's mistake.
    #[error("the package is for another key than the share: pair what belongs to one key")]
    OtherKey,
    /// The nonces are of one party and the key share of another: the caller's mistake.
    #[error("the nonces are of party {nonces}, the key share is of party {key}")]
    OtherParty {
        /// The party of the nonces.
        nonces: ShareIndex,
        /// The party of the key share.
        key: ShareIndex,
    },
    /// The package lacks the signer's commitments or has others in their place: the coordinator's fault.
    #[error("the package does not have the commitments that belong to these nonces")]
    NotInPackage,
}

impl<C: FrostSuite> SignatureShare<C> {
    /// The signer.
    #[must_use]
    pub const fn index(&self) -> ShareIndex {
        self.index
    }

    /// z_i.
    pub(super) const fn response(&self) -> &ScalarOf<C> {
        &self.response
    }

    /// z_i as the suite encodes scalars, without the index, which the channel or the API carries.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.response.encode().as_ref().to_vec()
    }

    /// Reads the share of party `index`.
    ///
    /// # Errors
    /// Any [`DecodeError`]; the sender is to blame.
    pub fn decode(index: ShareIndex, bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self { index, response: ScalarOf::<C>::decode(bytes)? })
    }
}

/// Round two: answers the package, once. Constant-time in nonces and key share.
///
/// # Errors
/// [`SignError`]; the nonces are used up in any case.
pub fn sign<C: FrostSuite>(
    package: &SigningPackage<C>,
    nonces: SigningNonces<C>,
    key: &KeyShare<C::Group>,
) -> Result<SignatureShare<C>, SignError> {
    if key.key_id() != package.key_id() {
        return Err(SignError::OtherKey);
    }
    let index = key.index();
    if nonces.index() != index {
        return Err(SignError::OtherParty { nonces: nonces.index(), key: index });
    }
    let listed = package.list().position(index).and_then(|position| package.commitments().get(position));
    let (Some(listed), Some(binding_factor)) = (listed, package.binding_factor(index)) else {
        return Err(SignError::NotInPackage);
    };
    if listed != nonces.commitments() {
        return Err(SignError::NotInPackage);
    }
    let nonce = nonces.bound(binding_factor);
    let secret = package.key().share(key.secret());
    let weight = package.coefficient(index) * *package.challenge();
    Ok(SignatureShare { index, response: package.signed(*nonce.expose()) + weight * *secret.expose() })
}
