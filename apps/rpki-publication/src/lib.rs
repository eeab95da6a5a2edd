//! The publication of an RPKI repository: what an issuer leaves in a folder goes out over RRDP (RFC 8182) and as a tree for rsync, each
//! replaced in one step, so that no reader sees half of a change. `docs/guides/rpki-publication.md` says how to run it.
//!
//! - [`objects`]: the objects of a repository, by their rsync URIs.
//! - [`check`]: whether they fit together; nothing else is published.
//! - [`due`]: when manifests and CRLs have to be renewed.
//! - [`publication`]: one run, from the folder to what readers get.
//! - [`disk`]: the steps of a run that change files.

pub mod check;
pub mod disk;
pub mod due;
pub mod objects;
pub mod publication;
mod retired;
mod rrdp;
mod tree;
