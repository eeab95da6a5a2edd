//! Aggregating shares to the signature, or naming those who sent false ones (RFC 9591, sections 5.3 and 5.4).

use rand_core::CryptoRng;
use theta_groups::{Group, Scalar};
use theta_sharing::ShareIndex;

use super::{ElementOf, FrostSuite, ScalarOf, Signature, SignatureShare, SigningPackage};
use crate::keys::PublicKeySet;

/// Why shares did not give a signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AggregateError {
    /// The package is for another key: the caller's mistake.
    #[error("the package is for another key: pair what belongs to one key")]
    OtherKey,
    /// The share of a signer of the package is missing.
    #[error("the share of party {0} is missing: it takes the shares of all signers of the package")]
    Missing(ShareIndex),
    /// There are two shares of one party: the caller's mistake.
    #[error("two shares of party {0}")]
    Duplicate(ShareIndex),
    /// A share is of a party that is not in the package: the caller's mistake.
    #[error("party {0} is not a signer of the package")]
    UnknownParty(ShareIndex),
    /// The shares or the commitments of these parties are false: their fault.
    #[error("false shares, of party {}", list(.0))]
    FalseShares(Vec<ShareIndex>),
    /// All shares are true and the signature is false: the verification keys do not belong to the public key.
    #[error("true shares make a false signature: the public key set is inconsistent")]
    InconsistentKeys,
}

fn list(indices: &[ShareIndex]) -> String {
    indices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Adds up the shares of all signers of the package and verifies the signature. Only if that fails are all shares verified, in
/// batches.
///
/// # Errors
/// [`AggregateError`]; a false signature is never returned.
pub fn aggregate<C: FrostSuite>(
    public: &PublicKeySet<C::Group>,
    package: &SigningPackage<C>,
    shares: &[SignatureShare<C>],
    rng: &mut (impl CryptoRng + ?Sized),
) -> Result<Signature<C>, AggregateError> {
    if package.key_id() != public.key_id() {
        return Err(AggregateError::OtherKey);
    }
    check_complete(package, shares)?;
    let response = shares.iter().map(|share| *share.response()).sum();
    let commitment = package.group_commitment();
    let recomputed = package.key().verifying_key().commitment_for(&response, package.challenge());
    if recomputed == *commitment.element() {
        return Ok(Signature::new(*commitment, response));
    }
    match false_shares(public, package, shares, rng) {
        culprits if culprits.is_empty() => Err(AggregateError::InconsistentKeys),
        culprits => Err(AggregateError::FalseShares(culprits)),
    }
}

/// Whether the shares are those of the package's signers, one each.
fn check_complete<C: FrostSuite>(
    package: &SigningPackage<C>,
    shares: &[SignatureShare<C>],
) -> Result<(), AggregateError> {
    let mut indices: Vec<_> = shares.iter().map(SignatureShare::index).collect();
    indices.sort_unstable();
    if let Some((twice, _)) = indices.iter().zip(indices.iter().skip(1)).find(|(a, b)| a == b) {
        return Err(AggregateError::Duplicate(*twice));
    }
    if let Some(stranger) = indices.iter().find(|index| package.list().position(**index).is_none()) {
        return Err(AggregateError::UnknownParty(*stranger));
    }
    match package.signers().find(|signer| indices.binary_search(signer).is_err()) {
        Some(missing) => Err(AggregateError::Missing(missing)),
        None => Ok(()),
    }
}

/// Whether a share is true for the package, and its sender's commitments are in the prime-order group.
#[must_use]
pub fn verify_share<C: FrostSuite>(
    public: &PublicKeySet<C::Group>,
    package: &SigningPackage<C>,
    share: &SignatureShare<C>,
) -> bool {
    package.key_id() == public.key_id()
        && Checked::of(public, package, share, 1).is_some_and(|checked| checked.is_true(package))
}

/// The parties whose shares are false, by rising index; shares of parties outside the package are false. All shares are checked in
/// one batch with random weights, and in halves where it fails (Bellare, Garay, Rabin, EUROCRYPT 1998): a false share passes
/// with probability 2^-128.
#[must_use]
pub fn false_shares<C: FrostSuite>(
    public: &PublicKeySet<C::Group>,
    package: &SigningPackage<C>,
    shares: &[SignatureShare<C>],
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<ShareIndex> {
    if package.key_id() != public.key_id() {
        return shares.iter().map(SignatureShare::index).collect();
    }
    let mut culprits = Vec::new();
    let mut batch = Vec::with_capacity(shares.len());
    for share in shares {
        let mut weight = [0; 16];
        rng.fill_bytes(&mut weight);
        match Checked::of(public, package, share, u128::from_le_bytes(weight)) {
            Some(checked) => batch.push(checked),
            None => culprits.push(share.index()),
        }
    }
    find_false(package, &batch, &mut culprits);
    culprits.sort_unstable();
    culprits.dedup();
    culprits
}

/// The values of a share's equation g z_i = D_i + rho_i E_i + lambda_i c h'_i, where h'_i = ±h_i + g t is the verification key
/// under the package's key, and D_i and E_i are negated if the package negates nonces.
struct Checked<C: FrostSuite> {
    index: ShareIndex,
    hiding: ElementOf<C>,
    binding: ElementOf<C>,
    verification_key: ElementOf<C>,
    /// z_i - lambda_i c t.
    base: ScalarOf<C>,
    /// rho_i.
    binding_factor: ScalarOf<C>,
    /// ±lambda_i c.
    challenge: ScalarOf<C>,
    weight: u128,
}

impl<C: FrostSuite> Checked<C> {
    /// `None` for parties outside the package and for commitments outside the prime-order subgroup, on which random weights are
    /// not sound.
    fn of(
        public: &PublicKeySet<C::Group>,
        package: &SigningPackage<C>,
        share: &SignatureShare<C>,
        weight: u128,
    ) -> Option<Self> {
        let index = share.index();
        let position = package.list().position(index)?;
        let commitments = package.commitments().get(position).filter(|commitments| commitments.is_in_subgroup())?;
        let challenge = *package.coefficients().get(position)? * *package.challenge();
        Some(Self {
            index,
            hiding: *commitments.hiding().element(),
            binding: *commitments.binding().element(),
            verification_key: *public.verification_key(index)?.element(),
            base: *share.response() - challenge * *package.key().tweak(),
            binding_factor: *package.binding_factors().get(position)?,
            challenge: package.key().signed(challenge),
            weight,
        })
    }

    fn is_true(&self, package: &SigningPackage<C>) -> bool {
        let nonces = package.signed(ScalarOf::<C>::ONE);
        let public = C::Group::vartime_double_mul(&self.base, &self.verification_key, &-self.challenge);
        let committed = C::Group::vartime_msm(&[nonces, self.binding_factor * nonces], &[self.hiding, self.binding]);
        public == committed
    }
}

/// Whether the weighted sum of the equations holds, which with high probability means that all of them do.
fn all_true<C: FrostSuite>(package: &SigningPackage<C>, batch: &[Checked<C>]) -> bool {
    let weights: Vec<_> = batch.iter().map(|share| share.weight).collect();
    let hiding: Vec<_> = batch.iter().map(|share| share.hiding).collect();
    let mut base = ScalarOf::<C>::ZERO;
    let mut scalars = Vec::with_capacity(2 * batch.len());
    let mut points = Vec::with_capacity(2 * batch.len());
    for share in batch {
        let weight = ScalarOf::<C>::from_u128(share.weight);
        base += weight * share.base;
        scalars.extend([package.signed(weight * share.binding_factor), weight * share.challenge]);
        points.extend([share.binding, share.verification_key]);
    }
    let hiding = C::Group::vartime_msm_short(&weights, &hiding);
    let hiding = if package.negates_nonces() { -hiding } else { hiding };
    C::Group::mul_base(&base) == hiding + C::Group::vartime_msm(&scalars, &points)
}

fn find_false<C: FrostSuite>(package: &SigningPackage<C>, batch: &[Checked<C>], culprits: &mut Vec<ShareIndex>) {
    match batch {
        [] => {}
        [one] => {
            if !one.is_true(package) {
                culprits.push(one.index);
            }
        }
        _ if all_true(package, batch) => {}
        _ => {
            let (left, right) = batch.split_at(batch.len() / 2);
            find_false(package, left, culprits);
            find_false(package, right, culprits);
        }
    }
}
