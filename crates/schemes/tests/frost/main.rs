//! FROST: what every suite must do, the RFC's numbers, and other people's implementations.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
#[macro_use]
mod fixture;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod encodings;
#[cfg(test)]
mod every_suite;
#[cfg(test)]
mod interoperation;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod rfc9591;
#[cfg(test)]
mod standard;
#[cfg(test)]
mod taproot;
