//! The public side of a key.

use core::fmt;

use theta_groups::{FixedBase, Group, Scalar, Transcript};
use theta_sharing::{Encoded, ShareIndex, Threshold, dleq::Generator};

use super::{CurveScheme, KeyShare, PublicKeyError, PublicMaterial, PublicParts, consistency};
use crate::Suite;

/// What a key is known by everywhere: a hash of its suite and public key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// The id of the key with this encoded public key.
    #[must_use]
    pub fn new(suite: Suite, public_key: &[u8]) -> Self {
        Self(
            Transcript::new("theta/key-id/v1")
                .with("suite", suite.name().as_bytes())
                .with("public key", public_key)
                .finish32(),
        )
    }

    /// An id that came from outside.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 8 hexadecimal digits, for messages to people.
    #[must_use]
    pub fn abbreviated(&self) -> String {
        hex::encode(self.0.split_at(4).0)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The public material of one key: the public key h = g * x and the verification keys h_i = g * x_i. One copy is shared
/// by all that use the key.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKeySet<G: Group> {
    suite: Suite,
    threshold: Threshold,
    generator: Generator<G>,
    public_key: Encoded<G>,
    /// h once more, with what makes encryption cheaper after the first few.
    fixed: FixedBase<G>,
    verification_keys: Vec<Encoded<G>>,
    key_id: KeyId,
    possession: Option<Vec<u8>>,
}

impl<G: Group> PublicKeySet<G> {
    /// Checks that the parts belong together: n verification keys on one polynomial of degree k - 1 whose value at
    /// zero is the public key, none of them the identity, and the proof of possession that the scheme asks for.
    ///
    /// # Errors
    /// The [`PublicKeyError`] that names the first part that is wrong.
    pub fn new<S: CurveScheme<KeyGroup = G>>(
        threshold: Threshold,
        public_key: Encoded<G>,
        verification_keys: Vec<Encoded<G>>,
        possession: Option<Vec<u8>>,
    ) -> Result<Self, PublicKeyError> {
        let (expected, got) = (usize::from(threshold.n()), verification_keys.len());
        if expected != got {
            return Err(PublicKeyError::Count { expected, got });
        }
        let set = Self::assemble::<S>(threshold, public_key, verification_keys, possession)?;
        if !S::check_possession(set.public_key(), set.possession.as_deref()) {
            return Err(PublicKeyError::Possession);
        }
        if !consistency::vartime_on_one_polynomial::<G>(&set) {
            return Err(PublicKeyError::Inconsistent);
        }
        Ok(set)
    }

    /// The same for a dealer, who has just made the parts from one polynomial.
    pub(super) fn assemble<S: CurveScheme<KeyGroup = G>>(
        threshold: Threshold,
        public_key: Encoded<G>,
        verification_keys: Vec<Encoded<G>>,
        possession: Option<Vec<u8>>,
    ) -> Result<Self, PublicKeyError> {
        if verification_keys.iter().chain([&public_key]).any(|key| G::is_identity(key.element())) {
            return Err(PublicKeyError::Identity);
        }
        let key_id = KeyId::new(S::SUITE, public_key.bytes());
        let generator = Generator::new();
        let fixed = FixedBase::new(*public_key.element());
        Ok(Self { suite: S::SUITE, threshold, generator, public_key, fixed, verification_keys, key_id, possession })
    }

    /// What the key is for.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// How many of how many.
    #[must_use]
    pub const fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// The key's id.
    #[must_use]
    pub const fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    /// g, for proofs about it.
    pub(crate) const fn generator(&self) -> Generator<G> {
        self.generator
    }

    /// h.
    #[must_use]
    pub const fn public_key(&self) -> &G::Element {
        self.public_key.element()
    }

    /// h * scalar, in constant time: what encryptors compute.
    pub(crate) fn public_key_times(&self, scalar: &G::Scalar) -> G::Element {
        self.fixed.mul(scalar)
    }

    /// The canonical encoding of h.
    #[must_use]
    pub fn public_key_bytes(&self) -> &[u8] {
        self.public_key.bytes()
    }

    /// h_i, if there is a party i.
    #[must_use]
    pub fn verification_key(&self, index: ShareIndex) -> Option<&Encoded<G>> {
        self.verification_keys.get(index.position())
    }

    /// h_1 to h_n.
    #[must_use]
    pub fn verification_keys(&self) -> &[Encoded<G>] {
        &self.verification_keys
    }

    /// The dealer's proof of possession, for BLS keys.
    #[must_use]
    pub fn possession(&self) -> Option<&[u8]> {
        self.possession.as_deref()
    }

    /// Whether the share is of this key: its value fits the verification key.
    #[must_use]
    pub fn matches(&self, share: &KeyShare<G>) -> bool {
        share.key_id() == &self.key_id
            && self.verification_key(share.index()).map(Encoded::element) == Some(&G::mul_base(share.secret().expose()))
    }
}

impl<G: Group> PublicMaterial for PublicKeySet<G> {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn threshold(&self) -> Threshold {
        self.threshold
    }

    fn key_id(&self) -> &KeyId {
        &self.key_id
    }

    fn public_key_bytes(&self) -> &[u8] {
        self.public_key.bytes()
    }

    fn parts(&self) -> PublicParts {
        PublicParts::Curve {
            public_key: self.public_key.bytes().to_vec(),
            possession: self.possession.clone(),
            verification_keys: self.verification_keys.iter().map(|key| key.bytes().to_vec()).collect(),
        }
    }

    fn share_secret_len(&self) -> usize {
        G::Scalar::ENCODED_LEN
    }
}

impl<G: Group> fmt::Debug for PublicKeySet<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKeySet({}, {}, {})", self.suite, self.threshold, self.key_id.abbreviated())
    }
}
