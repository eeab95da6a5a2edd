//! Ed25519 keys and signatures (RFC 8032) of clients and approvers.

use core::{fmt, str::FromStr};

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rand_core::CryptoRng;
use theta_groups::{Ed25519, Group, Secret};

use crate::armor::{armor, dearmor};

/// The beginning of a key's text form.
pub(crate) const PREFIX: &str = "ed25519:";
const PRIVATE_KEY: &str = "PRIVATE KEY";
/// RFC 8410, section 7: everything of a PKCS #8 file before the 32 bytes of an Ed25519 key.
const PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A public key: a canonical point of the prime-order subgroup other than the identity. Text form: `ed25519:` and 64
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VerifyingKey([u8; 32]);

/// A signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(pub(crate) [u8; 64]);

/// The text is not a public key; at most 80 characters of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an Ed25519 public key; it is written as ed25519: and 64 hexadecimal digits")]
pub struct VerifyingKeyError(pub String);

/// The signature is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its signature is false")]
pub struct FalseSignature;

impl VerifyingKey {
    /// Reads 32 bytes. `None` for other encodings of a key and for points outside the prime-order subgroup; keys of small order
    /// would let anybody sign without a secret.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Option<Self> {
        Ed25519::decode(&bytes).ok().map(|_| Self(bytes))
    }

    /// Its 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Verifies an Ed25519 signature (RFC 8032, section 5.1.7).
    ///
    /// # Errors
    /// [`FalseSignature`].
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), FalseSignature> {
        UnparsedPublicKey::new(&ED25519, self.0).verify(message, &signature.0).map_err(|_| FalseSignature)
    }
}

impl Signature {
    /// Its 64 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(self.0))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for VerifyingKey {
    type Err = VerifyingKeyError;

    fn from_str(text: &str) -> Result<Self, VerifyingKeyError> {
        let mut bytes = [0; 32];
        let digits = text.strip_prefix(PREFIX).map(|digits| hex::decode_to_slice(digits, &mut bytes));
        match digits {
            Some(Ok(())) => Self::from_bytes(bytes),
            _ => None,
        }
        .ok_or_else(|| VerifyingKeyError(text.chars().take(80).collect()))
    }
}

/// A private key, of a client or an approver.
pub struct SigningKey {
    seed: Secret<[u8; 32]>,
    pair: Ed25519KeyPair,
    public: VerifyingKey,
}

/// The text is not a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not an Ed25519 private key; make one with: openssl genpkey -algorithm ed25519")]
pub struct SigningKeyError;

impl SigningKey {
    /// The key of a seed of 32 random bytes.
    ///
    /// # Errors
    /// [`SigningKeyError`] if the library refuses the seed; it refuses none.
    pub fn from_seed(seed: Secret<[u8; 32]>) -> Result<Self, SigningKeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose()).map_err(|_| SigningKeyError)?;
        let public = pair.public_key().as_ref().try_into().ok().and_then(VerifyingKey::from_bytes);
        Ok(Self { seed, pair, public: public.ok_or(SigningKeyError)? })
    }

    /// A new key.
    ///
    /// # Errors
    /// As [`SigningKey::from_seed`].
    pub fn generate(rng: &mut impl CryptoRng) -> Result<Self, SigningKeyError> {
        let mut seed = Secret::new([0; 32]);
        rng.fill_bytes(seed.expose_mut());
        Self::from_seed(seed)
    }

    /// Reads a PKCS #8 file (RFC 8410) in the text form that OpenSSL writes.
    ///
    /// # Errors
    /// [`SigningKeyError`].
    pub fn from_pem(text: &str) -> Result<Self, SigningKeyError> {
        let file = Secret::new(dearmor(PRIVATE_KEY, text).map_err(|_| SigningKeyError)?);
        let mut seed = Secret::new([0; 32]);
        match file.expose().strip_prefix(&PKCS8) {
            Some(bytes) if bytes.len() == 32 => seed.expose_mut().copy_from_slice(bytes),
            _ => return Err(SigningKeyError),
        }
        Self::from_seed(seed)
    }

    /// The PKCS #8 file, for OpenSSL and for [`SigningKey::from_pem`].
    #[must_use]
    pub fn to_pem(&self) -> Secret<String> {
        let mut file = Secret::new(Vec::with_capacity(48));
        file.expose_mut().extend_from_slice(&PKCS8);
        file.expose_mut().extend_from_slice(self.seed.expose());
        Secret::new(armor(PRIVATE_KEY, file.expose()))
    }

    /// The seed that it was made of.
    pub(crate) const fn seed(&self) -> &Secret<[u8; 32]> {
        &self.seed
    }

    /// The public key.
    #[must_use]
    pub const fn verifying_key(&self) -> VerifyingKey {
        self.public
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Signature {
        let mut signature = [0; 64];
        // An Ed25519 signature always has 64 bytes; zeros would be a false signature.
        if let Ok(bytes) = self.pair.sign(message).as_ref().try_into() {
            signature = bytes;
        }
        Signature(signature)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, test 2.
    const SEED: &str = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
    const PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    const SIGNED: &str = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                          085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

    fn key() -> SigningKey {
        SigningKey::from_seed(Secret::new(hex::decode(SEED).unwrap().try_into().unwrap())).unwrap()
    }

    #[test]
    fn known_answer_of_rfc_8032() {
        let key = key();
        assert_eq!(key.verifying_key().to_string(), format!("ed25519:{PUBLIC}"));
        let signature = key.sign(&[0x72]);
        assert_eq!(format!("{signature:?}"), SIGNED);
        assert_eq!(key.verifying_key().verify(&[0x72], &signature), Ok(()));
        assert_eq!(key.verifying_key().verify(&[0x73], &signature), Err(FalseSignature));
    }

    #[test]
    fn a_second_form_of_a_signature_is_refused() {
        // S + q is the same scalar: RFC 8032, section 5.1.7 demands S < q.
        let order = hex::decode("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010").unwrap();
        let mut signature = key().sign(b"m");
        let mut carry = 0;
        for (byte, add) in signature.0[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            (*byte, carry) = (sum.to_le_bytes()[0], sum >> 8);
        }
        assert_eq!(key().verifying_key().verify(b"m", &signature), Err(FalseSignature));
    }

    #[test]
    fn keys_that_anybody_can_sign_for_are_refused() {
        // The identity, the point of order two, one of order eight, and the identity in a second encoding.
        for small in [
            "0100000000000000000000000000000000000000000000000000000000000000",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ] {
            assert!(format!("ed25519:{small}").parse::<VerifyingKey>().is_err(), "{small}");
        }
        for bad in ["", PUBLIC, "ed25519:", "ed25519:00", &format!("rsa:{PUBLIC}")] {
            assert!(bad.parse::<VerifyingKey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn openssl_files_are_read_and_written() {
        // RFC 8410, section 10.3.
        let pem = "-----BEGIN PRIVATE KEY-----\n\
                   MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
                   -----END PRIVATE KEY-----\n";
        let key = SigningKey::from_pem(pem).unwrap();
        assert_eq!(key.to_pem().expose(), pem);
        assert!(!format!("{key:?}").contains("d4ee72"), "nothing secret is shown");
        for bad in ["", &pem.replace("MC4C", "MC4D"), &pem.replace("EdVhC", "")] {
            assert!(SigningKey::from_pem(bad).is_err());
        }
    }
}
