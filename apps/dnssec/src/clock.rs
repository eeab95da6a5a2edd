//! The time.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time on this machine's clock, in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
