//! Ceremonies: held, listed, cancelled.

mod cancel;
mod hold;
mod left_out;
mod list;
mod proofs;

pub(crate) use cancel::find;
pub(super) use cancel::{CancelArgs, cancel};
pub(crate) use hold::{CeremonyArgs, hold};
pub(super) use hold::{Held, hold_quietly, how_to_approve, report};
pub(super) use list::{CeremoniesArgs, ceremonies};
