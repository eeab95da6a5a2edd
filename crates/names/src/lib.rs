//! The words that all floors share, each once: who a node is, which share it holds, what keys are called and what may be done
//! with them, and the one way in which such words are written as bytes.
//!
//! Two numbers of one party are two types, [`NodeId`] and [`ShareIndex`], and nothing makes one of the other but a key's
//! [`Holders`]. Nothing here knows what a share is made of.

mod address;
mod channel;
pub mod codec;
mod epoch;
mod holders;
mod key;
mod label;
mod node_name;
mod number;
mod operation;
mod rule;
mod version;

pub use address::{Address, AddressError};
pub use channel::Channel;
pub use epoch::Epoch;
pub use holders::{Holders, HoldersError};
pub use key::{KeyName, KeyNameError, KeyRef, KeyRefError, KeyState, Purpose, SuiteName, SuiteNameError};
pub use label::{Label, LabelError, MOST_LABEL};
pub use node_name::{NodeName, NodeNameError};
pub use number::{NodeId, ShareIndex, ZeroError};
pub use operation::{Operation, OperationError};
pub use rule::{RuleName, RuleNameError, SlotOrder};
pub use version::{Version, VersionError};

/// The context, in BLAKE3's key derivation mode, of the hashes that chain an audit log (`spec/policy.md`). There is one chain: the
/// store makes it, and whoever reads a log checks it.
pub const AUDIT_CHAIN: &str = "theta store audit chain v1";

/// How far beyond its own a store takes the generation of a change: those of a node that was away long may be this far behind.
/// Whoever lies about a generation makes the next ones this much higher at most, and 2^64 has room for 2^44 such lies.
pub const MOST_GENERATIONS_AHEAD: u64 = 1 << 20;
