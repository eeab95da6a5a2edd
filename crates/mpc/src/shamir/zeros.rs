//! Sharings of zero that hide what is shown.

use theta_groups::{P256, P256Scalar, Scalar as _};

use super::interpolation::{combine, lagrange};
use crate::{Party, PassiveShamir, blackbox::all_of};

/// They are of zero, differ from one another, and have the full degree: no 2t shares say anything about another one. Of a lower degree, or with a value that is
/// used twice, the t + 1 honest summands of a product would be t + 1 equations for fewer unknowns.
#[test]
fn sharings_of_zero_have_full_degree_and_are_fresh() {
    for (k, n) in [(2_u16, 3_u16), (2, 4), (3, 5), (3, 7)] {
        let count = 7;
        let by_party: Vec<Vec<P256Scalar>> = all_of((k, n), move |party: Party| async move {
            let black_box = PassiveShamir::<P256>::new(&party).await?;
            Ok(black_box.deal_zeros(count).await?.cells().iter().map(|[share]| *share).collect())
        });
        let degree = 2 * (usize::from(k) - 1);
        let points: Vec<u64> = (1..=u64::from(n)).collect();
        let at = |which: usize, points: &[u64], x: u64| {
            let shares = points.iter().map(|point| by_party[usize::try_from(*point).unwrap() - 1][which]);
            combine(&lagrange::<P256Scalar>(points, x), shares)
        };
        for which in 0..count {
            assert_eq!(at(which, &points[..=degree], 0), P256Scalar::ZERO, "{k} of {n}");
            // Where more parties than 2t + 1 have a share, the others' lie on the same polynomial.
            for beyond in &points[degree + 1..] {
                assert_eq!(at(which, &points[..=degree], *beyond), at(which, &[*beyond], *beyond));
            }
            assert_ne!(at(which, &points[..degree], 0), P256Scalar::ZERO, "{k} of {n}: of a lower degree");
        }
        assert!(by_party.iter().all(|shares| shares.windows(2).all(|pair| pair[0] != pair[1])));
    }
}
