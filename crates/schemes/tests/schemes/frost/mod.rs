//! FROST: what every suite must do, the RFC's numbers, and other people's implementations.

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
