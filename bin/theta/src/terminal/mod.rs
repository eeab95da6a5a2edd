//! The person at the terminal: what is printed, how it looks, and how a command ends.

pub(crate) mod exit;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod units;
