//! The types that all crates share: numbers of nodes and shares, names of keys, versions and suites, operations, states, and the
//! canonical encoding of such values.
//!
//! The two numbers of a party have two types, [`NodeId`] and [`ShareIndex`]; only a key's [`Holders`] convert one to the other.
//! Nothing here knows what a share is made of.

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
mod time;
mod version;

pub use address::{Address, AddressError};
pub use channel::Channel;
pub use epoch::Epoch;
pub use holders::{Holders, HoldersError};
pub use key::{
    Delivery, DeliveryError, KeyName, KeyNameError, KeyRef, KeyRefError, KeyState, Purpose, SuiteName, SuiteNameError,
};
pub use label::{Label, LabelError, MOST_LABEL};
pub use node_name::{NodeName, NodeNameError};
pub use number::{NodeId, ShareIndex, ZeroError};
pub use operation::{Operation, OperationError};
pub use rule::{RuleName, RuleNameError, SlotDecision, SlotOrder};
pub use time::{FileStamp, Seldom, WallTime};
pub use version::{Version, VersionError};

/// The context, in BLAKE3's key derivation mode, of the hashes that chain an audit log (`spec/policy.md`). The store makes the
/// chain, and `theta-statements` checks it.
pub const AUDIT_CHAIN: &str = "theta store audit chain v1";

/// How far above its own a store accepts the generation of a change: a node that was away may be this far behind. A false
/// generation raises the next ones by this much at most, and 2^64 has room for 2^44 false ones.
pub const MOST_GENERATIONS_AHEAD: u64 = 1 << 20;
