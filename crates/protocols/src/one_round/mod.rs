//! The protocol of all one-round schemes: each party sends its share to all, any k true shares make the result.
//!
//! The honest case is the fast one. Where a result can be checked by itself, k shares are combined as they come and
//! none of them is verified; only after a false result are the shares verified, all in one batch, to name those who
//! lied. Where a result cannot be checked, shares are verified in batches as soon as k are there. In both cases a false
//! share excludes its sender from the instance and costs the others a little time; k honest parties always get their
//! result.
//!
//! Some schemes have shares without proofs. Then parties send those in the first round, and only parties that got a
//! false result do a second: they ask all for the proofs, and each party answers each questioner once, also after it
//! has finished. See `docs/adr/0009-proofs-on-demand.md`. Parties that do not answer are left out.
//!
//! With [`Delivery::Quorum`](theta_schemes::Delivery::Quorum) the request draws who makes shares and who combines; the others stand by until a tick finds
//! them without a result. See `spec/quorum.md` and `docs/adr/0034-quorum-mode.md`.
//!
//! Sources: Shoup and Gennaro, "Securing threshold cryptosystems against chosen ciphertext attack" (2002), section 2,
//! for the structure. Combining before verifying is a departure, which is sound because results or shares are checked
//! as described above.

mod checking;
mod duty;
mod gathering;
mod hearing;
mod message;
mod proofs;
mod protocol;
mod setting;

pub use message::{COMBINED, PROOF_REQUEST, PROVEN_SHARE, SHARE, ShareMessage};
pub use protocol::OneRound;
