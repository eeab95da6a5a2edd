//! The public side of a key.

use core::fmt;

use theta_groups::{FixedBase, Group, Scalar};
use theta_sharing::{Encoded, ShareIndex, Threshold, dleq::Generator, vartime_on_one_polynomial};

use super::{CurveScheme, KeyId, KeyShare, PublicKeyError, PublicMaterial, PublicParts};
use crate::Suite;

/// The public material of one key: the public key h = g * x and the verification keys h_i = g * x_i.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKeySet<G: Group> {
    suite: Suite,
    threshold: Threshold,
    generator: Generator<G>,
    public_key: Encoded<G>,
    /// h once more, with a table of its multiples after it was used a few times.
    fixed: FixedBase<G>,
    verification_keys: Vec<Encoded<G>>,
    key_id: KeyId,
    proof_of_possession: Option<Vec<u8>>,
}

impl<G: Group> PublicKeySet<G> {
    /// Checks that the parts belong together: n verification keys on one polynomial of degree k - 1 at most whose value at
    /// zero is the public key, none of them the identity, and the proof of possession if the scheme has one.
    ///
    /// # Errors
    /// The [`PublicKeyError`] that names the first part that is wrong.
    pub fn new<S: CurveScheme<KeyGroup = G>>(
        threshold: Threshold,
        public_key: Encoded<G>,
        verification_keys: Vec<Encoded<G>>,
        proof_of_possession: Option<Vec<u8>>,
    ) -> Result<Self, PublicKeyError> {
        let (expected, got) = (usize::from(threshold.n()), verification_keys.len());
        if expected != got {
            return Err(PublicKeyError::Count { expected, got });
        }
        let set = Self::assemble::<S>(threshold, public_key, verification_keys, proof_of_possession)?;
        if !S::check_proof_of_possession(set.public_key(), set.proof_of_possession.as_deref()) {
            return Err(PublicKeyError::ProofOfPossession);
        }
        if !vartime_on_one_polynomial(threshold, &set.public_key, &set.verification_keys) {
            return Err(PublicKeyError::Inconsistent);
        }
        Ok(set)
    }

    /// As [`PublicKeySet::new`] without checks of the polynomial and of the proof of possession, for a dealer who has just made
    /// the parts.
    pub(super) fn assemble<S: CurveScheme<KeyGroup = G>>(
        threshold: Threshold,
        public_key: Encoded<G>,
        verification_keys: Vec<Encoded<G>>,
        proof_of_possession: Option<Vec<u8>>,
    ) -> Result<Self, PublicKeyError> {
        if verification_keys.iter().chain([&public_key]).any(|key| G::is_identity(key.element())) {
            return Err(PublicKeyError::Identity);
        }
        let key_id = KeyId::new(S::SUITE, public_key.bytes());
        let generator = Generator::new();
        let fixed = FixedBase::new(*public_key.element());
        Ok(Self {
            suite: S::SUITE,
            threshold,
            generator,
            public_key,
            fixed,
            verification_keys,
            key_id,
            proof_of_possession,
        })
    }

    /// The key's suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
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

    /// g, for proofs about it.
    pub(crate) const fn generator(&self) -> Generator<G> {
        self.generator
    }

    /// h.
    #[must_use]
    pub const fn public_key(&self) -> &G::Element {
        self.public_key.element()
    }

    /// h * scalar, in constant time, for encryption.
    pub(crate) fn public_key_times(&self, scalar: &G::Scalar) -> G::Element {
        self.fixed.mul(scalar)
    }

    /// h, for products with many scalars.
    #[must_use]
    pub const fn fixed_public_key(&self) -> &FixedBase<G> {
        &self.fixed
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

    /// The proof of possession, for BLS keys.
    #[must_use]
    pub fn proof_of_possession(&self) -> Option<&[u8]> {
        self.proof_of_possession.as_deref()
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
        PublicParts::Curve(self.encoded())
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

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_chacha::rand_core::SeedableRng;
    use theta_groups::{Group, Ristretto255};
    use theta_sharing::{Encoded, Threshold};

    use crate::coins::cks05::Cks05;
    use crate::keys::{PublicKeyError, PublicKeySet, deal};

    type Coin = Cks05<Ristretto255>;

    #[test]
    fn only_one_degree_fits() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        for (k, n) in [(1, 1), (1, 5), (2, 2), (3, 7), (6, 7), (7, 7)] {
            let dealt = deal::<Coin>(Threshold::new(k, n).unwrap(), &mut rng).public;
            let check = |k, public_key, keys: &[_]| {
                let public_key = Encoded::new(public_key);
                PublicKeySet::new::<Coin>(Threshold::new(k, n).unwrap(), public_key, keys.to_vec(), None).map(drop)
            };
            let (public_key, keys) = (*dealt.public_key(), dealt.verification_keys());
            for claimed in 1..=n {
                // A polynomial of degree k - 1 also passes for any higher degree: a dealer who claims a larger k is not detected.
                assert_eq!(check(claimed, public_key, keys).is_ok(), claimed >= k, "{claimed} for {k} of {n}");
            }
            let moved = public_key + Ristretto255::generator();
            assert_eq!(check(k, moved, keys), Err(PublicKeyError::Inconsistent));
            for party in 0..usize::from(n) {
                let mut wrong = keys.to_vec();
                wrong[party] = Encoded::new(*wrong[party].element() + Ristretto255::generator());
                assert_eq!(check(k, public_key, &wrong), Err(PublicKeyError::Inconsistent));
            }
        }
    }

    #[test]
    fn the_identity_is_no_key() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let threshold = Threshold::new(1, 2).unwrap();
        let dealt = deal::<Coin>(threshold, &mut rng).public;
        let identity = Encoded::new(Ristretto255::identity());
        let public_key = Encoded::new(*dealt.public_key());
        let with_identity = vec![public_key, identity];
        assert_eq!(
            PublicKeySet::new::<Coin>(threshold, identity, vec![identity; 2], None),
            Err(PublicKeyError::Identity)
        );
        assert_eq!(
            PublicKeySet::new::<Coin>(threshold, public_key, with_identity, None),
            Err(PublicKeyError::Identity)
        );
    }
}
