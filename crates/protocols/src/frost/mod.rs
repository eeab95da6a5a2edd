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
//! [`NoncePool`] and `docs/adr/0010-precomputed-nonces.md`. Whatever goes wrong with these, the rest of the above follows.
//!
//! Departures from ROAST: coordinators rotate instead of running all at once; the first session's shares are verified only
//! when their sum turns out false; there is one session at a time until one is held up.

mod coordinator;
mod evidence;
mod message;
mod pool;
mod protocol;
mod setting;
mod signer;
mod suites;

use std::sync::Arc;

use bytes::Bytes;
use theta_groups::Secret;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey};

use crate::AnyMachine;

pub use evidence::Misbehaviour;
pub use message::{
    COMMITMENTS, CommitmentsMessage, FrostMessage, PACKAGE, PackageMessage, REQUEST, RequestMessage, SHARE, SIGNATURE,
    ShareMessage, SignatureMessage,
};
pub use pool::NoncePool;
pub use protocol::RobustFrost;

/// How a FROST signature is made beyond key and message.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where nonces made in advance are, of the same key and party in all instances, and how many pairs a coordinator keeps
    /// of each peer.
    pub nonces: Option<(NoncePool, usize)>,
    /// The seed of a re-randomised key: then the signature verifies under that, and the outcome's proof is the session's
    /// encoded commitments, for [`randomized_key`](theta_schemes::signatures::frost::randomized_key).
    pub seed: Option<Arc<Secret<Vec<u8>>>>,
}

/// The side of signing `message` of the party that holds `share`, which is one of the key `public`; `None` if that is no key of
/// FROST, or the share is another key's.
///
/// Commitments, sessions and announcements are random: two runs of one party have nothing in common, and no nonce is kept
/// anywhere but in memory. A run replays from its seed, its inputs and what the pool answered.
pub(crate) fn machine(
    public: &AnyPublicKey,
    share: &AnyKeyShare,
    message: Bytes,
    Options { nonces, seed }: Options,
) -> Option<AnyMachine> {
    let given = nonces.and_then(|(pool, per_peer)| Some((pool.into_any()?, per_peer)));
    let (pool, per_peer) = match given {
        Some((pool, per_peer)) if pool.suite() == public.suite() => (pool, per_peer),
        _ => (suites::new_pool(public.suite())?, 0),
    };
    pool.machine(suites::Signing { public, share, message, seed, per_peer })
}
