//! A private key that was read, and the suites that it fits.

use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_groups::modular::Integer;
use theta_schemes::Suite;
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, DealError, KeyKind, deal_rsa_primes, import_any};
use theta_schemes::signatures::sh00::{MODULUS_BITS, RsaPrimes};
use theta_sharing::Threshold;

use super::{ImportError, seed};

/// The algorithm or curve of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ed25519,
    Ed448,
    P256,
    Secp256k1,
    Rsa,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Ed25519 => "Ed25519",
            Self::Ed448 => "Ed448",
            Self::P256 => "P-256",
            Self::Secp256k1 => "secp256k1",
            Self::Rsa => "RSA",
        }
    }

    /// EdDSA keys, which are seeds, fit FROST on their curve. Other keys fit every suite on their curve, RSA keys every RSA suite.
    fn fits(self, suite: Suite) -> bool {
        match self {
            Self::Ed25519 => suite.name() == "frost-ed25519",
            Self::Ed448 => suite.name() == "frost-ed448",
            Self::P256 => suite.group() == "p256",
            Self::Secp256k1 => suite.group() == "secp256k1",
            Self::Rsa => suite.key_kind() == KeyKind::Rsa,
        }
    }

    /// The kind of the suite's keys, if they have seeds.
    pub(super) fn with_seed(suite: Suite) -> Option<Self> {
        [Self::Ed25519, Self::Ed448].into_iter().find(|kind| kind.fits(suite))
    }

    const fn secret_len(self) -> usize {
        match self {
            Self::Ed448 => 57,
            _ => 32,
        }
    }

    fn check(self, suite: Suite) -> Result<(), ImportError> {
        if self.fits(suite) {
            return Ok(());
        }
        let fitting: Vec<_> = Suite::ALL.into_iter().filter(|suite| self.fits(*suite)).map(Suite::name).collect();
        let remedy = if fitting.is_empty() {
            "no suite of this build takes them".to_owned()
        } else {
            match fitting.split_last() {
                Some((last, others)) if !others.is_empty() => {
                    format!("import them into {} or {last}", others.join(", "))
                }
                _ => format!("import them into {}", fitting.concat()),
            }
        };
        Err(ImportError::OtherSuite { kind: self.name(), suite, remedy })
    }
}

/// [`theta_schemes::signatures::sh00::PUBLIC_EXPONENT`], 65537.
const EXPONENT: [u8; 3] = [1, 0, 1];

/// A private key that was read.
pub(super) enum PrivateKey {
    /// A scalar in the encoding of the kind's curve or, without a kind, of the suite that it is for; and the public key, if the
    /// file has it.
    Scalar { kind: Option<Kind>, scalar: Secret<Vec<u8>>, public: Option<Vec<u8>> },
    /// The primes of an RSA key with the usual exponent.
    Rsa { p: Secret<Integer>, q: Secret<Integer> },
}

impl PrivateKey {
    /// A bare scalar.
    pub(super) const fn scalar(scalar: Secret<Vec<u8>>) -> Self {
        Self::Scalar { kind: None, scalar, public: None }
    }

    /// An EdDSA key.
    pub(super) fn seed(kind: Kind, seed: &[u8], public: Option<&[u8]>) -> Result<Self, ImportError> {
        check_len(kind, seed)?;
        let scalar = match kind {
            Kind::Ed448 => seed::ed448_scalar(seed),
            _ => seed::ed25519_scalar(seed),
        };
        Ok(Self::Scalar { kind: Some(kind), scalar, public: public.map(<[u8]>::to_vec) })
    }

    /// A key on a Weierstrass curve, big-endian; the public key as in SEC 1, section 2.3.3.
    pub(super) fn ec(kind: Kind, scalar: &[u8], public: Option<&[u8]>) -> Result<Self, ImportError> {
        check_len(kind, scalar)?;
        let public = public.map(compressed).transpose()?;
        Ok(Self::Scalar { kind: Some(kind), scalar: Secret::new(scalar.to_vec()), public })
    }

    /// An RSA key: modulus and exponent big-endian and without leading zeros, and the primes.
    pub(super) fn rsa_of(n: &[u8], e: &[u8], [p, q]: [Secret<Integer>; 2]) -> Result<Self, ImportError> {
        if e != EXPONENT {
            return Err(ImportError::RsaExponent);
        }
        if p.expose().mul(q.expose()) != Integer::from_be_bytes(n) {
            return Err(ImportError::Malformed("the modulus is not the product of the primes"));
        }
        Ok(Self::Rsa { p, q })
    }

    /// Shares the key among n parties, if it fits the suite.
    pub(super) fn deal(
        self,
        suite: Suite,
        threshold: Threshold,
        rng: &mut dyn CryptoRng,
    ) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), ImportError> {
        match self {
            Self::Scalar { kind, scalar, public } => {
                kind.map_or(Ok(()), |kind| kind.check(suite))?;
                let dealt = import_any(suite, threshold, &scalar, rng)?;
                // Taproot's public keys are the x-coordinate alone.
                let ours = dealt.0.public_key_bytes();
                match public {
                    Some(theirs) if !theirs.ends_with(ours) && theirs != ours => Err(ImportError::PublicKey),
                    _ => Ok(dealt),
                }
            }
            Self::Rsa { p, q } => {
                Kind::Rsa.check(suite)?;
                deal_rsa(suite, p, q, threshold, rng)
            }
        }
    }
}

fn deal_rsa(
    suite: Suite,
    p: Secret<Integer>,
    q: Secret<Integer>,
    threshold: Threshold,
    rng: &mut dyn CryptoRng,
) -> Result<(AnyPublicKey, Vec<AnyKeyShare>), ImportError> {
    let bits = p.expose().mul(q.expose()).bits();
    if !MODULUS_BITS.contains(&bits) {
        return Err(ImportError::RsaSize(bits));
    }
    let primes = RsaPrimes::new(p, q).map_err(|_| ImportError::RsaPrimes)?;
    // The suite was checked before and is an RSA suite, so this does not fail.
    deal_rsa_primes(suite, &primes, threshold, rng).map_err(|_| DealError::RsaImport.into())
}

fn check_len(kind: Kind, secret: &[u8]) -> Result<(), ImportError> {
    let (expected, got) = (kind.secret_len(), secret.len());
    if expected == got { Ok(()) } else { Err(ImportError::Length { kind: kind.name(), expected, got }) }
}

/// A point in its short encoding: the parity of y, and x.
fn compressed(point: &[u8]) -> Result<Vec<u8>, ImportError> {
    match point.split_first() {
        Some((2 | 3, x)) if x.len() == 32 => Ok(point.to_vec()),
        Some((4, coordinates)) if coordinates.len() == 64 => {
            let (x, y) = coordinates.split_at(32);
            let parity = y.last().map_or(0, |byte| byte & 1);
            Ok([&[2 | parity], x].concat())
        }
        _ => Err(ImportError::Malformed("its public key is not a point")),
    }
}
