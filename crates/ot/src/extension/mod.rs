//! OT extension with active security: SoftSpokenOT (Roy, CRYPTO 2022) over fields of 2^k elements, k from 1 to 8.
//!
//! Set up once, from 128 base OTs in which the extension's sender chooses with the bits of its correlation Delta. The receiver has
//! all seeds of a forest (`src/forest`), the sender all but one of each tree. A batch of transfers is then one message: with the
//! vector x of the receiver's choices, both sides compute rows such that q = t + x Delta for each transfer, where q and t are blocks of
//! 128 bits and Delta is added where x is 1. A hash of q, of q + Delta, and of t gives the pads.
//!
//! For k = 1 this is the extension of Ishai et al. 2003. A larger k divides the bytes by k, for 2^k / k times the work.

mod check;
mod receiver;
mod rows;
mod sender;
#[cfg(test)]
mod tests;
mod transfers;
mod transpose;

pub use receiver::Receiver;
pub use sender::{Sender, Setup};
pub use transfers::{ReceivedTransfers, SentTransfers};

use theta_groups::{Group, Transcript};

use crate::forest::Shape;
use crate::{Misuse, Session, base};

/// How many base OTs a set-up takes: the bits of Delta.
pub const BASE: usize = 128;
/// The most transfers in one batch.
pub const MOST: usize = 1 << 20;
/// The most transfers of one set-up. What an attacker learns of Delta by 2^64 evaluations of AES stays below 2^-32.
pub const MOST_OF_A_SETUP: u64 = 1 << 32;

/// How many runs a set-up can be of use to, besides itself.
pub const MOST_RUNS: u32 = 1 << 10;
/// The most transfers of one of them.
pub const MOST_OF_A_RUN: u64 = MOST_OF_A_SETUP / MOST_RUNS as u64;

/// The receiver's part of the set-up: the answer of the base OTs, and the opening of the forest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown(pub Vec<u8>);

/// A batch of transfers: a row of corrections for each tree, and the values of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension(pub Vec<u8>);

impl AsRef<[u8]> for Extension {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Grown {
    /// Its length in bytes.
    ///
    /// # Errors
    /// [`Misuse::FieldSize`].
    pub fn length<G: Group>(k: u8) -> Result<usize, Misuse> {
        Ok(base::Answer::length::<G>(BASE) + Shape::new(BASE, k)?.opening_len())
    }
}

impl Extension {
    /// Its length in bytes for a number of transfers.
    ///
    /// # Errors
    /// [`Misuse::FieldSize`].
    pub fn length(k: u8, transfers: usize) -> Result<usize, Misuse> {
        Ok(length(Shape::new(BASE, k)?, transfers))
    }
}

fn length(shape: Shape, transfers: usize) -> usize {
    16 * (shape.trees().len() * blocks(transfers) + 1 + BASE)
}

/// Blocks of a row: one for each 128 transfers, and one of random bits that hides the others in the check.
const fn blocks(transfers: usize) -> usize {
    transfers.div_ceil(128) + 1
}

const fn expect_count(transfers: usize) -> Result<(), Misuse> {
    if transfers == 0 || transfers > MOST { Err(Misuse::Count { got: transfers, most: MOST }) } else { Ok(()) }
}

/// The number of the first transfer of the next batch.
fn advance(made: u64, transfers: usize, most: u64) -> Result<u64, Misuse> {
    let next = made.saturating_add(transfers as u64);
    if next > most { Err(Misuse::UsedUp) } else { Ok(next) }
}

/// What names a run of a set-up, as `tag` names the set-up.
fn tag_of_run(tag: &[u8; 32], run: &[u8; 32]) -> [u8; 32] {
    Transcript::new("theta/ot/extension/run/v1").with("set-up", tag).with("run", run).finish32()
}

/// What names a set-up in all later hashes.
fn tag<G: Group>(session: &Session, shape: Shape, ask: &base::Ask, grown: &Grown) -> [u8; 32] {
    session
        .transcript("theta/ot/extension/v1")
        .with("group", G::NAME.as_bytes())
        .with("trees", &(shape.trees().len() as u64).to_be_bytes())
        .with("ask", &ask.0)
        .with("grown", &grown.0)
        .finish32()
}
