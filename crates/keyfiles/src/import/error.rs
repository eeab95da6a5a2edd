//! Why a private key is not imported. No variant holds anything of the key.

use theta_schemes::Suite;
use theta_schemes::keys::DealError;

use super::KeyFormat;

/// Why a file does not become shares.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Nothing that is known.
    #[error(
        "no private key was recognised: give PKCS#8 or SEC1 (PEM or DER), an OpenSSH key file, a JWK, or bare bytes or \
         hexadecimal digits in the format raw or seed"
    )]
    Unrecognised,
    /// A public key or certificate.
    #[error("this is a public key or certificate: give the file with the private key")]
    NotPrivate,
    /// The file says that it is something else.
    #[error("the file is in the format {found}, not {asked}")]
    OtherFormat {
        /// What the caller said.
        asked: KeyFormat,
        /// What it is.
        found: KeyFormat,
    },
    /// Encrypted with a passphrase.
    #[error("the key is encrypted with a passphrase: remove it from a copy, which you destroy afterwards, with {0}")]
    Encrypted(&'static str),
    /// It begins well.
    #[error("the key file is damaged: {0}")]
    Malformed(&'static str),
    /// A key that no suite takes.
    #[error("{0} keys cannot be imported: Ed25519, Ed448, P-256, secp256k1 and RSA keys can")]
    Algorithm(String),
    /// A key that OpenSSH has in a form of its own, and can write in another.
    #[error(
        "{0} keys are read as PKCS#8: convert a copy, which you destroy afterwards, with ssh-keygen -p -N \"\" -m PKCS8 -f COPY"
    )]
    OpenSshForm(&'static str),
    /// A curve that is written out instead of named.
    #[error(
        "this EC key writes its curve out instead of naming it: name it in a copy, which you destroy afterwards, with \
         openssl ec -in FILE -param_enc named_curve -out COPY"
    )]
    ExplicitCurve,
    /// Which of them would be a guess.
    #[error("the file holds more than one private key: give a file with the one that is meant")]
    SeveralKeys,
    /// A key that another suite takes.
    #[error("{kind} keys do not fit {suite}: {remedy}")]
    OtherSuite {
        /// What the key is.
        kind: &'static str,
        /// What it should become.
        suite: Suite,
        /// What would be right.
        remedy: String,
    },
    /// As many bytes as a scalar has, and as a seed has.
    #[error("these bytes could be a seed (RFC 8032) or a scalar: say which with the format seed or raw")]
    Ambiguous,
    /// Keys of the suite have no seeds.
    #[error("keys of {0} have no seeds: give the scalar in the format raw")]
    NoSeeds(Suite),
    /// Too short or too long.
    #[error("the {kind} key has {got} bytes, not {expected}")]
    Length {
        /// What the key is.
        kind: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// The file holds two halves of different keys.
    #[error("the public key in the file is not that of the private key")]
    PublicKey,
    /// Ordinary RSA keys.
    #[error(
        "this RSA key cannot be shared: Shoup's scheme takes safe primes (p and (p-1)/2 both prime), which ordinary tools do \
         not choose; deal a new key instead"
    )]
    RsaPrimes,
    /// Not 65537.
    #[error("this RSA key has another public exponent than 65537: deal a new key instead")]
    RsaExponent,
    /// A size that is not offered.
    #[error("RSA keys have 2048, 3072 or 4096 bits, not {0}")]
    RsaSize(u32),
    /// The scalar is not one.
    #[error(transparent)]
    Deal(#[from] DealError),
}

/// Not the name of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown key format {0:?}; the known ones are auto, pkcs8, openssh, jwk, raw and seed")]
pub struct UnknownFormat(pub String);
