//! Ceremonies of whole groups over a seeded network: honest ones, liars, loss, and parties that are killed at every
//! step.
// `cfg(test)` is always true here; it tells clippy that these are tests, helpers included.

#[cfg(test)]
mod ahead;
#[cfg(test)]
mod honest;
#[cfg(test)]
mod lies;
#[cfg(test)]
mod malicious_owner;
#[cfg(test)]
mod mobile;
#[cfg(test)]
mod net;
#[cfg(test)]
mod recovery;
#[cfg(test)]
mod recovery_resume;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod schemes;
#[cfg(test)]
mod support;
