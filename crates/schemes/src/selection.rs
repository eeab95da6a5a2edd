//! Which shares are combined.

use theta_groups::Group;
use theta_sharing::{InterpolationError, ShareIndex, Threshold, vartime_interpolate_at_zero};

use crate::CombineError;

/// The first k shares, of parties that exist and differ.
pub(crate) fn first_k<T>(
    threshold: Threshold,
    shares: &[T],
    index: impl Fn(&T) -> ShareIndex,
) -> Result<&[T], CombineError> {
    let needed = usize::from(threshold.k());
    let chosen = shares.get(..needed).ok_or(CombineError::TooFew { needed, got: shares.len() })?;
    let mut indices: Vec<ShareIndex> = chosen.iter().map(index).collect();
    if let Some(unknown) = indices.iter().find(|index| !threshold.contains(**index)) {
        return Err(CombineError::UnknownParty(*unknown));
    }
    indices.sort_unstable();
    match indices.windows(2).find_map(|pair| if let [a, b] = pair { (a == b).then_some(*a) } else { None }) {
        Some(twice) => Err(CombineError::Duplicate(twice)),
        None => Ok(chosen),
    }
}

/// The sharing polynomial in the exponent at zero, from the first k shares. Whether they are true is not looked at.
pub(crate) fn vartime_interpolate<G: Group, T>(
    threshold: Threshold,
    shares: &[T],
    point: impl Fn(&T) -> (ShareIndex, G::Element),
) -> Result<G::Element, CombineError> {
    let points: Vec<_> = first_k(threshold, shares, |share| point(share).0)?.iter().map(point).collect();
    vartime_interpolate_at_zero::<G>(&points).map_err(|error| interpolation_error(&error))
}

/// Interpolation refuses only what [`first_k`] has refused before; should it ever differ, the answer stays a refusal.
const fn interpolation_error(error: &InterpolationError) -> CombineError {
    match error {
        InterpolationError::Empty => CombineError::TooFew { needed: 1, got: 0 },
        InterpolationError::Duplicate(index) => CombineError::Duplicate(*index),
    }
}
