//! Ceremonies: held, listed, cancelled.

mod cancel;
mod hold;
mod list;

pub(super) use cancel::{CancelArgs, cancel};
pub(super) use hold::{CeremonyArgs, Held, hold, report};
pub(super) use list::{CeremoniesArgs, ceremonies};
