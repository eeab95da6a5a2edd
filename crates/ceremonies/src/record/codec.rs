//! The canonical codec, for parties that are nodes.

pub(crate) use theta_agreement::{read_entries, read_party, write_entries};
pub(crate) use theta_names::codec::{Reader, Sink, Writer};
