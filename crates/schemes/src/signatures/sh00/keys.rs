//! Shared RSA keys.

use core::fmt;

use theta_groups::Secret;
use theta_groups::modular::{Integer, Modulus, Residue};
use theta_sharing::{ShareIndex, Threshold};

use super::{MODULUS_BITS, PUBLIC_EXPONENT, TEST_MODULUS_BITS, consistency, der, interpolation};
use crate::Suite;
use crate::keys::{KeyId, PublicKeyError, PublicMaterial, PublicParts, SecretMaterial};

/// The public material of one key: N, a square v modulo N, and the verification keys v_i = v^(s_i).
#[derive(Clone, PartialEq, Eq)]
pub struct RsaPublicKey {
    suite: Suite,
    threshold: Threshold,
    key_id: KeyId,
    modulus: Modulus,
    base: Residue,
    verification_keys: Vec<Residue>,
    /// n!, the paper's Delta.
    delta: Integer,
    encoding: Vec<u8>,
}

impl RsaPublicKey {
    /// See [`RsaPublicKey::new`]; `suite` has keys of this kind.
    pub(super) fn checked(
        suite: Suite,
        threshold: Threshold,
        modulus: Modulus,
        base: Residue,
        verification_keys: Vec<Residue>,
    ) -> Result<Self, PublicKeyError> {
        let bits = modulus.value().bits();
        if !MODULUS_BITS.contains(&bits) {
            return Err(PublicKeyError::Rsa("the modulus does not have 2048, 3072 or 4096 bits"));
        }
        let (expected, got) = (usize::from(threshold.n()), verification_keys.len());
        if expected != got {
            return Err(PublicKeyError::Count { expected, got });
        }
        if (3..1 << 12).step_by(2).any(|factor| modulus.value().rem_u64(factor) == 0) {
            return Err(PublicKeyError::Rsa("the modulus has a small factor"));
        }
        if !modulus.vartime_are_units(verification_keys.iter().chain([&base])) {
            return Err(PublicKeyError::Rsa("a verification key has a factor in common with the modulus"));
        }
        let one = modulus.reduce(&Integer::from_u64(1));
        if modulus.square(&base) == one || verification_keys.iter().any(|key| modulus.square(key) == one) {
            return Err(PublicKeyError::Identity);
        }
        let key = Self::assemble(suite, threshold, modulus, base, verification_keys);
        if consistency::vartime_on_one_polynomial(&key) { Ok(key) } else { Err(PublicKeyError::Inconsistent) }
    }

    /// As [`RsaPublicKey::new`] without the checks, for a dealer who has just made the parts.
    pub(super) fn assemble(
        suite: Suite,
        threshold: Threshold,
        modulus: Modulus,
        base: Residue,
        verification_keys: Vec<Residue>,
    ) -> Self {
        let encoding = der::public_key_info(modulus.value(), PUBLIC_EXPONENT);
        let key_id = KeyId::new(suite, &encoding);
        let delta = interpolation::factorial(threshold.n());
        Self { suite, threshold, key_id, modulus, base, verification_keys, delta, encoding }
    }

    /// N.
    #[must_use]
    pub const fn modulus(&self) -> &Modulus {
        &self.modulus
    }

    /// Bits of N.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.modulus.value().bits()
    }

    /// v, the base of the verification keys.
    #[must_use]
    pub const fn verification_base(&self) -> &Residue {
        &self.base
    }

    /// v_i, if there is a party i.
    #[must_use]
    pub fn verification_key(&self, index: ShareIndex) -> Option<&Residue> {
        self.verification_keys.get(index.position())
    }

    /// v_1 to v_n.
    #[must_use]
    pub fn verification_keys(&self) -> &[Residue] {
        &self.verification_keys
    }

    /// k and n.
    #[must_use]
    pub const fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// The key's id.
    #[must_use]
    pub const fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// n!.
    pub(super) const fn delta(&self) -> &Integer {
        &self.delta
    }

    /// Whether the share is of this key: its value fits the verification key.
    #[must_use]
    pub fn matches(&self, share: &RsaKeyShare) -> bool {
        share.key_id == self.key_id
            && self.verification_key(share.index) == Some(&self.modulus.pow(&self.base, share.secret.expose()))
    }

    /// Whether a modulus may have this size; tests use a shorter one.
    pub(super) fn is_size(bits: u32) -> bool {
        MODULUS_BITS.contains(&bits) || bits == TEST_MODULUS_BITS
    }
}

impl PublicMaterial for RsaPublicKey {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn threshold(&self) -> Threshold {
        self.threshold
    }

    fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// DER of a `SubjectPublicKeyInfo`.
    fn public_key_bytes(&self) -> &[u8] {
        &self.encoding
    }

    fn parts(&self) -> PublicParts {
        self.to_parts()
    }

    fn share_secret_len(&self) -> usize {
        self.modulus.encoded_len()
    }
}

impl fmt::Debug for RsaPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RsaPublicKey({}, {} bits, {}, {})",
            self.suite,
            self.bits(),
            self.threshold,
            self.key_id.abbreviated()
        )
    }
}

/// One party's secret exponent s_i, a number below N / 4, in as many bytes as N has. It holds neither d nor m nor a factor of N.
pub struct RsaKeyShare {
    key_id: KeyId,
    index: ShareIndex,
    secret: Secret<Vec<u8>>,
}

impl RsaKeyShare {
    /// The share `secret` of party `index`, big-endian and unchecked; [`RsaPublicKey::matches`] checks it.
    #[must_use]
    pub const fn new(key_id: KeyId, index: ShareIndex, secret: Secret<Vec<u8>>) -> Self {
        Self { key_id, index, secret }
    }

    /// s_i.
    #[must_use]
    pub const fn secret(&self) -> &Secret<Vec<u8>> {
        &self.secret
    }
}

impl SecretMaterial for RsaKeyShare {
    fn index(&self) -> ShareIndex {
        self.index
    }

    fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    fn secret_bytes(&self) -> Secret<Vec<u8>> {
        Secret::new(self.secret.expose().clone())
    }
}

impl fmt::Debug for RsaKeyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RsaKeyShare({} of {}, <redacted>)", self.index, self.key_id.abbreviated())
    }
}
