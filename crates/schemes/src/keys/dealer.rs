//! The trusted dealer.

use core::iter;
use core::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rand_core::CryptoRng;
use theta_groups::{DecodeError, Group, Scalar, Secret};
use theta_sharing::{Encoded, Threshold, split_lazily};

use super::{CurveScheme, KeyShare, PublicKeySet};

/// A key fresh from the dealer.
#[derive(Debug)]
pub struct Dealt<G: Group> {
    /// The public material; all parties share one copy.
    pub public: Arc<PublicKeySet<G>>,
    /// The shares of parties 1 to n, in order.
    pub shares: Vec<KeyShare<G>>,
}

/// Why a secret cannot be dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DealError {
    /// The secret is zero.
    #[error("the secret is zero, which protects nothing: give a secret between 1 and the group's order")]
    ZeroSecret,
    /// The bytes to import are not a scalar.
    #[error("not a secret key of this group: {0}")]
    Secret(DecodeError),
    /// RSA keys are not imported as bare bytes, because their primes are needed.
    #[error(
        "an RSA key is not imported as bare bytes: give a key file whose primes are safe primes, or deal a new key"
    )]
    RsaImport,
}

/// Shares a new random secret among n parties so that any k can use it. Memory and time are linear in n.
pub fn deal<S: CurveScheme>(threshold: Threshold, rng: &mut (impl CryptoRng + ?Sized)) -> Dealt<S::KeyGroup> {
    loop {
        // Zero has negligible probability, below 2^-250; then another secret is drawn.
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
    let proof_of_possession = S::prove_possession(secret, &public_key);
    let public_key = Encoded::new(public_key);
    loop {
        let secrets = split_lazily(secret, threshold, rng);
        let (secrets, verification_keys) = with_verification_keys::<S::KeyGroup>(secrets, threshold.n());
        // The keys are refused if the polynomial has a root at one of the indices, which has probability n / q.
        let Ok(public) =
            PublicKeySet::assemble::<S>(threshold, public_key, verification_keys, proof_of_possession.clone())
        else {
            continue;
        };
        let key_id = *public.key_id();
        let share = |(index, share): (_, &_)| KeyShare::new(key_id, index, Secret::new(*share));
        let shares = threshold.indices().zip(secrets.expose()).map(share).collect();
        return Ok(Dealt { public: Arc::new(public), shares });
    }
}

/// Some of the shares, the place of the first, and g * x_i for each. The shares of a part are in one secret, which is wiped as a
/// whole; scalars moved out of a vector would leave copies.
struct Part<G: Group> {
    place: usize,
    secrets: Secret<Vec<G::Scalar>>,
    keys: Vec<Encoded<G>>,
}

impl<G: Group> Part<G> {
    fn new(place: usize, secrets: Secret<Vec<G::Scalar>>) -> Self {
        let elements = G::mul_base_batch(secrets.expose());
        Self { place, secrets, keys: Encoded::<G>::batch(&elements) }
    }
}

/// The n shares and g * x_i for all of them. If there are many, other threads multiply while this one computes shares.
fn with_verification_keys<G: Group>(
    mut secrets: impl Iterator<Item = Secret<G::Scalar>>,
    n: u16,
) -> (Secret<Vec<G::Scalar>>, Vec<Encoded<G>>) {
    /// So many multiplications take longer than starting a thread.
    const SHARES_PER_THREAD: usize = 128;
    /// How many shares a thread takes at a time; encoding so many elements costs little more than encoding one.
    const AT_ONCE: usize = 64;
    let n = usize::from(n);
    // Sized beforehand: a vector that grows leaves copies of its old contents behind.
    let mut next_shares = |count| {
        let mut some = Secret::new(Vec::with_capacity(count));
        some.expose_mut().extend(secrets.by_ref().take(count).map(|share| *share.expose()));
        some
    };
    // The number of processors is asked for only if it matters, because asking takes as long as sharing a small key.
    let most = n / SHARES_PER_THREAD;
    let threads = if most < 2 { 1 } else { thread::available_parallelism().map_or(1, NonZeroUsize::get).min(most) };
    if threads < 2 {
        let Part { secrets, keys, .. } = Part::new(0, next_shares(n));
        return (secrets, keys);
    }
    let (pass, passed) = channel::<(usize, Secret<Vec<_>>)>();
    let passed = Mutex::new(passed);
    // A thread holds the lock while it waits for a part; the others wait for the lock.
    let next = || passed.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    let multiply = || iter::from_fn(next).map(|(place, secrets)| Part::<G>::new(place, secrets)).collect::<Vec<_>>();
    let mut parts = thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(multiply)).collect();
        for place in 0.. {
            let some = next_shares(AT_ONCE);
            // Sending fails only if the receiver is gone, which lives longer than this.
            if some.expose().is_empty() || pass.send((place, some)).is_err() {
                break;
            }
        }
        drop(pass);
        let mut parts = multiply();
        for worker in workers {
            parts.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        parts
    });
    parts.sort_unstable_by_key(|part| part.place);
    let (mut secrets, mut keys) = (Secret::new(Vec::with_capacity(n)), Vec::with_capacity(n));
    for part in parts {
        secrets.expose_mut().extend_from_slice(part.secrets.expose());
        keys.extend(part.keys);
    }
    (secrets, keys)
}
