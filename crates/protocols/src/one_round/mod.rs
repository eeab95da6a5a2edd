//! The protocol of all one-round schemes: each party sends its share to all, any k true shares make the result.
//!
//! The honest case is the fast one. Where a result can be checked by itself, k shares are combined as they come and
//! none of them is verified; only a false result makes the party look at the shares, all in one batch, to name those who
//! lied. Where it cannot, shares are verified in batches as soon as k are there. Either way a false share costs its
//! sender the instance and the others a little time: k honest parties always get their result.
//!
//! A scheme may have shares without proofs. Then those are what parties send in the first round, and there is a second only for those who got a
//! false result: they ask all for the proofs, and all answer each that asks, once, those that have finished, too:
//! `docs/adr/0009-proofs-on-demand.md`. Who does not answer is left out.
//!
//! Sources: Shoup and Gennaro, "Securing threshold cryptosystems against chosen ciphertext attack" (2002), section 2,
//! for the shape; the optimistic order is a departure that the schemes' checks make sound.

mod message;
mod proofs;
mod protocol;

pub use message::{PROOF_REQUEST, PROVEN_SHARE, SHARE, ShareMessage};
pub use protocol::OneRound;
