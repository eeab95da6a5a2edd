//! Time, memory, and the lower bound of the time.

pub(super) mod clock;
mod heap;
pub(super) mod limits;
pub(super) mod raw;
