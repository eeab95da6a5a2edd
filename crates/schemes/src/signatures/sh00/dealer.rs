//! The trusted dealer of RSA keys.
//!
//! The dealer's arithmetic modulo m is not constant-time: it runs once, on a machine that knows the whole key.

use std::sync::Arc;

use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_groups::modular::{Integer, Modulus, Residue, SearchProgress, find_safe_prime_pair};
use theta_sharing::{ShareIndex, Threshold};

use super::{MODULUS_BITS, PUBLIC_EXPONENT, RsaKeyShare, RsaPublicKey, RsaScheme, interpolation};

/// A key fresh from the dealer.
#[derive(Debug)]
pub struct RsaDealt {
    /// The public material; all parties share one copy.
    pub public: Arc<RsaPublicKey>,
    /// The shares of parties 1 to n, in order.
    pub shares: Vec<RsaKeyShare>,
}

/// Why a key cannot be dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RsaDealError {
    /// The size is none of [`MODULUS_BITS`].
    #[error("RSA keys have 2048, 3072 or 4096 bits, not {0}")]
    Bits(u32),
    /// The suite has keys of another kind.
    #[error("{0} is no RSA suite: its keys have the size of their group")]
    Suite(crate::Suite),
    /// The numbers are not two different safe primes of one size.
    #[error("not two different safe primes of the same size, both with the two top bits set")]
    Primes,
}

/// The size of a modulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModulusSize(u32);

impl ModulusSize {
    /// The default: 2048 bits.
    pub const DEFAULT: Self = Self(2048);

    /// In bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for ModulusSize {
    type Error = RsaDealError;

    fn try_from(bits: u32) -> Result<Self, RsaDealError> {
        if MODULUS_BITS.contains(&bits) { Ok(Self(bits)) } else { Err(RsaDealError::Bits(bits)) }
    }
}

/// The two safe primes of a key, which are as secret as the key.
pub struct RsaPrimes {
    p: Secret<Integer>,
    q: Secret<Integer>,
    modulus: Modulus,
}

impl RsaPrimes {
    /// Finds the primes of a modulus on all cores; `progress` is called with the state of the search.
    pub fn generate(size: ModulusSize, progress: &mut dyn FnMut(SearchProgress), rng: &mut dyn CryptoRng) -> Self {
        loop {
            let [p, q] = find_safe_prime_pair(size.bits() / 2, progress, rng);
            // Their product is odd and of the right size, so this succeeds.
            if let Some(modulus) = Modulus::new(p.expose().mul(q.expose())) {
                return Self { p, q, modulus };
            }
        }
    }

    /// Primes found elsewhere, checked.
    ///
    /// # Errors
    /// [`RsaDealError::Primes`].
    pub fn new(p: Secret<Integer>, q: Secret<Integer>) -> Result<Self, RsaDealError> {
        let bits = p.expose().bits();
        let sound = |prime: &Integer| {
            prime.bits() == bits && prime.bit(bits - 2) && prime.is_prime() && half(prime).expose().is_prime()
        };
        if !RsaPublicKey::is_size(2 * bits) || p.expose() == q.expose() || !sound(p.expose()) || !sound(q.expose()) {
            return Err(RsaDealError::Primes);
        }
        let modulus = Modulus::new(p.expose().mul(q.expose())).ok_or(RsaDealError::Primes)?;
        Ok(Self { p, q, modulus })
    }

    /// p and q.
    #[must_use]
    pub const fn expose(&self) -> [&Integer; 2] {
        [self.p.expose(), self.q.expose()]
    }
}

impl core::fmt::Debug for RsaPrimes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("RsaPrimes(<redacted>)")
    }
}

/// (p - 1) / 2.
fn half(prime: &Integer) -> Secret<Integer> {
    let mut half = Secret::new(prime.clone());
    half.expose_mut().div_u64(2);
    half
}

/// Shares a new key among n parties so that any k can use it.
pub fn deal<S: RsaScheme>(
    size: ModulusSize,
    threshold: Threshold,
    progress: &mut dyn FnMut(SearchProgress),
    rng: &mut dyn CryptoRng,
) -> RsaDealt {
    deal_primes::<S>(&RsaPrimes::generate(size, progress, rng), threshold, rng)
}

/// Shares the key with the given primes.
///
/// In the paper a party holds f(i), with f(0) = d = 1 / e modulo m, and uses Delta f(i). Here it holds s_i = Delta f(i) mod m
/// alone: Delta is a unit, so Delta f is a random polynomial with the value Delta d at zero.
pub fn deal_primes<S: RsaScheme>(primes: &RsaPrimes, threshold: Threshold, rng: &mut dyn CryptoRng) -> RsaDealt {
    let [p, q] = primes.expose();
    let modulus = primes.modulus.clone();
    let order = Secret::new(half(p).expose().mul(half(q).expose()));
    let delta = interpolation::factorial(threshold.n());
    let secret = Secret::new(private_exponent(&order).expose().mul(&delta).rem(order.expose()));
    let mut coefficients = vec![secret];
    coefficients.extend((0..threshold.t()).map(|_| random_below(order.expose(), modulus.encoded_len(), rng)));

    let base = random_square(&modulus, rng);
    let mut secrets = Vec::with_capacity(usize::from(threshold.n()));
    let mut verification_keys = Vec::with_capacity(usize::from(threshold.n()));
    for index in threshold.indices() {
        let mut secret = Secret::new(vec![0; modulus.encoded_len()]);
        // Below the order, so it fits.
        let _ = evaluate(&coefficients, index, order.expose()).expose().write_be_bytes(secret.expose_mut());
        verification_keys.push(modulus.pow(&base, secret.expose()));
        secrets.push((index, secret));
    }
    let public = RsaPublicKey::assemble(S::SUITE, threshold, modulus, base, verification_keys);
    let key_id = *public.key_id();
    let shares = secrets.into_iter().map(|(index, secret)| RsaKeyShare::new(key_id, index, secret)).collect();
    RsaDealt { public: Arc::new(public), shares }
}

/// d = (1 + m t) / e with t = -1 / m modulo e, so that e d = 1 modulo m.
fn private_exponent(order: &Secret<Integer>) -> Secret<Integer> {
    let inverse = inverse_modulo_exponent(order.expose().rem_u64(PUBLIC_EXPONENT));
    let mut d = Secret::new(order.expose().clone());
    d.expose_mut().mul_u64(PUBLIC_EXPONENT - inverse);
    d.expose_mut().add_u64(1);
    d.expose_mut().div_u64(PUBLIC_EXPONENT);
    d
}

/// 1 / a modulo the prime e, by Fermat's little theorem.
pub(super) fn inverse_modulo_exponent(a: u64) -> u64 {
    let (mut power, mut square, mut exponent) = (1, a % PUBLIC_EXPONENT, PUBLIC_EXPONENT - 2);
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power * square % PUBLIC_EXPONENT;
        }
        square = square * square % PUBLIC_EXPONENT;
        exponent /= 2;
    }
    power
}

/// A number below `bound`, which has at most `len` bytes; uniform except for a bias of 2^-128.
fn random_below(bound: &Integer, len: usize, rng: &mut dyn CryptoRng) -> Secret<Integer> {
    let mut bytes = Secret::new(vec![0; len + 16]);
    rng.fill_bytes(bytes.expose_mut());
    let wide = Secret::new(Integer::from_be_bytes(bytes.expose()));
    Secret::new(wide.expose().rem(bound))
}

/// A random square, which generates the group of squares except with probability 2^-500.
fn random_square(modulus: &Modulus, rng: &mut dyn CryptoRng) -> Residue {
    let one = modulus.reduce(&Integer::from_u64(1));
    loop {
        let root = modulus.reduce(random_below(modulus.value(), modulus.encoded_len(), rng).expose());
        let square = modulus.square(&root);
        if modulus.vartime_are_units([&square]) && square != one {
            return square;
        }
    }
}

/// The polynomial's value modulo m, by Horner's rule over the integers with occasional reduction.
fn evaluate(coefficients: &[Secret<Integer>], index: ShareIndex, order: &Integer) -> Secret<Integer> {
    let limit = order.bits() + 1024;
    let mut value = Secret::new(Integer::from_u64(0));
    for coefficient in coefficients.iter().rev() {
        value.expose_mut().mul_u64(u64::from(index.get()));
        value.expose_mut().add_assign(coefficient.expose());
        if value.expose().bits() > limit {
            value = Secret::new(value.expose().rem(order));
        }
    }
    Secret::new(value.expose().rem(order))
}
