//! Two parties.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use theta_groups::{Ristretto255, Scalar};
use theta_names::ShareIndex;
use theta_ot::{Session, extension};

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn session(id: u8) -> Session {
    Session::new([id; 32], ShareIndex::try_from(1).unwrap(), ShareIndex::try_from(2).unwrap()).unwrap()
}

pub(crate) fn set_up(k: u8, rng: &mut ChaCha20Rng) -> (extension::Sender, extension::Receiver) {
    let (sender, ask) = extension::Setup::<Ristretto255>::new(session(1), k, rng).unwrap();
    let (receiver, grown) = extension::Receiver::new::<Ristretto255>(session(1), k, &ask, rng).unwrap();
    assert_eq!(grown.0.len(), extension::Grown::length::<Ristretto255>(k).unwrap());
    (sender.finish(&grown).unwrap(), receiver)
}

pub(crate) fn scalars<S: Scalar>(n: usize, rng: &mut ChaCha20Rng) -> Vec<S> {
    (0..n).map(|_| S::random(rng)).collect()
}
