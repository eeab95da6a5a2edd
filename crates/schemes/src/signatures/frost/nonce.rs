//! Round one: nonces, and commitments to them (RFC 9591, sections 4.1 and 5.1).

use core::fmt;

use rand_core::CryptoRng;
use theta_groups::{Group, Scalar, Secret};
use theta_sharing::{Encoded, ShareIndex};

use super::{FrostSuite, ScalarOf, SigningCommitments, SuiteHash};
use crate::keys::KeyShare;

/// The secret nonces d and e of one signer for one signature.
///
/// They answer at most one package: [`sign`](super::sign) consumes them, and there is no way to copy or store them.
/// Dropping them wipes them.
pub struct SigningNonces<C: FrostSuite> {
    /// d and e, boxed so that moving the nonces leaves no copies of them.
    secrets: Box<Secret<[ScalarOf<C>; 2]>>,
    commitments: SigningCommitments<C>,
}

impl<C: FrostSuite> SigningNonces<C> {
    /// The signer.
    #[must_use]
    pub const fn index(&self) -> ShareIndex {
        self.commitments.index()
    }

    /// The commitments to them, which are public.
    #[must_use]
    pub const fn commitments(&self) -> &SigningCommitments<C> {
        &self.commitments
    }

    /// d + e rho.
    pub(super) fn bound(self, binding_factor: ScalarOf<C>) -> Secret<ScalarOf<C>> {
        let [hiding, binding] = self.secrets.expose();
        Secret::new(*hiding + *binding * binding_factor)
    }
}

impl<C: FrostSuite> fmt::Debug for SigningNonces<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningNonces({}, <redacted>)", self.index())
    }
}

/// Round one: fresh nonces and the commitments to publish. They can be made in advance, before the message or the other
/// signers are known.
#[must_use]
pub fn commit<C: FrostSuite>(
    key: &KeyShare<C::Group>,
    rng: &mut (impl CryptoRng + ?Sized),
) -> (SigningNonces<C>, SigningCommitments<C>) {
    let (hiding, binding) = (nonce::<C>(key, rng), nonce::<C>(key, rng));
    let elements = [&hiding, &binding].map(|nonce| C::Group::mul_base(nonce.expose()));
    let encoded = match Encoded::batch(&elements).as_slice() {
        [hiding, binding] => [*hiding, *binding],
        _ => elements.map(Encoded::new),
    };
    assemble(key.index(), &hiding, &binding, encoded)
}

/// Round one for `count` signatures at once; encoding shares its inversions.
#[must_use]
pub fn commit_batch<C: FrostSuite>(
    key: &KeyShare<C::Group>,
    count: usize,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Vec<(SigningNonces<C>, SigningCommitments<C>)> {
    let pairs: Vec<_> = (0..count).map(|_| (nonce::<C>(key, rng), nonce::<C>(key, rng))).collect();
    let elements: Vec<_> = pairs
        .iter()
        .flat_map(|(hiding, binding)| [C::Group::mul_base(hiding.expose()), C::Group::mul_base(binding.expose())])
        .collect();
    let encoded = Encoded::batch(&elements);
    let (encoded, _) = encoded.as_chunks::<2>();
    pairs
        .into_iter()
        .zip(encoded)
        .map(|((hiding, binding), encoded)| assemble(key.index(), &hiding, &binding, *encoded))
        .collect()
}

fn assemble<C: FrostSuite>(
    index: ShareIndex,
    hiding: &Secret<ScalarOf<C>>,
    binding: &Secret<ScalarOf<C>>,
    [d, e]: [Encoded<C::Group>; 2],
) -> (SigningNonces<C>, SigningCommitments<C>) {
    let commitments = SigningCommitments::new(index, d, e);
    let secrets = Box::new(Secret::new([*hiding.expose(), *binding.expose()]));
    (SigningNonces { secrets, commitments }, commitments)
}

/// `nonce_generate`, section 4.1: H3 of 32 random bytes and the secret share, so that a bad random number generator alone does
/// not reveal the share.
fn nonce<C: FrostSuite>(key: &KeyShare<C::Group>, rng: &mut (impl CryptoRng + ?Sized)) -> Secret<ScalarOf<C>> {
    let mut random = Secret::new([0; 32]);
    rng.fill_bytes(random.expose_mut());
    let secret = Secret::new(key.secret().expose().encode());
    Secret::new(C::Hash::to_scalar(C::CONTEXT, b"nonce", &[random.expose(), secret.expose().as_ref()])(&[]))
}
