//! What parties of multi-party computation send each other, with one party that sends what the input says.

pub mod programs;
pub mod script;
pub mod transfers;
mod triples;
