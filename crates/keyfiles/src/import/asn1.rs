//! Private keys in DER.

use pkcs8::der::asn1::{AnyRef, OctetStringRef, UintRef};
use pkcs8::der::{self, Decode, Reader, SliceReader, Tag, Tagged};
use pkcs8::{ObjectIdentifier, PrivateKeyInfoRef};
use sec1::EcPrivateKey;
use theta_groups::Secret;
use theta_groups::modular::Integer;

use super::ImportError;
use super::private_key::{Kind, PrivateKey};

/// RFC 8410, section 3.
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const ED448: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.113");
/// RFC 5480, section 2.1.1.
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
/// SEC 2, appendix A.2.
const SECP256K1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.10");
/// RFC 8017, appendix C.
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");

/// The tag of a sequence, as a byte (X.690, section 8.9).
const SEQUENCE: u8 = 0x30;

/// Reads PKCS#8, SEC1 or PKCS#1, whichever this is.
pub(super) fn any(der: &[u8]) -> Result<PrivateKey, ImportError> {
    if PrivateKeyInfoRef::from_der(der).is_ok() {
        pkcs8(der)
    } else if EcPrivateKey::from_der(der).is_ok() {
        sec1(der, None)
    } else if rsa_numbers(der).is_ok() {
        pkcs1(der)
    } else if writes_curve_out(der) {
        Err(ImportError::ExplicitCurve)
    } else {
        Err(ImportError::Unrecognised)
    }
}

/// `OneAsymmetricKey` (RFC 5958, section 2).
pub(super) fn pkcs8(der: &[u8]) -> Result<PrivateKey, ImportError> {
    let info = PrivateKeyInfoRef::from_der(der).map_err(|_| ImportError::Malformed("it is not PKCS#8"))?;
    let key = info.private_key.as_bytes();
    let kind = match info.algorithm.oid {
        ED25519 => Kind::Ed25519,
        ED448 => Kind::Ed448,
        EC => {
            let parameters = info.algorithm.parameters.ok_or(ImportError::Malformed("it names no curve"))?;
            if parameters.tag() == Tag::Sequence {
                return Err(ImportError::ExplicitCurve);
            }
            let curve = parameters.decode_as().map_err(|_| ImportError::Malformed("it names no curve"))?;
            return sec1(key, Some(curve));
        }
        RSA | RSA_PSS => return pkcs1(key),
        other => return Err(ImportError::Algorithm(other.to_string())),
    };
    // RFC 8410, section 7: an octet string in the octet string.
    let seed =
        <&OctetStringRef>::from_der(key).map_err(|_| ImportError::Malformed("the seed is not an octet string"))?;
    let public = info.public_key.as_ref().and_then(der::asn1::BitStringRef::as_bytes);
    PrivateKey::seed(kind, seed.as_bytes(), public)
}

/// `ECPrivateKey` (RFC 5915, section 3). In PKCS#8 the curve is named outside.
pub(super) fn sec1(der: &[u8], curve: Option<ObjectIdentifier>) -> Result<PrivateKey, ImportError> {
    let damaged = ImportError::Malformed("it is not an ECPrivateKey");
    let key = EcPrivateKey::from_der(der)
        .map_err(|_| if writes_curve_out(der) { ImportError::ExplicitCurve } else { damaged })?;
    let inside = key.parameters.and_then(sec1::EcParameters::named_curve);
    if curve.is_some() && inside.is_some() && curve != inside {
        return Err(ImportError::Malformed("it names two different curves"));
    }
    let kind = match curve.or(inside) {
        Some(P256) => Kind::P256,
        Some(SECP256K1) => Kind::Secp256k1,
        Some(other) => return Err(ImportError::Algorithm(format!("EC ({other})"))),
        None => return Err(ImportError::Malformed("it names no curve")),
    };
    PrivateKey::ec(kind, key.private_key, key.public_key)
}

/// Whether this is an `ECPrivateKey` whose parameters are a sequence, `SpecifiedECDomain` (SEC 1, appendix C.2), instead of the
/// name of a curve.
fn writes_curve_out(der: &[u8]) -> bool {
    let explicit = || -> der::Result<bool> {
        let mut reader = SliceReader::new(der)?;
        reader.sequence(|reader| {
            let (version, _secret) = (u8::decode(reader)?, <&OctetStringRef>::decode(reader)?);
            let parameters = AnyRef::decode(reader)?;
            // The public key may follow.
            while !reader.is_finished() {
                AnyRef::decode(reader)?;
            }
            let specified = parameters.value().first() == Some(&SEQUENCE);
            Ok::<_, der::Error>(version == 1 && parameters.tag().number().value() == 0 && specified)
        })
    };
    explicit().unwrap_or(false)
}

/// `RSAPrivateKey` (RFC 8017, appendix A.1.2).
pub(super) fn pkcs1(der: &[u8]) -> Result<PrivateKey, ImportError> {
    let [n, e, p, q] = rsa_numbers(der).map_err(|_| ImportError::Malformed("it is not an RSAPrivateKey"))?;
    PrivateKey::rsa_of(n, e, [p, q].map(|prime| Secret::new(Integer::from_be_bytes(prime))))
}

/// n, e, p and q, big-endian and without leading zeros. Keys of more than two primes have another version and are refused.
pub(super) fn rsa_numbers(der: &[u8]) -> der::Result<[&[u8]; 4]> {
    let mut reader = SliceReader::new(der)?;
    let numbers = reader.sequence(|reader| {
        let version = u8::decode(reader)?;
        if version != 0 {
            return Err(reader.error(der::ErrorKind::Failed));
        }
        let mut next = || UintRef::decode(reader).map(|number| number.as_bytes());
        let (n, e, _d, p, q) = (next()?, next()?, next()?, next()?, next()?);
        for _exponent_or_coefficient in 0..3 {
            next()?;
        }
        Ok::<_, der::Error>([n, e, p, q])
    })?;
    reader.finish()?;
    Ok(numbers)
}
