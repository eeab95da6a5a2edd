//! Ceremonies of whole groups over a seeded network: honest ones, liars, loss, and parties that die at every step.

mod honest;
mod lies;
mod malicious_owner;
mod mobile;
mod named;
mod net;
mod recovery;
mod recovery_resume;
mod resume;
mod schemes;
mod support;
