//! The selection of shares to combine.

use theta_groups::Group;
use theta_sharing::{InterpolationError, InterpolationSet, ShareIndex, Threshold};

use crate::CombineError;

/// The first k shares and their parties, which must exist and differ.
pub(crate) fn first_k<T>(
    threshold: Threshold,
    shares: &[T],
    index: impl Fn(&T) -> ShareIndex,
) -> Result<(&[T], InterpolationSet), CombineError> {
    let needed = usize::from(threshold.k());
    let chosen = shares.get(..needed).ok_or(CombineError::TooFew { needed, got: shares.len() })?;
    let indices: Vec<ShareIndex> = chosen.iter().map(index).collect();
    if let Some(unknown) = indices.iter().find(|index| !threshold.contains(**index)) {
        return Err(CombineError::UnknownParty(*unknown));
    }
    let set = InterpolationSet::new(indices).map_err(|error| match error {
        InterpolationError::Empty => CombineError::TooFew { needed, got: 0 },
        InterpolationError::Duplicate(twice) => CombineError::Duplicate(twice),
    })?;
    Ok((chosen, set))
}

/// The sharing polynomial in the exponent at zero, from the first k shares, which are not verified.
pub(crate) fn vartime_interpolate<G: Group, T>(
    threshold: Threshold,
    shares: &[T],
    index: impl Fn(&T) -> ShareIndex,
    element: impl Fn(&T) -> G::Element,
) -> Result<G::Element, CombineError> {
    let (chosen, set) = first_k(threshold, shares, index)?;
    Ok(set.vartime_interpolate_at_zero::<G>(chosen.iter().map(element)))
}
