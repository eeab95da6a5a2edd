//! What says that products are right.

/// How the products of a black box on MASCOT are checked, as a type: values of one never mix with values of the other.
pub trait Check: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The protocol's name.
    const NAME: &'static str;
    /// Whether a sacrifice verifies each triple.
    const SACRIFICES: bool;
}

/// A second combination of each product is sacrificed: MASCOT.
#[derive(Clone, Copy, Debug)]
pub struct Sacrifice;

/// What is computed of the products shows it: MASCOT- (Dalskov et al., section 5).
#[derive(Clone, Copy, Debug)]
pub struct Outcome;

impl Check for Sacrifice {
    const NAME: &'static str = "MASCOT";
    const SACRIFICES: bool = true;
}

impl Check for Outcome {
    const NAME: &'static str = "MASCOT-";
    const SACRIFICES: bool = false;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Sacrifice {}
    impl Sealed for super::Outcome {}
}
