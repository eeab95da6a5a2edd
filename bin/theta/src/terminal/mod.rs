//! The terminal: what is printed, how it looks, and how a command ends.

pub mod exit;
pub mod interrupt;
pub mod output;
pub(crate) mod pasted;
pub mod progress;
pub(crate) mod text;
pub mod units;
