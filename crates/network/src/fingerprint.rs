//! The name by which the owner of a certificate is pinned.

use core::{fmt, str::FromStr};

use rustls::{Error, pki_types::CertificateDer, server::ParsedCertificate};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

/// SHA-256 of the public key of a certificate: of its SubjectPublicKeyInfo in DER, as `TLSA 3 1 1` of RFC 7671 has it. The key and
/// not the certificate, so that a new certificate of the same key needs no new pin. Text form: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate's public key, as the TLS library reads it when it verifies what that key signed.
    ///
    /// # Errors
    /// The TLS library's, if it is no certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, Error> {
        let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        Ok(Self(Sha256::digest(key.as_ref()).into()))
    }

    /// The digest.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Fingerprint {
    fn from(digest: [u8; 32]) -> Self {
        Self(digest)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The text is not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a certificate's fingerprint; it is the SHA-256 of its public key, written as 64 hexadecimal digits")]
pub struct FingerprintError;

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut digest = [0; 32];
        hex::decode_to_slice(text, &mut digest).map_err(|_| FingerprintError)?;
        Ok(Self(digest))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let print = Fingerprint(Sha256::digest(b"abc").into());
        // FIPS 180-4, SHA-256 of "abc".
        assert_eq!(print.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(print.to_string().parse(), Ok(print));
        assert_eq!(print.to_string().to_uppercase().parse(), Ok(print));
    }

    #[test]
    fn bad_text_is_refused() {
        for text in ["", "ba78", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError), "{text:?}");
        }
    }
}
