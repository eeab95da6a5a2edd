//! Multiplication triples, and masked products, among n parties of which n - 1 may cheat: MASCOT (Keller, Orsini, Scholl, CCS 2016).
//!
//! [`Mesh`] sets up all pairs; the [`Party`] that it ends with makes batches of triples, in nine rounds each:
//!
//! | round | sent | step of the paper |
//! |---|---|---|
//! | 1 | OT extension with the bits of a | Triple: Multiply, random OTs |
//! | 2 | corrections of the products; commitment | Multiply, the d of all bits |
//! | 3 | opening of the coins r, r^ | Combine |
//! | 4 | COPEe of all shares and one mask; commitment | Authenticate: Input |
//! | 5 | opening of the coins of the inputs' check and of the sacrifice | Input, its check; Sacrifice |
//! | 6 | the random combination of the inputs, rho; commitment | Input, its check; Sacrifice |
//! | 7 | opening of the coins of the check | MACCheck, batched |
//! | 8 | commitment to the summand of the MACs' sum | MACCheck |
//! | 9 | its opening | MACCheck |
//!
//! Masked products ([`Party::masked`]) take the same rounds, with a in the place of all shares, and c in that of rho: nobody checks them here.
//!
//! A round takes a message of each other party and gives one for each. After what all must have received alike, the next message
//! begins with a hash of it. Any failure consumes the party: its MAC key and all that was set up are gone, so that nobody can go on
//! guessing. Messages are for channels that are private and authentic.

mod authenticate;
mod check;
mod coins;
mod fixed;
mod mesh;
mod multiply;
mod parties;
#[cfg(test)]
mod tests;

pub use authenticate::{Authenticating, Challenged};
pub use check::{Checking, Committed, Opened, Weighed};
pub use fixed::{Authenticated, FAST, FalseOpenings, Fixed, Fixing, Multiplied, Products, SHORT, Setting};
pub use mesh::{Asked, Grown, Keyed, Mesh, Opening, Pairs, Party, Transfers};
pub use multiply::{Combining, Extending, Multiplying};
pub use parties::{Messages, Parties};

use theta_groups::{Scalar, Secret};
use theta_names::ShareIndex;
use zeroize::Zeroize;

use crate::{Error, Misbehaviour, Misuse};

/// How many products are combined into one triple: the paper's tau. With 3, the two combinations of it that a sacrifice takes are uniform up to 2^-128 for
/// fields of 256 bits, whatever bits a cheating party has learned. So is the one of MASCOT-, where it can learn as many as it likes.
pub const TAU: usize = 3;
/// How many are combined into one masked product: there is one combination, and who learns bits of it has guessed them.
pub const TAU_OF_MASKED: usize = 2;
/// The most triples, or values whose inverses are to be had, in one batch.
pub const MOST: usize = 1024;

/// One party's part of an authenticated value x: a summand of x, and one of x Delta, where Delta is the sum of the MAC keys.
#[derive(Clone, Copy)]
pub struct Share<S> {
    /// The summand of the value.
    pub value: S,
    /// The summand of its MAC.
    pub mac: S,
}

impl<S> core::fmt::Debug for Share<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Share(..)")
    }
}

impl<S: Scalar> Zeroize for Share<S> {
    fn zeroize(&mut self) {
        self.value.zeroize();
        self.mac.zeroize();
    }
}

/// What says that the products of a batch are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// The sacrifice of a second combination of each.
    Sacrifice,
    /// What is computed of them.
    Outcome,
    /// They are opened; whoever uses them has a relation that only right ones fulfil. So many random values are made beside them.
    Relation { spare: usize },
}

impl Check {
    /// How many products are combined into one.
    const fn combined(self) -> usize {
        match self {
            Self::Sacrifice | Self::Outcome => TAU,
            Self::Relation { .. } => TAU_OF_MASKED,
        }
    }
}

/// One party's part of the authenticated a, b and c with c = a b.
pub type Triple<S> = [Share<S>; 3];
/// Those of a batch.
pub type Triples<S> = Secret<Vec<Triple<S>>>;

/// What an inverse is made of (Bar-Ilan and Beaver, PODC 1989): our share of a random a with a MAC, our summand of a random b, and what all have opened as c,
/// which is a b if nobody cheats. Nobody is held to its b, nor to c: whoever uses them checks something that is true of right ones alone.
#[derive(Clone, Copy)]
pub struct Masked<S> {
    /// Our share of a.
    pub factor: Share<S>,
    /// Our summand of b.
    pub mask: S,
    /// c, the same at all parties.
    pub product: S,
}

impl<S> core::fmt::Debug for Masked<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Masked(..)")
    }
}

impl<S: Scalar> Zeroize for Masked<S> {
    fn zeroize(&mut self) {
        self.factor.zeroize();
        self.mask.zeroize();
        self.product.zeroize();
    }
}

/// What a batch has made.
#[derive(Debug)]
pub enum Made<S: Scalar> {
    /// By [`Party::triples`] and [`Party::unchecked_triples`].
    Triples(Triples<S>),
    /// By [`Party::masked`]; and our shares of the random values that were made beside them.
    Masked(Secret<Vec<Masked<S>>>, Secret<Vec<Share<S>>>),
}

/// Why a round failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A party misbehaved towards us.
    #[error("party {party}: {misbehaviour}")]
    Party {
        /// Who.
        party: ShareIndex,
        /// What it did.
        misbehaviour: Misbehaviour,
    },
    /// A party opened its commitment to something else.
    #[error("party {0} opened its commitment falsely")]
    Commitment(ShareIndex),
    /// A party says that it received something else than we did of what all should receive alike. It lies, or somebody sent different
    /// messages to it and to us.
    #[error("party {0} did not receive what we received")]
    Disagreement(ShareIndex),
    /// The MACs do not add up to those of what was opened: somebody used different values in different places. Who, cannot be known.
    #[error("the MACs of the inputs, or of a sacrifice, fail their check")]
    Macs,
    /// Our caller made a mistake.
    #[error("misuse: {0}")]
    Ours(#[from] Misuse),
}

impl Fault {
    /// What a step with one party gives.
    fn of(party: ShareIndex) -> impl Fn(Error) -> Self {
        move |error| match error {
            Error::Theirs(misbehaviour) => Self::Party { party, misbehaviour },
            Error::Ours(misuse) => Self::Ours(misuse),
        }
    }

    fn theirs(party: ShareIndex) -> impl Fn(Misbehaviour) -> Self {
        move |misbehaviour| Self::Party { party, misbehaviour }
    }
}
