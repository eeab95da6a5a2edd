//! JSON Web Keys (RFC 7517): those of elliptic curves (RFC 7518, section 6.2, and for secp256k1 RFC 8812), of RSA (RFC 7518,
//! section 6.3) and of EdDSA (RFC 8037).

use base64ct::{Base64UrlUnpadded, Encoding};
use serde::Deserialize;
use theta_groups::Secret;
use theta_groups::modular::Integer;

use super::ImportError;
use super::private_key::{Kind, PrivateKey};

/// The longest number, in bytes: 16,384 bits.
const MOST_NUMBER: usize = 2_048;

/// The members that matter. They are borrowed, so that no copy of a secret is made that nobody wipes. A string with escapes
/// cannot be borrowed and is refused; base64url needs none.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow)]
    kty: Option<&'a str>,
    crv: Option<&'a str>,
    d: Option<&'a str>,
    x: Option<&'a str>,
    y: Option<&'a str>,
    n: Option<&'a str>,
    e: Option<&'a str>,
    p: Option<&'a str>,
    q: Option<&'a str>,
    /// The other primes of an RSA key that has more than two.
    oth: Option<serde::de::IgnoredAny>,
    /// The keys of a JWK set.
    keys: Option<serde::de::IgnoredAny>,
}

/// A JWK set (RFC 7517, section 5).
#[derive(Deserialize)]
struct Set<'a> {
    #[serde(borrow)]
    keys: Vec<Members<'a>>,
}

/// Whether a file is meant to be a JSON Web Key: no other format begins with a brace.
pub(super) fn looks_like(file: &[u8]) -> bool {
    file.trim_ascii_start().starts_with(b"{")
}

/// Reads a private key. Of a set it is the only private key in it; public ones beside it do not matter, as in PEM files.
pub(super) fn read(file: &[u8]) -> Result<PrivateKey, ImportError> {
    let members: Members<'_> =
        serde_json::from_slice(file).map_err(|_| ImportError::Malformed("it is no JSON Web Key"))?;
    if members.kty.is_some() || members.keys.is_none() {
        return members.key();
    }
    let set: Set<'_> = serde_json::from_slice(file).map_err(|_| ImportError::Malformed("it is no JSON Web Key set"))?;
    let mut private = set.keys.iter().filter(|key| key.is_private());
    match (private.next(), private.next()) {
        (Some(key), None) => key.key(),
        (Some(_), Some(_)) => Err(ImportError::SeveralKeys),
        (None, _) => Err(ImportError::NotPrivate),
    }
}

impl Members<'_> {
    /// Whether it holds a secret. Symmetric keys do, and are refused when they are read.
    fn is_private(&self) -> bool {
        self.d.is_some() || self.kty == Some("oct")
    }

    fn key(&self) -> Result<PrivateKey, ImportError> {
        match self.kty {
            Some("OKP") => self.eddsa(),
            Some("EC") => self.ec(),
            Some("RSA") => self.rsa(),
            Some(other) => Err(ImportError::Algorithm(format!("JWK {}", printable(other)))),
            None => Err(ImportError::Malformed("it names no key type (kty)")),
        }
    }

    fn eddsa(&self) -> Result<PrivateKey, ImportError> {
        let kind = match self.curve()? {
            "Ed25519" => Kind::Ed25519,
            "Ed448" => Kind::Ed448,
            other => return Err(ImportError::Algorithm(format!("JWK {}", printable(other)))),
        };
        let seed = bytes(self.d.ok_or(ImportError::NotPrivate)?)?;
        let public = self.x.map(bytes).transpose()?;
        PrivateKey::seed(kind, seed.expose(), public.as_ref().map(|public| public.expose().as_slice()))
    }

    fn ec(&self) -> Result<PrivateKey, ImportError> {
        let kind = match self.curve()? {
            "P-256" => Kind::P256,
            "secp256k1" => Kind::Secp256k1,
            other => return Err(ImportError::Algorithm(format!("JWK {}", printable(other)))),
        };
        let scalar = bytes(self.d.ok_or(ImportError::NotPrivate)?)?;
        let public = match (self.x, self.y) {
            (Some(x), Some(y)) => Some([&[4], bytes(x)?.expose().as_slice(), bytes(y)?.expose()].concat()),
            _ => None,
        };
        PrivateKey::ec(kind, scalar.expose(), public.as_deref())
    }

    fn rsa(&self) -> Result<PrivateKey, ImportError> {
        if self.d.is_none() {
            return Err(ImportError::NotPrivate);
        }
        if self.oth.is_some() {
            return Err(ImportError::RsaPrimes);
        }
        let missing = ImportError::Malformed("it lacks n, e, p or q");
        let (Some(n), Some(e), Some(p), Some(q)) = (self.n, self.e, self.p, self.q) else { return Err(missing) };
        let [n, e, p, q] = [bytes(n)?, bytes(e)?, bytes(p)?, bytes(q)?];
        PrivateKey::rsa_of(n.expose(), e.expose(), [p, q].map(|prime| number(&prime)))
    }

    fn curve(&self) -> Result<&str, ImportError> {
        self.crv.ok_or(ImportError::Malformed("it names no curve (crv)"))
    }
}

fn number(bytes: &Secret<Vec<u8>>) -> Secret<Integer> {
    Secret::new(Integer::from_be_bytes(bytes.expose()))
}

/// Decodes base64url (RFC 7515, section 2), in constant time for digits of one length.
fn bytes(digits: &str) -> Result<Secret<Vec<u8>>, ImportError> {
    if digits.len() > MOST_NUMBER / 3 * 4 {
        return Err(ImportError::Malformed("a number in it is too long"));
    }
    let mut bytes = Secret::new(vec![0; digits.len() / 4 * 3 + 3]);
    let len = Base64UrlUnpadded::decode(digits, bytes.expose_mut())
        .map_err(|_| ImportError::Malformed("a number in it is not base64url"))?
        .len();
    bytes.expose_mut().truncate(len);
    Ok(bytes)
}

fn printable(name: &str) -> String {
    name.chars().filter(char::is_ascii_graphic).take(40).collect()
}
