//! The schemes as their users see them, and against other implementations.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
mod bare;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod ecdsa;
#[cfg(test)]
mod frost;
#[cfg(test)]
mod independent;
#[cfg(test)]
mod proofs;
#[cfg(test)]
mod sh00;
#[cfg(test)]
mod suites;
