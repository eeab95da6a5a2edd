//! An agent for operators who sign a zone together, none of whom has its keys: each operator's node signs a record set only if it is in the
//! operator's own copy of the zone. `docs/guides/dnssec.md` says how to run it, `spec/policy.md` (Agents) how nodes ask it.
//!
//! - [`owner`]: names, and their canonical order.
//! - [`signed`]: what a signature of a record set covers, as the name server sends it to be signed (RFC 4034, section 3.1.8.1).
//! - [`zone`]: the operator's copy; [`transfer`]: how it comes from a name server; [`sources`]: when it changes.
//! - [`denial`]: how the zone denies names, which a signer adds.
//! - [`keys`]: the keys that may be in the zone.
//! - [`key_request`]: what a key that is kept offline is asked to sign.
//! - [`ttl`]: the times to live of what a signer adds.
//! - [`consent`]: whether the two agree; `previous`: copies that were in force just before, by which it may decide for a while.
//! - [`digests`]: which record set a digest is of, for algorithms whose signers send digests.
//! - [`agent`]: asks by nodes, over a socket; [`look_ahead`]: asks by the PKCS#11 module of a name server, over another one.

pub mod agent;
pub mod consent;
pub mod denial;
pub mod digests;
pub mod key_request;
pub mod keys;
pub mod look_ahead;
pub mod owner;
mod previous;
pub mod signed;
pub mod sources;
pub mod transfer;
pub mod ttl;
pub mod zone;
