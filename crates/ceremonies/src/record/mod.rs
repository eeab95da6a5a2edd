//! Signed statements, the bulletin board that keeps them, certificates, what parties tell of what they have, and the encodings of
//! all four.

pub(crate) mod bulletin_board;
pub(crate) mod certificate;
pub(crate) mod codec;
pub(crate) mod statement;
pub(crate) mod summary;
