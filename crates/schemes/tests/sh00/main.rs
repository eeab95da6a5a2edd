//! Threshold RSA signatures and the coin made of them.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
mod fixture;
