//! Preprocessing for one key: Dalskov et al., figure 2, "User-dependent preprocessing".

use theta_groups::{Group, Transcript};

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
    pub(super) id: [u8; 32],
}

impl<B: BlackBox> Tuple<B> {
    /// The public name of this tuple, the same at all parties and no other tuple's: a hash of its batch, of the key with
    /// epoch, threshold and n, of its place in the batch and of R. A [`Request`](super::Request) says by it what signs it.
    #[must_use]
    pub const fn id(&self) -> [u8; 32] {
        self.id
    }
}

/// The public name of the tuples that a batch of nonces makes with a key. It says which black box made them where that is one with passive security:
/// nothing that is derived from the name of such a tuple serves one with active security.
fn batch<B: BlackBox<Group: Curve>>(nonces: &Nonces<B>, key: &KeyIdentity<B::Group>) -> [u8; 32] {
    let mut transcript = Transcript::new("theta/ecdsa/tuples/v1")
        .with("group", B::Group::NAME.as_bytes())
        .with("public key", B::Group::encode(&key.public).as_ref())
        .with("nonces", &nonces.id());
    key.sharing.append_to(&mut transcript);
    if !B::ACTIVE {
        transcript.append("passive", B::NAME.as_bytes());
    }
    transcript.finish32()
}

/// Makes tuples for a key from nonces: `[x / k]` = `[k^-1]` `[x]`.
///
/// Departure: with active security and an honest majority the product is prepared with the nonces, and only an opening depends on the key ([`Inverses::times`](crate::Inverses::times)).
///
/// First all confirm that they mean the same key and the same nonces, all of them in the same order: before that, nothing
/// leaves that depends on either. Two honest parties that multiplied different nonces would show numbers which, with the
/// signatures, are equations for the key.
///
/// # Errors
/// [`Stop`]; [`Stop::Input`] if the key is of other parties, or the nonces are of others or of another epoch.
/// [`Stop::Cheated`] if not all parties bind the same nonces to the same key. The nonces are lost in any case.
pub async fn bind<B: BlackBox>(black_box: &B, nonces: Nonces<B>, key: &KeyShare<B>) -> Result<Vec<Tuple<B>>, Stop>
where
    B::Group: Curve,
{
    key.identity.sharing.fits(black_box)?;
    if nonces.sharing != key.identity.sharing {
        return Err(Stop::Input("the nonces were made in another epoch or by other parties"));
    }
    black_box.confirm(batch::<B>(&nonces, &key.identity)).await?;
    bind_confirmed(black_box, nonces, key).await
}

/// As [`bind`], where all are known to mean the same key and the same nonces.
pub(super) async fn bind_confirmed<B: BlackBox>(
    black_box: &B,
    nonces: Nonces<B>,
    key: &KeyShare<B>,
) -> Result<Vec<Tuple<B>>, Stop>
where
    B::Group: Curve,
{
    key.identity.sharing.fits(black_box)?;
    if nonces.sharing != key.identity.sharing {
        return Err(Stop::Input("the nonces were made in another epoch or by other parties"));
    }
    let batch = batch::<B>(&nonces, &key.identity);
    black_box.party().border()?;
    // What is public here is checked, and all must have come to its end without noticing anything false.
    let factor = (&key.secret, &key.points[..]);
    let (inverses, elements, products) = nonces.inverses.times(black_box, factor, batch).await?;
    let tuple = |(i, element): (usize, <B::Group as Group>::Element)| Tuple {
        element,
        inverse: inverses.at(i),
        product: products.at(i),
        key: key.identity,
        id: Transcript::new("theta/ecdsa/tuple/v1")
            .with("batch", &batch)
            .with("place", &u64::try_from(i).unwrap_or(u64::MAX).to_be_bytes())
            .with("R", B::Group::encode(&element).as_ref())
            .finish32(),
    };
    Ok(elements.into_iter().enumerate().map(tuple).collect())
}
