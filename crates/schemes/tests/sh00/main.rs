//! Threshold RSA signatures and the coin made of them.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod dealing;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod key_files;
#[cfg(test)]
mod known_answers;
#[cfg(test)]
mod shares;
#[cfg(test)]
mod standard;
