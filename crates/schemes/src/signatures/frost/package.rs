//! Packages: the message, the signers and their commitments, and the values that everyone computes from them.

use std::sync::OnceLock;

use theta_groups::{Group, Scalar};
use theta_sharing::{Encoded, InterpolationSet, ShareIndex};

use super::commitment::{CommitmentList, identifier};
use super::{DerivedKey, ElementOf, FrostSuite, PackageError, ScalarOf, SigningCommitments, SuiteHash};
use crate::keys::{KeyId, PublicKeySet};

/// The signers' commitments and the message, with the values of RFC 9591: binding factors (section 4.4), group commitment (4.5)
/// and challenge (4.6). They are computed once, for signing and aggregating.
#[derive(Debug)]
pub struct SigningPackage<C: FrostSuite> {
    key: DerivedKey<C>,
    list: CommitmentList<C>,
    binding_factors: Vec<ScalarOf<C>>,
    /// R, or its negative if the suite uses that one (BIP-340: the one of even y).
    group_commitment: Encoded<C::Group>,
    negates_nonces: bool,
    challenge: ScalarOf<C>,
    coefficients: OnceLock<Vec<ScalarOf<C>>>,
}

impl<C: FrostSuite> SigningPackage<C> {
    /// A package to be signed with the group's key. The order of the commitments does not matter.
    ///
    /// # Errors
    /// [`PackageError`], unless there are commitments of k or more different parties of the key.
    pub fn new(
        public: &PublicKeySet<C::Group>,
        commitments: Vec<SigningCommitments<C>>,
        message: &[u8],
    ) -> Result<Self, PackageError> {
        Self::with_key(public, DerivedKey::new(public), commitments, message)
    }

    /// A package to be signed with a key derived from the group's.
    ///
    /// # Errors
    /// As [`SigningPackage::new`]; and [`PackageError::Tweak`] if the key is derived from another one.
    pub fn with_key(
        public: &PublicKeySet<C::Group>,
        key: DerivedKey<C>,
        commitments: Vec<SigningCommitments<C>>,
        message: &[u8],
    ) -> Result<Self, PackageError> {
        if key.key_id() != public.key_id() {
            return Err(PackageError::Tweak);
        }
        let list = CommitmentList::new(public.threshold(), commitments)?;
        let encoded_list = list.encode();
        Self::assemble(key, list, &encoded_list, message)
    }

    pub(super) fn assemble(
        key: DerivedKey<C>,
        list: CommitmentList<C>,
        encoded_list: &[u8],
        message: &[u8],
    ) -> Result<Self, PackageError> {
        let binding_factors = binding_factors(&key, &list, encoded_list, message);
        let commitment = group_commitment(&list, &binding_factors);
        if C::Group::is_identity(&commitment) {
            return Err(PackageError::Cancelled);
        }
        let mut group_commitment = Encoded::new(commitment);
        let negates_nonces = C::stands_for_negative(group_commitment.bytes());
        if negates_nonces {
            group_commitment = Encoded::new(-commitment);
        }
        let challenge =
            C::challenge(C::standard_encoding(group_commitment.bytes()), key.verifying_key().bytes(), message);
        Ok(Self {
            key,
            list,
            binding_factors,
            group_commitment,
            negates_nonces,
            challenge,
            coefficients: OnceLock::new(),
        })
    }

    /// The key that it is signed with.
    #[must_use]
    pub const fn key(&self) -> &DerivedKey<C> {
        &self.key
    }

    /// The id of the group's key.
    #[must_use]
    pub const fn key_id(&self) -> &KeyId {
        self.key.key_id()
    }

    /// The signers, by rising index.
    pub fn signers(&self) -> impl Iterator<Item = ShareIndex> {
        self.list.indices()
    }

    /// The signers' commitments, by rising index.
    #[must_use]
    pub fn commitments(&self) -> &[SigningCommitments<C>] {
        self.list.as_slice()
    }

    /// The binding factor rho_i of a signer: a hash of the key, the message, all commitments and the index. It protects signers
    /// in concurrent sessions (against the attack of Drijvers et al., IEEE S&P 2019).
    #[must_use]
    pub fn binding_factor(&self, index: ShareIndex) -> Option<ScalarOf<C>> {
        self.list.position(index).and_then(|position| self.binding_factors.get(position)).copied()
    }

    pub(super) const fn list(&self) -> &CommitmentList<C> {
        &self.list
    }

    pub(super) const fn group_commitment(&self) -> &Encoded<C::Group> {
        &self.group_commitment
    }

    pub(super) const fn challenge(&self) -> &ScalarOf<C> {
        &self.challenge
    }

    pub(super) const fn negates_nonces(&self) -> bool {
        self.negates_nonces
    }

    /// `nonce` with the sign that nonces have in the signature.
    pub(super) fn signed(&self, nonce: ScalarOf<C>) -> ScalarOf<C> {
        if self.negates_nonces { -nonce } else { nonce }
    }

    pub(super) fn binding_factors(&self) -> &[ScalarOf<C>] {
        &self.binding_factors
    }

    /// All Lagrange coefficients, which are needed only to find false shares.
    pub(super) fn coefficients(&self) -> &[ScalarOf<C>] {
        self.coefficients.get_or_init(|| {
            // A set refuses only empty lists and duplicates, which a list of commitments has not.
            InterpolationSet::new(self.signers().collect()).map(|set| set.coefficients_at_zero()).unwrap_or_default()
        })
    }

    /// One signer's Lagrange coefficient (section 4.2).
    pub(super) fn coefficient(&self, index: ShareIndex) -> ScalarOf<C> {
        // As above, the set refuses no list of commitments.
        let set = InterpolationSet::new(self.signers().collect());
        set.map_or(ScalarOf::<C>::ZERO, |set| set.coefficient_at_zero(index))
    }
}

/// `compute_binding_factors`, section 4.4: H1 of the key, the hashes of message and commitments, and the index. All but
/// the index is hashed once.
fn binding_factors<C: FrostSuite>(
    key: &DerivedKey<C>,
    list: &CommitmentList<C>,
    encoded_list: &[u8],
    message: &[u8],
) -> Vec<ScalarOf<C>> {
    let message_hash = C::Hash::digest(C::CONTEXT, b"msg", &[message]);
    let list_hash = C::Hash::digest(C::CONTEXT, b"com", &[encoded_list]);
    let prefix = [key.verifying_key().group_encoding(), message_hash.as_ref(), list_hash.as_ref()];
    let binding_factor = C::Hash::to_scalar(C::CONTEXT, b"rho", &prefix);
    list.indices().map(|index| binding_factor(identifier::<C>(index).as_ref())).collect()
}

/// R = sum of D_i + rho_i E_i, section 4.5: plain additions and one multi-scalar multiplication.
fn group_commitment<C: FrostSuite>(list: &CommitmentList<C>, binding_factors: &[ScalarOf<C>]) -> ElementOf<C> {
    let hiding: ElementOf<C> = list.as_slice().iter().map(|commitments| *commitments.hiding().element()).sum();
    let binding: Vec<_> = list.as_slice().iter().map(|commitments| *commitments.binding().element()).collect();
    hiding + C::Group::vartime_msm(binding_factors, &binding)
}
