//! The protocols on real keys, in whole groups over the simulated network.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
mod ecdsa;
#[cfg(test)]
mod frost;
#[cfg(test)]
mod lies;
#[cfg(test)]
mod one_round;
mod supplied;
