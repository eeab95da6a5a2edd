//! Key files as their users see them: they are read as they were written, and every fault is reported in one line.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
mod curves;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod rsa;
