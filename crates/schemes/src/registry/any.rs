//! Keys of any suite.

use core::fmt;
use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_groups::modular::SearchProgress;
use theta_sharing::{ShareIndex, Threshold};

use super::{KeyObject, Keyed, Primes, Registered, SchemeError};
use crate::keys::{
    DealError, KeyId, KeyScheme, PartsError, PublicMaterial, PublicParts, SecretMaterial, ShareBytesError, ShareError,
    Typed, TypedKeyShare, TypedPublicKey,
};
use crate::signatures::sh00::{ModulusSize, RsaDealError, RsaPrimes};
use crate::{MessageDigest, Suite};

/// The format of a share's bytes, and what is before the secret in them: format, key id, index.
const SHARE_FORMAT: u8 = 1;
const SHARE_HEADER: usize = 1 + 32 + 2;

/// The public material of a key of any suite; clones share it.
#[derive(Clone)]
pub struct AnyPublicKey(Arc<dyn KeyObject>);

/// One party's secret share of a key of any suite.
pub struct AnyKeyShare {
    suite: Suite,
    typed: TypedKeyShare,
}

impl AnyPublicKey {
    /// A key of the scheme `S`.
    #[must_use]
    pub fn of<S: Registered>(key: Arc<S::PublicKey>) -> Self {
        Self(Arc::new(Keyed::<S>::new(key)))
    }

    /// The key as one of the closed set of types.
    #[must_use]
    pub fn typed(&self) -> &TypedPublicKey {
        self.0.typed()
    }

    /// The key as one of the scheme `S`, if it is one.
    #[must_use]
    pub fn get<S: KeyScheme>(&self) -> Option<&Arc<S::PublicKey>> {
        S::PublicKey::of(self.typed()).filter(|_| self.suite() == S::SUITE)
    }

    pub(crate) fn object(&self) -> &dyn KeyObject {
        self.0.as_ref()
    }

    fn material(&self) -> &dyn PublicMaterial {
        self.typed().material()
    }

    /// The key's suite.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.material().suite()
    }

    /// k and n.
    #[must_use]
    pub fn threshold(&self) -> Threshold {
        self.material().threshold()
    }

    /// The key's id.
    #[must_use]
    pub fn key_id(&self) -> &KeyId {
        self.material().key_id()
    }

    /// The canonical encoding of the public key, of which the key's id is a hash.
    #[must_use]
    pub fn public_key_bytes(&self) -> &[u8] {
        self.material().public_key_bytes()
    }

    /// The public key as standard verifiers take it: for Taproot the 32 bytes of BIP-340, for all others the canonical
    /// encoding.
    #[must_use]
    pub fn verifying_key_bytes(&self) -> &[u8] {
        self.0.verifying_key_bytes()
    }

    /// What messages are hashed with first, if the scheme sees nothing of them but this digest: then the digest can be signed.
    #[must_use]
    pub fn message_digest(&self) -> Option<MessageDigest> {
        self.0.message_digest()
    }

    /// Verifies a signature of the message with this digest.
    ///
    /// # Errors
    /// [`SchemeError::Verify`] with the reason; [`SchemeError::Request`] for keys whose scheme signs no digests.
    pub fn verify_digest(&self, digest: &[u8], signature: &[u8]) -> Result<(), SchemeError> {
        self.0.verify_digest(digest, signature)
    }

    /// All of the public material that does not follow from the rest.
    #[must_use]
    pub fn parts(&self) -> PublicParts {
        self.material().parts()
    }

    /// The key of a suite from its parts, fully checked.
    ///
    /// # Errors
    /// The [`PartsError`] that names the first part that is wrong.
    pub fn from_parts(suite: Suite, parts: &PublicParts) -> Result<Self, PartsError> {
        suite.ops().key(parts)
    }

    /// Length in bytes of the secret in each share of this key.
    #[must_use]
    pub fn share_secret_len(&self) -> usize {
        self.material().share_secret_len()
    }
}

impl PartialEq for AnyPublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.typed() == other.typed()
    }
}

impl Eq for AnyPublicKey {}

impl fmt::Debug for AnyPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.typed().fmt(f)
    }
}

impl AnyKeyShare {
    /// A share of a key of the scheme `S`.
    #[must_use]
    pub fn of<S: KeyScheme>(share: Arc<S::KeyShare>) -> Self {
        Self { suite: S::SUITE, typed: S::KeyShare::erase(share) }
    }

    /// The share as one of the closed set of types.
    #[must_use]
    pub const fn typed(&self) -> &TypedKeyShare {
        &self.typed
    }

    /// The share as one of the scheme `S`, if it is one.
    #[must_use]
    pub fn get<S: KeyScheme>(&self) -> Option<&Arc<S::KeyShare>> {
        S::KeyShare::of(&self.typed).filter(|_| self.suite == S::SUITE)
    }

    fn material(&self) -> &dyn SecretMaterial {
        self.typed.material()
    }

    /// The key's suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Whose share this is.
    #[must_use]
    pub fn index(&self) -> ShareIndex {
        self.material().index()
    }

    /// The key that this is a share of.
    #[must_use]
    pub fn key_id(&self) -> &KeyId {
        self.material().key_id()
    }

    /// The secret's canonical bytes.
    #[must_use]
    pub fn secret_bytes(&self) -> Secret<Vec<u8>> {
        self.material().secret_bytes()
    }

    /// The one binary form of a share (`spec/keys.md`): format, key id, index, secret.
    #[must_use]
    pub fn to_bytes(&self) -> Secret<Vec<u8>> {
        let secret = self.secret_bytes();
        // Reserved at once: a vector that grows leaves copies of its content behind.
        let mut bytes = Secret::new(Vec::with_capacity(SHARE_HEADER.saturating_add(secret.expose().len())));
        let out = bytes.expose_mut();
        out.push(SHARE_FORMAT);
        out.extend_from_slice(self.key_id().as_bytes());
        out.extend_from_slice(&self.index().get().to_be_bytes());
        out.extend_from_slice(secret.expose());
        bytes
    }

    /// Reads the binary form of a share of the key `public`. No copy of the secret is made but the share's own.
    ///
    /// # Errors
    /// The [`ShareBytesError`] that names the first mistake.
    pub fn from_bytes(bytes: &[u8], public: &AnyPublicKey) -> Result<Self, ShareBytesError> {
        if let Some(format) = bytes.first().copied().filter(|format| *format != SHARE_FORMAT) {
            return Err(ShareBytesError::Format(format));
        }
        let expected = SHARE_HEADER.saturating_add(public.share_secret_len());
        let length = ShareBytesError::Length { expected, got: bytes.len() };
        let (header, secret) = bytes.split_first_chunk::<SHARE_HEADER>().ok_or(length)?;
        let [_, id @ .., high, low] = *header;
        let found = KeyId::from_bytes(id);
        if found != *public.key_id() {
            return Err(ShareBytesError::OtherKey { found, expected: *public.key_id() });
        }
        if bytes.len() != expected {
            return Err(length);
        }
        let number = u16::from_be_bytes([high, low]);
        let index = ShareIndex::try_from(number).ok().filter(|index| public.threshold().contains(*index));
        let index = index.ok_or(ShareBytesError::Index(number))?;
        Ok(Self::from_secret(public, index, secret)?)
    }

    /// The share of party `index` of the key `public` that has these secret bytes, checked against the party's verification
    /// key.
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn from_secret(public: &AnyPublicKey, index: ShareIndex, secret: &[u8]) -> Result<Self, ShareError> {
        public.object().share(index, secret)
    }
}

impl fmt::Debug for AnyKeyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyKeyShare({}, party {}, <redacted>)", self.suite(), self.index())
    }
}

/// Deals a key of any suite with a random secret: the public material and the shares of parties 1 to n. RSA keys get 2048
/// bits, which takes seconds; [`deal_rsa`] shows the progress.
#[must_use]
pub fn deal_any(suite: Suite, threshold: Threshold, rng: &mut dyn CryptoRng) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    suite.ops().deal(threshold, rng)
}

/// Deals a new RSA key of 2048, 3072 or 4096 bits; `progress` is called with the state of the search for its primes.
///
/// # Errors
/// [`RsaDealError::Bits`] for another size, [`RsaDealError::Suite`] for a suite of another kind.
pub fn deal_rsa(
    suite: Suite,
    bits: u32,
    threshold: Threshold,
    progress: &mut dyn FnMut(SearchProgress),
    rng: &mut dyn CryptoRng,
) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), RsaDealError> {
    let size = ModulusSize::try_from(bits)?;
    suite.ops().deal_rsa(Primes::New(size, progress), threshold, rng)
}

/// Deals an RSA key with primes that were found before, for imports and for benchmarks.
///
/// # Errors
/// [`RsaDealError::Suite`] for a suite of another kind.
pub fn deal_rsa_primes(
    suite: Suite,
    primes: &RsaPrimes,
    threshold: Threshold,
    rng: &mut dyn CryptoRng,
) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), RsaDealError> {
    suite.ops().deal_rsa(Primes::Found(primes), threshold, rng)
}

/// Deals an existing secret key, given in its standard encoding (for BLS keys, 32 bytes big-endian).
///
/// # Errors
/// [`DealError`] if the bytes are not a secret key of the suite, or the suite is RSA.
pub fn import_any(
    suite: Suite,
    threshold: Threshold,
    secret: &Secret<Vec<u8>>,
    rng: &mut dyn CryptoRng,
) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), DealError> {
    suite.ops().import(secret, threshold, rng)
}
