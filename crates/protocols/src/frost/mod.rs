//! FROST among nodes that crash and lie: any k honest nodes that hear each other get a signature.
//!
//! This follows ROAST (Ruffing, Ronge, Jin, Schneider-Bensch, Schröder, ACM CCS 2022). A coordinator collects
//! commitments, opens a session with the first k signers that respond, collects their shares and sends the signature to
//! all. A signer that spoils a session is named and excluded; a signer that holds one up does not keep others from the
//! next. Every node is a signer and, when its turn comes, a coordinator: a hash of the request selects the first
//! coordinator, and nodes that wait in vain go on to the next. `spec/frost.md` and `docs/adr/0008-robust-frost.md` have
//! the details, and say why a malicious coordinator can only waste time.
//!
//! The first coordinator needs one round only where signers have given it commitments in advance: see [`Stock`](crate::Stock) and
//! `docs/adr/0010-precomputed-nonces.md`. If these fail in any way, the protocol above follows.
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
pub(crate) use stock::Shelves;
pub use stock::{Ask, Supply, Used};
pub use suites::{AnyNonces, AnyNumbered};

/// Options of a FROST signature, besides key and message.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The most pairs made in advance that a coordinator keeps of each peer; with 0, nothing is made in advance and the
    /// stock is not asked.
    pub per_peer: usize,
    /// Today, or an earlier day, in days since 1970. Nonces that this signature draws count as drawn on this day.
    pub day: u32,
    /// The seed of a re-randomised key: the signature verifies under that key, and the outcome's proof is the session's
    /// encoded commitments, for [`randomized_key`](theta_schemes::signatures::frost::randomized_key).
    pub seed: Option<Arc<Secret<Vec<u8>>>>,
}

/// The machine of the party that holds `share`, to sign `message` under `public`. `None` if `public` is no FROST key or
/// the share is one of another suite. The caller makes sure that the share belongs to this very key.
///
/// Commitments, sessions and announcements are random: two runs of one party have nothing in common, and nonces are
/// kept in memory only. A run replays from its seed and its inputs; what the stock supplies is an input.
pub(crate) fn machine(
    public: &AnyPublicKey,
    share: &AnyKeyShare,
    message: &Bytes,
    options: &Options,
) -> Option<AnyMachine> {
    suites::machine(suites::Signing { public, share, message, options })
}
