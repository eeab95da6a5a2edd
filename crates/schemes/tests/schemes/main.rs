//! The schemes as their users see them.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
#[macro_use]
mod fixture;

#[cfg(test)]
mod accomplice;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod every_suite;
#[cfg(test)]
mod key_files;
#[cfg(test)]
mod known_answers;
#[cfg(test)]
mod payload;
#[cfg(test)]
mod random_bytes;
#[cfg(test)]
mod standard_bls;
