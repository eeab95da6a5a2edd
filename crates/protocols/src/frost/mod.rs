//! FROST among nodes that crash and lie: every k honest ones that hear each other get a signature.
//!
//! In the manner of ROAST (Ruffing, Ronge, Jin, Schneider-Bensch, Schroeder, ACM CCS 2022). A coordinator collects
//! commitments, opens a session with the first k signers that respond, collects their shares and sends the signature to
//! all. Whoever spoils a session is named and excluded; whoever holds one up does not keep others from the next. Every node
//! is a signer and, when its turn comes, a coordinator: the one that a request begins with follows from a hash, and nodes
//! that wait in vain turn to the next. All of that, and why no coordinator can do worse than to waste time, is in
//! `spec/frost.md` and `docs/adr/0008-robust-frost.md`.
//!
//! Departures from ROAST: coordinators rotate instead of running all at once; the first session's shares are verified only
//! when their sum turns out false; there is one session at a time until one is held up.

mod coordinator;
mod evidence;
mod message;
mod protocol;
mod setting;
mod signer;

use core::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use theta_rounds::PartyId;
use theta_schemes::keys::{KeyShare, PublicKeySet};
use theta_schemes::signatures::frost::{Frost, FrostSuite};
use theta_sharing::Threshold;

pub use evidence::Misbehaviour;
pub use message::{
    COMMITMENTS, CommitmentsMessage, FrostMessage, PACKAGE, PackageMessage, SHARE, SIGNATURE, ShareMessage,
    SignatureMessage,
};
pub use protocol::RobustFrost;

/// Party `local`'s side of signing `message`. `key` is that party's share of the key `public`, which takes `threshold`.
///
/// Commitments, sessions and announcements are random: two runs of one party have nothing in common, and no nonce is kept
/// anywhere but in memory.
#[must_use]
pub fn protocol<C: FrostSuite>(
    _scheme: PhantomData<Frost<C>>,
    local: PartyId,
    threshold: Threshold,
    public: Arc<PublicKeySet<C::Group>>,
    key: Arc<KeyShare<C::Group>>,
    message: Bytes,
) -> RobustFrost<C> {
    RobustFrost::new(setting::Setting::new(local, threshold, public, key, message))
}
