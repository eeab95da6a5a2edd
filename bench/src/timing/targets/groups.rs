//! The groups: products with secret scalars, without a table, from a table of the base and from one of any element, and sums of them; and inverses of scalars.

use rand_chacha::ChaCha20Rng;
use theta::exit::Failure;
use theta_groups::{Ed448, Ed25519, Group, P256, Ristretto255, Scalar, Secp256k1, bls12_381, bn254};

use super::{Target, scalar};
use crate::timing::dudect::Class;

/// The classes of all of them.
const CLASSES: &str = "scalar 1, or random";

/// How many products a sum has.
const OF_MSM: usize = 4;

pub(super) fn all() -> Vec<Target> {
    let groups = [
        of::<P256>(),
        of::<Secp256k1>(),
        of::<Ed25519>(),
        of::<Ristretto255>(),
        of::<Ed448>(),
        of::<bn254::G1>(),
        of::<bn254::G2>(),
        of::<bls12_381::G1>(),
        of::<bls12_381::G2>(),
    ];
    groups.into_iter().flatten().collect()
}

fn of<G: Group>() -> [Target; 6] {
    let named = |step: &str| format!("{}-{step}", G::NAME);
    [
        Target::new(named("mul"), CLASSES, |trial| {
            let element = G::mul_base(&G::Scalar::random(trial.rng()));
            trial.steps(prepare::<G::Scalar>, move |scalar| element * scalar)
        }),
        Target::new(named("mul-base"), CLASSES, |trial| {
            trial.steps(prepare::<G::Scalar>, |scalar| G::mul_base(&scalar))
        }),
        Target::new(named("table"), CLASSES, |trial| {
            let table = G::table(&G::mul_base(&G::Scalar::random(trial.rng())));
            trial.steps(prepare::<G::Scalar>, move |scalar| table(&scalar))
        }),
        Target::new(named("msm"), "scalars 1, or random", |trial| {
            let scalars = [(); OF_MSM].map(|()| G::Scalar::random(trial.rng()));
            let elements = G::mul_base_batch(&scalars);
            trial.steps(
                |class, rng| Ok([(); OF_MSM].map(|()| scalar::<G::Scalar>(class, rng))),
                move |scalars| G::msm(&scalars, &elements),
            )
        }),
        Target::new(named("invert"), CLASSES, |trial| trial.steps(prepare::<G::Scalar>, |scalar| scalar.invert())),
        Target::new(named("scalar-equal"), "equal scalars, or random ones", |trial| {
            trial.steps(
                |class, rng| {
                    let (one, other) = (G::Scalar::random(rng), G::Scalar::random(rng));
                    Ok((one, if class == Class::Fixed { one } else { other }))
                },
                |(one, other)| one == other,
            )
        }),
    ]
}

fn prepare<S: Scalar>(class: Class, rng: &mut ChaCha20Rng) -> Result<S, Failure> {
    Ok(scalar(class, rng))
}
