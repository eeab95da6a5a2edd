//! An agent for registries that run an RPKI together, none of whom has its keys: each registry's node signs a certificate, a list of revoked
//! certificates, a manifest, a ROA or an ASPA only if it follows from the registry's own data and from what members have signed.
//! `docs/guides/rpki-agents.md` says how to run it, `spec/rpki.md` what is checked, `spec/policy.md` (Agents) how nodes ask it.
//!
//! - [`attestation`]: what members state: ROAs and ASPAs, with their one encoding.
//! - [`registry`]: members, authorities and operators; [`signatures`]: m of n keys of theirs.
//! - [`statements`]: what members have signed, or operators in their places, and what is authorised by it.
//! - [`objects`]: what may be signed, read from the bytes that a signature covers.
//! - [`consent`]: whether it follows; [`memory`]: what was agreed to before; [`kept`]: the memory's file.
//! - [`store`]: where contents are found that are signed by their digest; `gathered`: what of them a decision needs; [`sources`]: files, and when they change; `files`: which are read.
//! - [`overrides`]: what operators permit though an agent refuses it; in it `shown`: the overrides that all registries see.
//! - [`agent`]: asks by nodes, over a socket; in it `places`: how many at once, of each client.

pub mod agent;
pub mod attestation;
pub mod consent;
mod files;
mod gathered;
pub mod kept;
pub mod memory;
pub mod objects;
pub mod overrides;
pub mod registry;
pub mod signatures;
pub mod sources;
pub mod statements;
pub mod store;
pub mod verified;
