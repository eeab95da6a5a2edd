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

use core::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use theta_groups::Secret;
use theta_rounds::PartyId;
use theta_schemes::keys::{KeyShare, PublicKeySet};
use theta_schemes::signatures::frost::{Frost, FrostSuite};

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

/// Party `local`'s side of signing `message`. `key` is that party's share of the key `public`.
///
/// Commitments, sessions and announcements are random: two runs of one party have nothing in common, and no nonce is kept
/// anywhere but in memory. A run replays from its seed, its inputs and what the pool answered.
#[must_use]
pub fn protocol<C: FrostSuite>(
    _scheme: PhantomData<Frost<C>>,
    local: PartyId,
    public: Arc<PublicKeySet<C::Group>>,
    key: Arc<KeyShare<C::Group>>,
    message: Bytes,
    options: Options,
) -> RobustFrost<C> {
    let Options { nonces, seed } = options;
    let reserve =
        pool::Reserve::new(nonces.as_ref().map(|(pool, _)| pool), nonces.as_ref().map_or(0, |(_, most)| *most));
    RobustFrost::new(setting::Setting::new(local, (public, key), message, seed, reserve))
}
