//! The time.

use std::time::{SystemTime, UNIX_EPOCH};

use theta_statements::UnixTime;

/// The time on this machine's clock.
pub(crate) fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
