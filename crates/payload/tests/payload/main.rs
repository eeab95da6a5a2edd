//! Whole ciphertexts as their users see them.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
mod ciphertexts;
#[cfg(test)]
mod fixture;
