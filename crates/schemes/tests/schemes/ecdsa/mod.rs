//! Keys of ECDSA and the verification of their signatures, in whose making no party is needed here: whoever deals a key signs alone.

mod fixture;
mod known_answers;
mod standard;
mod verification;
