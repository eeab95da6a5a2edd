//! Robust FROST on real keys of every suite, in whole groups.

mod honest;
mod misbehaviour;
mod precomputed;
mod randomized;
mod seeds;
mod support;
