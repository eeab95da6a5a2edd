//! Signed statements, the bulletin board that keeps them, certificates, and the encodings of all three.

pub(crate) mod bulletin_board;
pub(crate) mod certificate;
pub(crate) mod codec;
pub(crate) mod statement;
