//! Signed statements, the bulletin board that keeps them, certificates, and the encodings of all three.

pub(crate) mod board;
pub(crate) mod certificate;
pub(crate) mod codec;
pub(crate) mod statement;
