//! Key files as their users see them: what they say comes back, and what is wrong with them is said in a line.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
mod curves;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod rsa;
