//! Time, memory, and what neither can be less than.

pub(super) mod clock;
mod heap;
pub(super) mod limits;
pub(super) mod raw;
