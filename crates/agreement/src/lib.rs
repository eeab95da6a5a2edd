//! Deciding one value for all members of a group, whatever some of them say.
//!
//! - [`Agreement`]: one member's side of one decision (Tendermint's rules), a pure machine. What the value is about is for a
//!   [`Judge`] to know.
//! - [`Electorate`]: who decides, how many make a quorum, and how their votes are signed.
//! - [`VoteCertificate`]: a quorum of votes on one value, which convinces anybody who knows the electorate.
//! - [`Member`] and [`MemberKeys`]: the identities under which nodes sign.
//!
//! Ceremonies decide with it which dealings count, and the ledger which entry comes next. See `spec/ceremonies.md`, Agreement.

mod agreement;
mod certificate;
mod codec;
mod electorate;
mod identity;
mod tally;
mod vote;

pub use agreement::{Agreement, Judge, Verdict};
pub use certificate::VoteCertificate;
pub use codec::{read_entries, read_party, write_entries};
pub use electorate::{Electorate, quorum};
pub use identity::schnorr::{self, Message, SIGNATURE_LEN, Signature};
pub use identity::{Member, MemberKeys};
pub use vote::{Ballot, VoteKind, check};

/// 32 bytes that stand for something longer.
pub type Digest = [u8; 32];
