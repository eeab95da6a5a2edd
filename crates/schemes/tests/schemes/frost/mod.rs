//! FROST: the requirements of every suite, the RFC's vectors, and other implementations.

#[macro_use]
mod fixture;

mod attacks;
mod encodings;
mod every_suite;
mod interoperation;
mod peers;
mod rfc9591;
mod standard;
mod taproot;
