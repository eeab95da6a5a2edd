//! The key that a session signs under.

use theta_groups::{Group, Scalar, Secret};

use super::{FrostSuite, PackageError, ScalarOf, VerifyingKey};
use crate::keys::{KeyId, PublicKeySet};

/// The group's key x, or a key x' = ±x + t derived from it by a tweak t. The result is negated in suites that use only one of a
/// key and its negative.
///
/// Sharings are linear, so the shares of x' are ±x_i + t; no communication is needed.
#[derive(Debug)]
pub struct DerivedKey<C: FrostSuite> {
    key_id: KeyId,
    verifying_key: VerifyingKey<C>,
    /// x' = -x + tweak rather than x + tweak.
    negates_shares: bool,
    tweak: Secret<ScalarOf<C>>,
}

impl<C: FrostSuite> DerivedKey<C> {
    /// The group's own key.
    #[must_use]
    pub fn new(public: &PublicKeySet<C::Group>) -> Self {
        let (verifying_key, negated) = VerifyingKey::normalised(*public.public_key(), public.public_key_bytes());
        Self {
            key_id: *public.key_id(),
            verifying_key,
            negates_shares: negated,
            tweak: Secret::new(ScalarOf::<C>::ZERO),
        }
    }

    /// x + t, or -x + t.
    pub(super) fn tweaked(
        public: &PublicKeySet<C::Group>,
        negate: bool,
        mut tweak: Secret<ScalarOf<C>>,
    ) -> Result<Self, PackageError> {
        let base = if negate { -*public.public_key() } else { *public.public_key() };
        let element = base + C::Group::mul_base(tweak.expose());
        if C::Group::is_identity(&element) {
            return Err(PackageError::Tweak);
        }
        let (verifying_key, negated) = VerifyingKey::normalised(element, C::Group::encode(&element).as_ref());
        if negated {
            *tweak.expose_mut() = -*tweak.expose();
        }
        Ok(Self { key_id: *public.key_id(), verifying_key, negates_shares: negate != negated, tweak })
    }

    /// The key that this one is derived from.
    #[must_use]
    pub const fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// The public key of x', under which signatures verify.
    #[must_use]
    pub const fn verifying_key(&self) -> &VerifyingKey<C> {
        &self.verifying_key
    }

    /// The share of x' that belongs to the share of x.
    pub(super) fn share(&self, secret: &Secret<ScalarOf<C>>) -> Secret<ScalarOf<C>> {
        Secret::new(self.signed(*secret.expose()) + *self.tweak.expose())
    }

    /// `scalar` with the sign that shares of x have in x'.
    pub(super) fn signed(&self, scalar: ScalarOf<C>) -> ScalarOf<C> {
        if self.negates_shares { -scalar } else { scalar }
    }

    pub(super) const fn tweak(&self) -> &ScalarOf<C> {
        self.tweak.expose()
    }
}
