//! What every override has in words: its flag, and a reason.

/// The longest reason, in bytes.
const MOST_REASON: usize = 200;

/// What stands in every record and log of what operators override, first.
pub const FLAG: &str = "OVERRIDE: ";

/// Whether a reason is one line, of the length that it may have: it stands in logs and records.
pub(crate) fn check_reason(reason: &str) -> Result<(), String> {
    if reason.is_empty() || reason.len() > MOST_REASON || reason.chars().any(char::is_control) {
        return Err(format!("its reason is a line of 1 to {MOST_REASON} bytes"));
    }
    Ok(())
}
