//! What is said, kept, certified and sent.

pub(in crate::ceremony) mod board;
pub(in crate::ceremony) mod certificate;
pub(in crate::ceremony) mod codec;
pub(in crate::ceremony) mod statement;
