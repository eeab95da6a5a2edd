//! Heap memory, counted by the allocator in builds with the feature `micro`; other builds do not count.

use std::hint::black_box;

#[cfg(feature = "micro")]
#[global_allocator]
static ALLOCATOR: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// The peak of heap memory during `operation` above what was allocated before, including its result, in bytes. `None` in a
/// build that does not count. Meaningful only while no other thread allocates.
#[cfg(feature = "micro")]
pub(super) fn peak_of<O>(operation: impl FnOnce() -> O) -> Option<usize> {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let output = black_box(operation());
    let peak = ALLOCATOR.peak_usage();
    drop(output);
    Some(peak.saturating_sub(before))
}

/// See the other one.
#[cfg(not(feature = "micro"))]
pub(super) fn peak_of<O>(operation: impl FnOnce() -> O) -> Option<usize> {
    drop(black_box(operation()));
    None
}

#[cfg(all(test, feature = "micro"))]
mod tests {
    use super::*;

    #[test]
    fn the_peak_counts_what_was_freed_and_what_is_returned() {
        let peak = peak_of(|| {
            drop(black_box(vec![1_u8; 3 << 20]));
            vec![1_u8; 1 << 20]
        });
        assert!(peak.is_some_and(|bytes| bytes >= 3 << 20), "{peak:?}");
    }
}
