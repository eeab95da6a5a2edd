//! Sharing: dealing, polynomials at public places, and values from secret shares with public indices.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta::exit::Failure;
use theta_groups::{P256Scalar, Scalar, Secret};
use theta_sharing::{Polynomial, ShareIndex, Threshold, interpolate_at, split};

use super::{Drawn, Target, party, scalar};

/// Coefficients of polynomials, and shares that are interpolated.
const K: u16 = 5;
const N: u16 = 9;

pub(super) fn all() -> Vec<Target> {
    vec![
        Target::new("sharing-split", "secret 1, or random", |trial| {
            let threshold = Threshold::new(K, N).map_err(Failure::internal)?;
            trial.steps(
                |class, rng| Ok((Secret::new(scalar::<P256Scalar>(class, rng)), ChaCha20Rng::from_rng(rng))),
                |(secret, mut rng)| split(&secret, threshold, &mut rng),
            )
        }),
        Target::new("sharing-polynomial", "coefficients zero, or random", |trial| {
            let index = party(6)?;
            trial.steps(
                |class, rng| Ok(Polynomial::<P256Scalar>::random(K, &mut Drawn::new(class, rng))),
                |polynomial| polynomial.at(index),
            )
        }),
        Target::new("sharing-interpolate", "shares zero, or random", |trial| {
            let indices = (0..usize::from(K)).map(|place| party(2 * place)).collect::<Result<Vec<_>, _>>()?;
            let point = party(3)?;
            trial.fallible_steps(
                |class, rng| {
                    let mut drawn = Drawn::new(class, rng);
                    let share = |index: &ShareIndex| (*index, Secret::new(P256Scalar::random(&mut drawn)));
                    Ok(indices.iter().map(share).collect::<Vec<_>>())
                },
                |shares| {
                    let borrowed: Vec<_> = shares.iter().map(|(index, share)| (*index, share)).collect();
                    interpolate_at(&borrowed, point)
                },
            )
        }),
    ]
}
