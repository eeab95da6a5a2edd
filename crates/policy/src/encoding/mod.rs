//! The canonical encoding of everything that is signed, hashed or stored, and its text form.
//!
//! An encoding begins with its domain, for example `theta/approval/v1`: nothing signed for one purpose or version can be
//! taken for another. Then come the fields in a fixed order. Integers are big-endian; byte strings and texts have their
//! length before them in four bytes; what may be absent has one byte before it, 0 or 1. There is one encoding of a value
//! and decoding accepts no other.

mod armor;
mod codec;

pub use armor::ArmorError;
pub(crate) use armor::{armor, dearmor, dearmor_all};
pub use codec::DecodeError;
pub(crate) use codec::{Decoder, Encoder};
