//! Signed statements, the bulletin board that keeps them, certificates, and the encodings of all three.

pub(in crate::ceremony) mod board;
pub(in crate::ceremony) mod certificate;
pub(in crate::ceremony) mod codec;
pub(in crate::ceremony) mod statement;
