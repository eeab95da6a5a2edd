//! The commitments that signers publish in round one.

use theta_groups::{DecodeError, Group, Scalar};
use theta_sharing::{Encoded, ShareIndex, Threshold};

use super::{FrostSuite, ScalarOf};

/// A signer's commitments D = g d and E = g e to its hiding and binding nonce: RFC 9591, section 5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigningCommitments<C: FrostSuite> {
    index: ShareIndex,
    hiding: Encoded<C::Group>,
    binding: Encoded<C::Group>,
}

/// Why commitments make no package: the fault of the coordinator that chose them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// There are fewer than k signers.
    #[error("{got} signers are not enough, it takes {needed}")]
    TooFew {
        /// k.
        needed: usize,
        /// How many there are.
        got: usize,
    },
    /// There are two pairs of commitments of one party.
    #[error("two pairs of commitments of party {0}")]
    Duplicate(ShareIndex),
    /// Commitments are of a party that the key does not have.
    #[error("party {0} has no share of this key")]
    UnknownParty(ShareIndex),
    /// The group commitment is the identity, which has negligible probability whatever the signers do.
    #[error("the commitments cancel out: sign again with fresh ones")]
    Cancelled,
    /// A list that is not what [`SigningPackage::encoded_commitments`](super::SigningPackage::encoded_commitments) writes of k or more parties of the key.
    #[error("a list of commitments has an entry for each of k or more parties of the key, by rising identifier")]
    List,
    /// The tweaked key is zero or the tweak is not a scalar, both of negligible probability; or the derived key is of another key.
    #[error("the tweaked key is not a key: use another tweak")]
    Tweak,
}

impl<C: FrostSuite> SigningCommitments<C> {
    pub(super) const fn new(index: ShareIndex, hiding: Encoded<C::Group>, binding: Encoded<C::Group>) -> Self {
        Self { index, hiding, binding }
    }

    /// The signer.
    #[must_use]
    pub const fn index(&self) -> ShareIndex {
        self.index
    }

    pub(super) const fn hiding(&self) -> &Encoded<C::Group> {
        &self.hiding
    }

    pub(super) const fn binding(&self) -> &Encoded<C::Group> {
        &self.binding
    }

    /// D, then E, without the index, which the channel or the API carries.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [self.hiding.bytes(), self.binding.bytes()].concat()
    }

    /// Reads the commitments of party `index`, fully checked: RFC 9591, `DeserializeElement`.
    ///
    /// # Errors
    /// Any [`DecodeError`]; the sender is to blame.
    pub fn decode(index: ShareIndex, bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(index, bytes, Encoded::decode)
    }

    /// As [`SigningCommitments::decode`] without the check for the prime-order subgroup, where that is expensive (Ed25519, Ed448).
    ///
    /// No secret depends on that check: an honest signer multiplies only the generator by secrets, and others' commitments enter
    /// its share through hashes alone. A component of small order can only make the signature false; the strict verification in
    /// [`aggregate`](super::aggregate) detects that, and its sender is named. See `spec/frost.md`.
    ///
    /// # Errors
    /// Any [`DecodeError`] but [`DecodeError::Subgroup`]; the sender is to blame.
    pub fn decode_unchecked_subgroup(index: ShareIndex, bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(index, bytes, Encoded::decode_unchecked_subgroup)
    }

    fn read(
        index: ShareIndex,
        bytes: &[u8],
        decode: impl Fn(&[u8]) -> Result<Encoded<C::Group>, DecodeError>,
    ) -> Result<Self, DecodeError> {
        let half = C::Group::ENCODED_LEN;
        let wrong_length = DecodeError::Length { expected: 2 * half, got: bytes.len() };
        let (hiding, binding) = bytes.split_at_checked(half).ok_or(wrong_length)?;
        if binding.len() != half {
            return Err(wrong_length);
        }
        Ok(Self { index, hiding: decode(hiding)?, binding: decode(binding)? })
    }

    /// Whether both are in the prime-order subgroup.
    pub(super) fn is_in_subgroup(&self) -> bool {
        C::Group::is_in_subgroup(self.hiding.element()) && C::Group::is_in_subgroup(self.binding.element())
    }
}

/// The commitments of a package, of k or more different parties of the key, by rising index.
#[derive(Clone, Debug)]
pub(super) struct CommitmentList<C: FrostSuite>(Vec<SigningCommitments<C>>);

impl<C: FrostSuite> CommitmentList<C> {
    pub(super) fn new(threshold: Threshold, mut list: Vec<SigningCommitments<C>>) -> Result<Self, PackageError> {
        let (needed, got) = (usize::from(threshold.k()), list.len());
        if got < needed {
            return Err(PackageError::TooFew { needed, got });
        }
        list.sort_unstable_by_key(SigningCommitments::index);
        if let Some((twice, _)) = list.iter().zip(list.iter().skip(1)).find(|(a, b)| a.index == b.index) {
            return Err(PackageError::Duplicate(twice.index));
        }
        match list.iter().find(|commitments| !threshold.contains(commitments.index)) {
            Some(stranger) => Err(PackageError::UnknownParty(stranger.index)),
            None => Ok(Self(list)),
        }
    }

    pub(super) fn as_slice(&self) -> &[SigningCommitments<C>] {
        &self.0
    }

    pub(super) fn position(&self, index: ShareIndex) -> Option<usize> {
        self.0.binary_search_by_key(&index, SigningCommitments::index).ok()
    }

    pub(super) fn indices(&self) -> impl Iterator<Item = ShareIndex> {
        self.0.iter().map(SigningCommitments::index)
    }

    /// `encode_group_commitment_list`: RFC 9591, section 4.3.
    pub(super) fn encode(&self) -> Vec<u8> {
        let entry = ScalarOf::<C>::ENCODED_LEN + 2 * C::Group::ENCODED_LEN;
        let mut bytes = Vec::with_capacity(entry * self.0.len());
        for commitments in &self.0 {
            bytes.extend_from_slice(identifier::<C>(commitments.index).as_ref());
            bytes.extend_from_slice(commitments.hiding.bytes());
            bytes.extend_from_slice(commitments.binding.bytes());
        }
        bytes
    }
}

/// Whether these bytes have the form of a list of k or more parties of a key: entries of one length, each with the identifier of a party as
/// [`CommitmentList::encode`] writes it, by rising index. The elements are not decoded.
///
/// Whoever hashes a list behind something that may be longer or shorter needs this: the list's length is a multiple of an entry's then, so that the
/// bytes before it have no second reading.
pub(super) fn is_list<C: FrostSuite>(threshold: Threshold, bytes: &[u8]) -> bool {
    let identifier_len = ScalarOf::<C>::ENCODED_LEN;
    let entry = identifier_len + 2 * C::Group::ENCODED_LEN;
    let mut parties = threshold.indices();
    let is_next = |entry: &[u8]| {
        let written = entry.get(..identifier_len);
        parties.any(|index| written == Some(identifier::<C>(index).as_ref()))
    };
    let mut entries = bytes.chunks_exact(entry);
    entries.remainder().is_empty() && entries.len() >= usize::from(threshold.k()) && entries.all(is_next)
}

/// A party's identifier as the RFC encodes it: a scalar.
pub(super) fn identifier<C: FrostSuite>(index: ShareIndex) -> <ScalarOf<C> as Scalar>::Encoding {
    ScalarOf::<C>::from_u64(u64::from(index.get())).encode()
}
