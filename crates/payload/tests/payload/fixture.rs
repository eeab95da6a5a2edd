//! Keys from seeds, and the answers of their holders.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use theta_payload::{PayloadKey, split_ciphertext};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, deal_any};
use theta_schemes::{Statement, Suite};
use theta_sharing::Threshold;

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn key(suite: Suite, k: u16, n: u16, seed: u64) -> (AnyPublicKey, Vec<AnyKeyShare>) {
    deal_any(suite, Threshold::new(k, n).unwrap(), &mut rng(seed))
}

/// The payload key that all parties together recover from a ciphertext's header.
pub(crate) fn decapsulate(public: &AnyPublicKey, keys: &[AnyKeyShare], ciphertext: &[u8]) -> PayloadKey {
    let (header, _) = split_ciphertext(ciphertext).unwrap();
    let statement = Statement::Decapsulate(header);
    let share = |key: &AnyKeyShare| (key.index(), public.create_share(key, statement, &mut rng(99)).unwrap());
    let shares: Vec<_> = keys.iter().map(share).collect();
    let shares: Vec<_> = shares.iter().map(|(index, share)| (*index, &share[..])).collect();
    let combined = public.combine(statement, &shares, &mut rng(3)).unwrap();
    PayloadKey::from_bytes(combined.result.expose()).unwrap()
}
