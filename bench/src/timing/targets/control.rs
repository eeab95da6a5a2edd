//! Steps that leak on purpose, one or more for each way in which steps are measured. If they are not found, nothing that is not found means anything.

use std::{hint::black_box, time::Duration};

use rand_core::Rng;
use theta_groups::{Group, P256, Scalar};

use super::{Target, black_boxes, scalar};
use crate::timing::dudect::{Class, clocked};

/// Bytes that are compared.
const LEN: usize = 256;

pub(super) fn all() -> Vec<Target> {
    let comparison = Target::new("control-comparison", "equal, or different at once", |trial| {
        let reference = [7; LEN];
        trial.steps(
            |class, rng| {
                let mut bytes = [0; LEN];
                rng.fill_bytes(&mut bytes);
                // Different in the first byte, whatever was drawn.
                let [first, ..] = &mut bytes;
                *first = 8;
                Ok(if class == Class::Fixed { reference } else { bytes })
            },
            |bytes| are_equal(&bytes, &reference),
        )
    });
    let product = Target::new("control-vartime-mul", "scalar 1, or random", |trial| {
        let element = P256::mul_base(&Scalar::random(trial.rng()));
        let product = |scalar| P256::vartime_msm(&[scalar], &[element]);
        trial.steps(|class, rng| Ok(scalar(class, rng)), product)
    });
    // As steps that are a part of something longer.
    let part = Target::new("control-part", "scalar 1, or random", |trial| {
        let element = P256::mul_base(&Scalar::random(trial.rng()));
        trial.samples(|class, rng| {
            let (scalar, mut spent) = (scalar(class, rng), Duration::ZERO);
            let _ = clocked(&mut spent, || P256::vartime_msm(&[scalar], &[element]));
            Ok(spent)
        })
    });
    [comparison, product, part, black_boxes::control()].map(|target| Target { is_control: true, ..target }).into()
}

/// Compares until there is a difference.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    for (byte, other) in one.iter().zip(other) {
        if black_box(*byte) != *other {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    use super::*;
    use crate::timing::dudect::{Trial, Verdict};

    #[test]
    fn controls_are_found_soon() {
        // Each ends when it is found, after some hundred steps of a microsecond or some hundred.
        for target in all() {
            let mut trial = Trial::new(Duration::from_secs(60), true, ChaCha20Rng::seed_from_u64(1));
            (target.run)(&mut trial).unwrap();
            assert_eq!(trial.outcome().verdict, Verdict::Leaks, "{}", target.name);
        }
    }
}
