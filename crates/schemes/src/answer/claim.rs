//! Combined results whose check may wait for others of the same key, so that many are checked at once.

use core::any::Any;
use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use rand_core::CryptoRng;

use super::Answering;
use crate::ThresholdScheme;
use crate::keys::Combined;

/// A result that somebody has combined and nobody has checked. [`check_together`] tells whether it is right.
pub struct Claim(Box<dyn Claimed>);

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim(<unchecked>)")
    }
}

impl Claim {
    pub(crate) fn new<S: ThresholdScheme>(answering: Arc<Answering<S>>, output: S::Output) -> Self {
        Self(Box::new(ClaimOf { answering, output }))
    }

    /// The result. It is none before it is checked.
    #[must_use]
    pub fn combined(&self) -> Combined {
        self.0.combined()
    }
}

/// A claim of any scheme.
trait Claimed: Any + Send {
    fn combined(&self) -> Combined;

    /// The same for claims of one key, different for others.
    fn key(&self) -> usize;

    /// The places of the false ones among claims of this key.
    fn vartime_false_among(&self, claims: &[&Claim], rng: &mut dyn CryptoRng) -> Vec<usize>;
}

struct ClaimOf<S: ThresholdScheme> {
    answering: Arc<Answering<S>>,
    output: S::Output,
}

impl<S: ThresholdScheme> Claimed for ClaimOf<S> {
    fn combined(&self) -> Combined {
        let (result, proof) = S::encode_output(&self.output);
        Combined { result, proof }
    }

    /// Where the key is in memory: a claim holds its key, so no other key is there.
    fn key(&self) -> usize {
        Arc::as_ptr(&self.answering.public).addr()
    }

    fn vartime_false_among(&self, claims: &[&Claim], rng: &mut dyn CryptoRng) -> Vec<usize> {
        // Claims of one key are of one scheme.
        let ours = claims.iter().map(|claim| (&*claim.0 as &dyn Any).downcast_ref::<Self>());
        let Some(ours) = ours.collect::<Option<Vec<_>>>() else { return (0..claims.len()).collect() };
        let results: Vec<_> = ours.iter().map(|claim| (&claim.answering.request, &claim.output)).collect();
        S::vartime_false_among(&self.answering.public, &results, rng)
    }
}

/// Which of the claims are right, in their order. Those of one key are checked at once, whatever they are about; a batch with
/// false ones is halved until they are found, so that they cost others little. `rng` draws the weights, which nobody who makes
/// claims may foresee.
#[must_use]
pub fn check_together(claims: &[Claim], rng: &mut dyn CryptoRng) -> Vec<bool> {
    let mut keys: BTreeMap<usize, Vec<(usize, &Claim)>> = BTreeMap::new();
    for (place, claim) in claims.iter().enumerate() {
        keys.entry(claim.0.key()).or_default().push((place, claim));
    }
    let mut right = vec![true; claims.len()];
    for group in keys.into_values() {
        let of_key: Vec<&Claim> = group.iter().map(|(_, claim)| *claim).collect();
        let Some(first) = of_key.first() else { continue };
        for found in first.0.vartime_false_among(&of_key, rng) {
            let verdict = group.get(found).and_then(|(place, _)| right.get_mut(*place));
            if let Some(verdict) = verdict {
                *verdict = false;
            }
        }
    }
    right
}
