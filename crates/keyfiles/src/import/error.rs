//! Why a private key is not imported. No variant holds anything of the key.

use theta_schemes::Suite;
use theta_schemes::keys::DealError;

use super::KeyFormat;

/// Why a private key was not imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file is in no known format.
    #[error(
        "no private key was recognised: give PKCS#8 or SEC1 (PEM or DER), an OpenSSH key file, a JWK, or bare bytes or \
         hexadecimal digits in the format raw or seed"
    )]
    Unrecognised,
    /// The file holds a public key or certificate.
    #[error("this is a public key or certificate: give the file with the private key")]
    NotPrivate,
    /// The file is in another format than the caller said.
    #[error("the file is in the format {found}, not {asked}")]
    OtherFormat {
        /// The format that the caller said.
        asked: KeyFormat,
        /// The format of the file.
        found: KeyFormat,
    },
    /// The key is encrypted with a passphrase; the command that removes it.
    #[error("the key is encrypted with a passphrase: remove it from a copy, which you destroy afterwards, with {0}")]
    Encrypted(&'static str),
    /// The format is known, but the file is damaged; what is wrong.
    #[error("the key file is damaged: {0}")]
    Malformed(&'static str),
    /// No suite takes keys of this algorithm.
    #[error("{0} keys cannot be imported: Ed25519, Ed448, P-256, secp256k1 and RSA keys can")]
    Algorithm(String),
    /// The key is in OpenSSH's own format, of which only Ed25519 is read; `ssh-keygen` can convert it.
    #[error(
        "{0} keys are read as PKCS#8: convert a copy, which you destroy afterwards, with ssh-keygen -p -N \"\" -m PKCS8 -f COPY"
    )]
    OpenSshForm(&'static str),
    /// The key gives explicit parameters of its curve instead of a name.
    #[error(
        "this EC key writes its curve out instead of naming it: name it in a copy, which you destroy afterwards, with \
         openssl ec -in FILE -param_enc named_curve -out COPY"
    )]
    ExplicitCurve,
    /// The file holds several private keys, of which none is chosen.
    #[error("the file holds more than one private key: give a file with the one that is meant")]
    SeveralKeys,
    /// The key is for other suites.
    #[error("{kind} keys do not fit {suite}: {remedy}")]
    OtherSuite {
        /// The key's algorithm or curve.
        kind: &'static str,
        /// The suite that was asked for.
        suite: Suite,
        /// Which suites take the key.
        remedy: String,
    },
    /// The file has as many bytes as a scalar, and as a seed.
    #[error("these bytes could be a seed (RFC 8032) or a scalar: say which with the format seed or raw")]
    Ambiguous,
    /// Keys of the suite have no seeds.
    #[error("keys of {0} have no seeds: give the scalar in the format raw")]
    NoSeeds(Suite),
    /// The key has a wrong length.
    #[error("the {kind} key has {got} bytes, not {expected}")]
    Length {
        /// The key's algorithm or curve.
        kind: &'static str,
        /// The right length in bytes.
        expected: usize,
        /// The key's length in bytes.
        got: usize,
    },
    /// The public key in the file is not that of the private key.
    #[error("the public key in the file is not that of the private key")]
    PublicKey,
    /// The key's primes are not two safe primes, as those of ordinary RSA keys are not.
    #[error(
        "this RSA key cannot be shared: Shoup's scheme takes safe primes (p and (p-1)/2 both prime), which ordinary tools do \
         not choose; deal a new key instead"
    )]
    RsaPrimes,
    /// The public exponent is not 65537.
    #[error("this RSA key has another public exponent than 65537: deal a new key instead")]
    RsaExponent,
    /// The modulus has a size, in bits, that no suite takes.
    #[error("RSA keys have 2048, 3072 or 4096 bits, not {0}")]
    RsaSize(u32),
    /// The scalar is not a secret key of the suite.
    #[error(transparent)]
    Deal(#[from] DealError),
}

/// The text is not the name of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown key format {0:?}; the known ones are auto, pkcs8, openssh, jwk, raw and seed")]
pub struct UnknownFormat(pub String);
