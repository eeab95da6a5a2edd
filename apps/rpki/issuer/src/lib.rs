//! An issuer for registries that run an RPKI together, none of whom has its keys. It has no key either, and decides nothing: what is to be
//! published follows from the registry's data and the members' statements, and each node signs it only if its own registry's agent finds the
//! same. `docs/guides/rpki-issuer.md` says how to run it, `spec/rpki.md` what agents demand.
//!
//! - [`hands`]: who signs.
//! - `made`: certificates, objects, lists and manifests, as agents know them.
//! - [`issue`]: what is due, and in which order it is made.
//! - [`state`]: what was asked for, so that nothing is used twice; `learn`: what is taken of it from an agent's memory; [`output`]: the folder that agents and
//!   publishers read.

pub mod hands;
pub mod issue;
mod learn;
mod made;
pub mod output;
pub mod state;

pub use self::learn::Learnt;
