//! Preprocessing for one key: Dalskov et al., figure 2, "User-dependent preprocessing".

use theta_groups::Group;

use super::{
    curve::Curve,
    key::{KeyIdentity, KeyShare},
    nonces::Nonces,
};
use crate::{BlackBox, Shared, Stop};

/// What one signature uses up: R, `[k^-1]` and `[x / k]`.
///
/// It is consumed by signing, cannot be cloned or serialised, and serves one epoch of one key. Two signatures with one tuple
/// would show the key:
///
/// ```compile_fail,E0382
/// use theta_mpc::{ActiveShamir, Stop, ecdsa};
/// # type Box = ActiveShamir<theta_groups::P256>;
/// async fn twice(it: &Box, key: &ecdsa::KeyShare<Box>, tuple: ecdsa::Tuple<Box>, a: ecdsa::Request, b: ecdsa::Request) {
///     let first = ecdsa::sign(it, key, tuple, a).await;
///     let second = ecdsa::sign(it, key, tuple, b).await;
/// }
/// ```
///
/// ```compile_fail,E0599
/// # fn copy(tuple: &theta_mpc::ecdsa::Tuple<theta_mpc::ActiveShamir<theta_groups::P256>>) {
/// let copy: theta_mpc::ecdsa::Tuple<theta_mpc::ActiveShamir<theta_groups::P256>> = tuple.clone();
/// # }
/// ```
///
/// Nor does it serve another black box than the one that made it:
///
/// ```compile_fail,E0308
/// use theta_mpc::{ActiveShamir, PassiveShamir, Shared};
/// # type G = theta_groups::P256;
/// fn mix(active: Shared<ActiveShamir<G>>) -> Shared<PassiveShamir<G>> {
///     active
/// }
/// ```
#[derive(Debug)]
pub struct Tuple<B: BlackBox> {
    pub(super) element: <B::Group as Group>::Element,
    pub(super) inverse: Shared<B>,
    pub(super) product: Shared<B>,
    pub(super) key: KeyIdentity<B::Group>,
}

/// Makes tuples for a key from nonces: `[x / k]` = `[k^-1]` `[x]`.
///
/// # Errors
/// [`Stop`]; [`Stop::Input`] if the key is of other parties.
pub async fn bind<B: BlackBox>(black_box: &B, nonces: Nonces<B>, key: &KeyShare<B>) -> Result<Vec<Tuple<B>>, Stop>
where
    B::Group: Curve,
{
    key.identity.fits(black_box)?;
    let products = black_box.multiply(&nonces.inverses, &key.secret.repeated(nonces.len())).await?;
    // Nothing is public here; all must have come so far without noticing a false product.
    black_box.confirm([0; 32]).await?;
    let tuple = |(i, element): (usize, <B::Group as Group>::Element)| Tuple {
        element,
        inverse: nonces.inverses.at(i),
        product: products.at(i),
        key: key.identity,
    };
    Ok(nonces.elements.iter().copied().enumerate().map(tuple).collect())
}
