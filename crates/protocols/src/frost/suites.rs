//! FROST in every suite: what is generic over the suite is instantiated here, once for each, and nowhere above.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use theta_groups::Secret;
use theta_rounds::{Driver, PartyId};
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, KeyGroup};
use theta_schemes::signatures::frost::{
    Ed448Shake256, Ed25519Sha512, FrostSuite, P256Sha256, Ristretto255Sha512, Secp256k1Sha256, Secp256k1Taproot,
};

use super::pool::{Pool, Reserve};
use super::protocol::RobustFrost;
use super::setting::Setting;
use crate::AnyMachine;
use crate::start::parties;

/// What makes an empty pool of a suite.
type NewPool = fn() -> Arc<dyn AnyPool>;

/// The suites.
const SUITES: [(Suite, NewPool); 6] = [
    row::<Ristretto255Sha512>(),
    row::<Ed25519Sha512>(),
    row::<Ed448Shake256>(),
    row::<P256Sha256>(),
    row::<Secp256k1Sha256>(),
    row::<Secp256k1Taproot>(),
];

const fn row<C: FrostSuite>() -> (Suite, NewPool) {
    (C::SUITE, || Arc::new(Pool::<C>(Mutex::default())))
}

/// An empty pool for keys of a suite; `None` if it is not one of FROST.
pub(super) fn new_pool(suite: Suite) -> Option<Arc<dyn AnyPool>> {
    SUITES.iter().find(|(known, _)| *known == suite).map(|(_, new)| new())
}

/// What is to be signed, and by whom.
pub(super) struct Signing<'a> {
    pub(super) public: &'a AnyPublicKey,
    pub(super) share: &'a AnyKeyShare,
    pub(super) message: Bytes,
    /// The seed of a re-randomised key.
    pub(super) seed: Option<Arc<Secret<Vec<u8>>>>,
    /// How many pairs a coordinator keeps of each peer; with 0, none of the pool are used.
    pub(super) per_peer: usize,
}

/// A key's pool, whatever the suite: machines of its suite are begun with it.
pub(super) trait AnyPool: Send + Sync {
    /// Which.
    fn suite(&self) -> Suite;
    /// The machine that signs; `None` for keys of other suites.
    fn machine(self: Arc<Self>, signing: Signing<'_>) -> Option<AnyMachine>;
}

impl<C: FrostSuite> AnyPool for Pool<C> {
    fn suite(&self) -> Suite {
        C::SUITE
    }

    fn machine(self: Arc<Self>, signing: Signing<'_>) -> Option<AnyMachine> {
        let Signing { public, share, message, seed, per_peer } = signing;
        let public = Arc::clone(C::Group::key_of(public.typed())?);
        let key = Arc::clone(C::Group::share_of(share.typed())?);
        let (local, threshold) = (PartyId::of_share(key.index()), public.threshold());
        let reserve = Reserve::new(self, per_peer);
        let protocol = RobustFrost::<C>::new(Setting::new(local, (public, key), message, seed, reserve));
        Some(Box::new(Driver::new(local, parties(threshold), protocol)))
    }
}
