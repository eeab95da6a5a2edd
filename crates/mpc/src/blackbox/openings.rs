//! What comes before openings, and openings in the group, checked together.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use theta_groups::{Group, Scalar as _, Transcript};
use theta_rounds::Bug;

use super::{Element, Products, Scalar, Shared, SharedPoints, products::coin};
use crate::Stop;

/// Before values are opened: all products are verified, and with active security all parties have received what was dealt.
pub(crate) async fn prepare_opening<B: Products>(black_box: &B) -> Result<(), Stop> {
    black_box.verify().await?;
    if B::ACTIVE { black_box.party().settle().await } else { Ok(()) }
}

/// Opens elements when all products are verified; with active security the elements are checked, too.
pub(crate) async fn open_points<B: Products>(black_box: &B, points: &SharedPoints<B>) -> Result<Vec<Element<B>>, Stop> {
    black_box.verify().await?;
    let logarithms = points.logarithms();
    if B::ACTIVE { open_checked(black_box, logarithms).await } else { black_box.open_elements_now(logarithms).await }
}

/// Opens a_i G for all i, believing whatever is sent, and checks the result.
///
/// One random element m G is opened with them. Then a coin gives weights rho_i of 128 bits, and the number
/// m + sum rho_i a_i is opened, with all checks. It must be the logarithm of the same sum of the elements. A false element
/// passes with probability 2^-128, as it was received before the coin was known to anybody; and m hides the sum of the a_i.
///
/// No element leaves before all parties have their shares of the logarithms and of m.
async fn open_checked<B: Products>(black_box: &B, logarithms: &Shared<B>) -> Result<Vec<Element<B>>, Stop> {
    let mask = black_box.reserve().take(black_box, 1).await?;
    black_box.party().settle().await?;
    let mut elements = black_box.open_elements_now(&logarithms.then(&mask)).await?;
    let seed = coin(black_box).await?;
    let seed = Transcript::new("theta/mpc/opened elements/v1").with("coin", seed.encode().as_ref()).finish32();
    let mut rng = ChaCha20Rng::from_seed(seed);
    let mut weights: Vec<u128> =
        logarithms.cells().iter().map(|_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).collect();
    weights.push(1);
    let scalars: Vec<Scalar<B>> = weights.iter().map(|weight| Scalar::<B>::from_u128(*weight)).collect();
    let sum = black_box.open_now(&logarithms.then(&mask).times_each(&scalars).sum()).await?;
    let sum = sum.first().ok_or(Stop::Bug(Bug("a sum is missing")))?;
    if B::Group::vartime_msm_short(&weights, &elements) != B::Group::mul_base(sum) {
        return Err(Stop::Cheated("an opened element is false"));
    }
    elements.pop();
    Ok(elements)
}
