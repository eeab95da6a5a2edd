//! FROST among nodes that crash and lie: every k honest ones that hear each other get a signature.
//!
//! In the manner of ROAST (Ruffing, Ronge, Jin, Schneider-Bensch, Schroeder, ACM CCS 2022). A coordinator collects
//! commitments, opens a session with the first k signers that respond, collects their shares and sends the signature to
//! all. Whoever spoils a session is named and excluded; whoever holds one up does not keep others from the next. Every node
//! is a signer and, when its turn comes, a coordinator: the one that a request begins with follows from a hash, and nodes
//! that wait in vain turn to the next. All of that, and why no coordinator can do worse than to waste time, is in
//! `spec/frost.md` and `docs/adr/0008-robust-frost.md`.
//!
//! The coordinator that a request begins with needs one round where signers have given it commitments in advance: see
//! [`Stock`] and `docs/adr/0010-precomputed-nonces.md`. Whatever goes wrong with these, the rest of the above follows.
//!
//! Departures from ROAST: coordinators rotate instead of running all at once; the first session's shares are verified only
//! when their sum turns out false; there is one session at a time until one is held up.

mod coordinator;
mod message;
mod protocol;
mod setting;
mod signer;
mod stock;
mod suites;

use std::sync::Arc;

use bytes::Bytes;
use theta_groups::Secret;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};

use crate::AnyMachine;

pub use message::{
    COMMITMENTS, CommitmentsMessage, FrostMessage, PACKAGE, PackageMessage, REQUEST, RequestMessage, SHARE, SIGNATURE,
    ShareMessage, SignatureMessage,
};
pub use stock::{Ask, Served, Stock, Supply, Used};
pub use suites::{AnyNonces, AnyNumbered};

/// How a FROST signature is made beyond key and message.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How many pairs made in advance a coordinator keeps of each peer; with 0, nothing is made in advance and the stock is not asked.
    pub per_peer: usize,
    /// Today, or a day before, in days since 1970: nonces that are drawn are known to be of that day or later.
    pub day: u32,
    /// The seed of a re-randomised key: then the signature verifies under that, and the outcome's proof is the session's
    /// encoded commitments, for [`randomized_key`](theta_schemes::signatures::frost::randomized_key).
    pub seed: Option<Arc<Secret<Vec<u8>>>>,
}

/// The side of signing `message` of the party that holds `share`, which is one of the key `public`; `None` if that is no key of
/// FROST, or the share is one of another suite; that it is of this very key is for the caller to see to.
///
/// Commitments, sessions and announcements are random: two runs of one party have nothing in common, and no nonce is kept
/// anywhere but in memory. A run replays from its seed and its inputs, of which what the stock supplies is one.
pub(crate) fn machine(
    public: &AnyPublicKey,
    share: &AnyKeyShare,
    message: &Bytes,
    options: &Options,
) -> Option<AnyMachine> {
    suites::machine(suites::Signing { public, share, message, options })
}
