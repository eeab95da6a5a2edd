//! Randomness without communication (Araki et al., section 2.2, "correlated randomness"): each two parties have a seed in common.

use rand_core::Rng;
use theta_groups::{Scalar, Secret, SecretRng};

use super::BEFORE;
use crate::{Party, Stop, program::SEED};

/// The generators of the two parts that a party holds: for random values, and for sharings of zero.
pub(super) struct Streams {
    values: [SecretRng; 2],
    zeros: [SecretRng; 2],
}

impl Streams {
    /// The holder of part i draws its seed and sends it to the other one, the party before.
    pub(super) async fn agree(party: &Party) -> Result<Self, Stop> {
        let mut own = Secret::new([0; SEED]);
        party.draw(|rng| rng.fill_bytes(own.expose_mut()));
        party.note_dealing();
        let (next, before) = (party.after(1), party.after(BEFORE));
        let out: Vec<Vec<u8>> =
            (0..party.n()).map(|to| if to == before { own.expose().to_vec() } else { Vec::new() }).collect();
        let expected: Vec<usize> = (0..party.n()).map(|from| if from == next { SEED } else { 0 }).collect();
        let got = party.exchange(&out, &expected)?.await?;
        let theirs: [u8; SEED] = got.get(next).and_then(|seed| seed[..].try_into().ok()).ok_or(Stop::Lost)?;
        let theirs = Secret::new(theirs);
        let streams = |number| [&own, &theirs].map(|seed| SecretRng::of_stream(seed, number));
        Ok(Self { values: streams(0), zeros: streams(1) })
    }

    /// Shares of random values.
    pub(super) fn random<S: Scalar>(&mut self, count: usize) -> Secret<Vec<[S; 2]>> {
        let mut cells = Secret::new(vec![[S::ZERO; 2]; count]);
        for cell in cells.expose_mut() {
            for (part, stream) in cell.iter_mut().zip(&mut self.values) {
                *part = S::random(stream);
            }
        }
        cells
    }

    /// This party's terms of sums that are zero.
    pub(super) fn zero<S: Scalar>(&mut self, count: usize) -> Secret<Vec<S>> {
        let mut terms = Secret::new(vec![S::ZERO; count]);
        let [own, next] = &mut self.zeros;
        for term in terms.expose_mut() {
            *term = S::random(own) - S::random(next);
        }
        terms
    }
}
