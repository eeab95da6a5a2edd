//! The trusted dealer.

use core::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group, Scalar, Secret};
use theta_sharing::{Encoded, Threshold, split};

use super::{CurveScheme, KeyShare, PublicKeySet};

/// A key fresh from the dealer.
#[derive(Debug)]
pub struct Dealt<G: Group> {
    /// One copy, whatever n.
    pub public: Arc<PublicKeySet<G>>,
    /// The shares of parties 1 to n, in order.
    pub shares: Vec<KeyShare<G>>,
}

/// Why a secret cannot be dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DealError {
    /// Zero is nobody's secret.
    #[error("the secret is zero, which protects nothing: give a secret between 1 and the group's order")]
    ZeroSecret,
    /// The bytes to import are not a scalar.
    #[error("not a secret key of this group: {0}")]
    Secret(DecodeError),
    /// The primes of RSA keys made elsewhere are not safe primes.
    #[error("an RSA key made elsewhere cannot be shared, since it takes safe primes: deal a new key")]
    RsaImport,
}

/// Shares a new random secret among n parties so that any k can use it. Memory and time are linear in n.
pub fn deal<S: CurveScheme>(threshold: Threshold, rng: &mut (impl CryptoRng + ?Sized)) -> Dealt<S::KeyGroup> {
    loop {
        // Zero has probability 2^-252; another draw is all it takes.
        if let Ok(dealt) = deal_secret::<S>(threshold, &Secret::new(Scalar::random(rng)), rng) {
            return dealt;
        }
    }
}

/// Shares a given secret.
///
/// # Errors
/// [`DealError::ZeroSecret`].
pub fn deal_secret<S: CurveScheme>(
    threshold: Threshold,
    secret: &Secret<<S::KeyGroup as Group>::Scalar>,
    rng: &mut (impl CryptoRng + ?Sized),
) -> Result<Dealt<S::KeyGroup>, DealError> {
    let public_key = S::KeyGroup::mul_base(secret.expose());
    if S::KeyGroup::is_identity(&public_key) {
        return Err(DealError::ZeroSecret);
    }
    let possession = S::prove_possession(secret, &public_key);
    let public_key = Encoded::new(public_key);
    loop {
        let secrets = split(secret, threshold, rng);
        let verification_keys = verification_keys::<S::KeyGroup>(&secrets);
        // Refused if the polynomial has a root at one of the indices, which has probability n / q.
        let Ok(public) = PublicKeySet::assemble::<S>(threshold, public_key, verification_keys, possession.clone())
        else {
            continue;
        };
        let key_id = *public.key_id();
        let shares =
            threshold.indices().zip(secrets).map(|(index, share)| KeyShare::new(key_id, index, share)).collect();
        return Ok(Dealt { public: Arc::new(public), shares });
    }
}

/// g * x_i for all shares, on as many threads as the machine has where there are enough of them to pay.
fn verification_keys<G: Group>(secrets: &[Secret<G::Scalar>]) -> Vec<Encoded<G>> {
    /// What takes longer than starting a thread.
    const SHARES_PER_THREAD: usize = 128;
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(secrets.len() / SHARES_PER_THREAD);
    let of_some = |secrets: &[Secret<G::Scalar>]| {
        let elements: Vec<_> = secrets.iter().map(|share| G::mul_base(share.expose())).collect();
        Encoded::<G>::batch(&elements)
    };
    if threads < 2 {
        return of_some(secrets);
    }
    thread::scope(|scope| {
        let workers: Vec<_> = secrets
            .chunks(secrets.len().div_ceil(threads))
            .map(|chunk| (chunk, scope.spawn(move || of_some(chunk))))
            .collect();
        // A thread that could not do its part leaves it to this one.
        workers.into_iter().flat_map(|(chunk, worker)| worker.join().unwrap_or_else(|_| of_some(chunk))).collect()
    })
}
