//! Products that are shown and never shared.

use core::future::Future;

use theta_groups::{P256, P256Scalar, Scalar as _};

use super::{BlackBox, Inverses, Products, products::parts_of};
use crate::{Element, Party, PassiveRep3, PassiveShamir, Scalar, Stop, program::among};

/// What all of a group come to, if they come to anything.
pub(crate) fn all_of<T, F>(threshold: (u16, u16), run: impl Fn(Party) -> F + Copy + Send + 'static) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Stop>> + Send + 'static,
{
    let parties = among(threshold, 1, run).parties.into_values();
    parties.map(|party| party.result.unwrap().unwrap()).collect()
}

/// Few are summed by all, many by one each.
const COUNTS: [usize; 2] = [3, 100];

async fn compared<B: Products>(black_box: B) -> Result<bool, Stop> {
    for count in COUNTS {
        let (a, b) = black_box.random(2 * count).await?.split(count);
        let shown = black_box.open_parts(&parts_of(&a, &b)).await?;
        let shared = black_box.multiply(&a, &b).await?;
        let (a, b, shared) = (black_box.open(&a).await?, black_box.open(&b).await?, black_box.open(&shared).await?);
        let products: Vec<Scalar<B>> = a.iter().zip(&b).map(|(a, b)| *a * *b).collect();
        if shown.len() != count || shown != products || shown != shared {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether each element is the generator times the inverse of its value.
async fn inverted<B: Products>(black_box: B) -> Result<bool, Stop> {
    for count in COUNTS {
        let Inverses { values, elements, .. } = black_box.inverses(count).await?;
        let values = black_box.open(&values).await?;
        let generator = <B::Group as theta_groups::Group>::generator();
        let right = |(value, element): (&Scalar<B>, &Element<B>)| *element * *value == generator;
        if elements.len() != count || !values.iter().zip(&elements).all(right) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[test]
fn products_that_are_shown_are_those_that_are_shared() {
    for threshold in [(2, 3), (2, 4), (3, 5), (3, 6)] {
        let shamir = |party: Party| async move { compared(PassiveShamir::<P256>::new(&party).await?).await };
        assert!(all_of(threshold, shamir).into_iter().all(|same| same), "{threshold:?}");
        let shamir = |party: Party| async move { inverted(PassiveShamir::<P256>::new(&party).await?).await };
        assert!(all_of(threshold, shamir).into_iter().all(|right| right), "{threshold:?}");
    }
    let three = (2, 3);
    let rep3 = |party: Party| async move { compared(PassiveRep3::<P256>::new(&party).await?).await };
    assert!(all_of(three, rep3).into_iter().all(|same| same));
    let rep3 = |party: Party| async move { inverted(PassiveRep3::<P256>::new(&party).await?).await };
    assert!(all_of(three, rep3).into_iter().all(|right| right));
}

/// The same factors, shown twice: what each party says of them differs, though its part of the products is the same. Otherwise three parts of one product would
/// show linear combinations of the factors' shares.
#[test]
fn parts_of_what_is_shown_are_fresh_each_time() {
    let three = (2, 3);
    let parts = all_of(three, |party| async move {
        let black_box = PassiveRep3::<P256>::new(&party).await?;
        let (a, b) = black_box.random(2).await?.split(1);
        let parts = parts_of(&a, &b);
        let said = [black_box.masked(&parts)?, black_box.masked(&parts)?].map(|masked| masked.expose()[0]);
        Ok((parts.expose()[0], said))
    });
    let sum = |parts: Vec<P256Scalar>| parts.into_iter().fold(P256Scalar::ZERO, |sum, part| sum + part);
    let product = sum(parts.iter().map(|(part, _)| *part).collect());
    for which in 0..2 {
        assert_eq!(sum(parts.iter().map(|(_, said)| said[which]).collect()), product);
    }
    assert!(parts.iter().all(|(part, said)| said[0] != said[1] && !said.contains(part)));
}
