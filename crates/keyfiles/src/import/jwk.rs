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
    /// The keys of a JWK set, which is refused.
    keys: Option<serde::de::IgnoredAny>,
}

/// Whether a file is meant to be a JSON Web Key: no other format begins with a brace.
pub(super) fn looks_like(file: &[u8]) -> bool {
    file.trim_ascii_start().starts_with(b"{")
}

/// Reads a private key.
pub(super) fn read(file: &[u8]) -> Result<PrivateKey, ImportError> {
    let members: Members<'_> =
        serde_json::from_slice(file).map_err(|_| ImportError::Malformed("it is no JSON Web Key"))?;
    match (members.kty, &members.keys) {
        (None, Some(_)) => Err(ImportError::SeveralKeys),
        (Some("OKP"), _) => members.eddsa(),
        (Some("EC"), _) => members.ec(),
        (Some("RSA"), _) => members.rsa(),
        (Some(other), _) => Err(ImportError::Algorithm(format!("JWK {}", printable(other)))),
        (None, None) => Err(ImportError::Malformed("it names no key type (kty)")),
    }
}

impl Members<'_> {
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
