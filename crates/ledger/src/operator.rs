//! The key of the person who answers for a node, which is not on the node.

use core::fmt;

use theta_agreement::{Signature, schnorr};
use theta_groups::{Group, Ristretto255, RistrettoScalar, Secret, Transcript};
use theta_names::codec::{DecodeError, Reader};
use theta_sharing::Encoded;

use crate::founding::FoundingError;

const DOMAIN: &str = "theta/operator/v1";
const HEAD: &str = "# An operator's key: secret, and kept off the node.\n";

/// An operator's public key: an element of ristretto255, not the neutral one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperatorId([u8; 32]);

impl OperatorId {
    /// The key with this encoding.
    ///
    /// # Errors
    /// [`DecodeError`] if it is none.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, DecodeError> {
        match Encoded::<Ristretto255>::decode(&bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(DecodeError::Field("the key of an operator")),
        }
    }

    /// Its encoding.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads bytes that may still be no key, under which nothing verifies then: to look costs a square root, and is for
    /// [`OperatorId::check`], once somebody has signed for it.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(reader.array()?))
    }

    /// Whether what was read is a key.
    pub(crate) fn check(self) -> Result<(), DecodeError> {
        Self::from_bytes(self.0).map(drop)
    }

    /// Whether the signature is this operator's on the transcript. In variable time: all of it is public.
    #[must_use]
    pub fn vartime_verify(&self, signed: &Transcript, signature: &Signature) -> bool {
        Encoded::decode(&self.0).is_ok_and(|key| schnorr::vartime_verify(&key, signed, signature))
    }
}

impl fmt::Debug for OperatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorId(")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// An operator's secret key, for the machine of a person and not for that of a node.
pub struct OperatorKey {
    master: Secret<[u8; 32]>,
    signing: Secret<RistrettoScalar>,
    public: Encoded<Ristretto255>,
}

impl OperatorKey {
    /// The key that follows from 32 secret bytes, which must be uniform and for this purpose alone.
    #[must_use]
    pub fn new(master: Secret<[u8; 32]>) -> Self {
        let transcript = Transcript::new(DOMAIN).with("master", master.expose());
        let signing = Secret::new(transcript.challenge::<RistrettoScalar>());
        let public = Encoded::new(Ristretto255::mul_base(signing.expose()));
        Self { master, signing, public }
    }

    /// The public part, as cards have it.
    ///
    /// # Errors
    /// [`DecodeError`] never: a scalar that is 0 has a probability of 2^-252.
    pub fn id(&self) -> Result<OperatorId, DecodeError> {
        let bytes = <[u8; 32]>::try_from(self.public.bytes());
        OperatorId::from_bytes(bytes.map_err(|_| DecodeError::Field("the key of an operator"))?)
    }

    /// Signs a transcript, whose domain says what it is for. The same transcript gives the same signature.
    #[must_use]
    pub fn sign(&self, signed: &Transcript) -> Signature {
        schnorr::sign(&self.signing, &self.public, signed)
    }

    /// Text to be kept: a line that says what it is, and the 32 bytes as hexadecimal digits.
    #[must_use]
    pub fn to_text(&self) -> Secret<String> {
        let mut text = Secret::new(String::with_capacity(HEAD.len() + 65));
        text.expose_mut().push_str(HEAD);
        for byte in self.master.expose() {
            for digit in [byte >> 4, byte & 15] {
                text.expose_mut().push(char::from_digit(u32::from(digit), 16).unwrap_or('?'));
            }
        }
        text.expose_mut().push('\n');
        text
    }

    /// Reads what [`OperatorKey::to_text`] wrote.
    ///
    /// # Errors
    /// [`FoundingError`]: it is something else, or damaged.
    pub fn from_text(text: &str) -> Result<Self, FoundingError> {
        const WRONG: FoundingError =
            FoundingError::Text("it is not an operator's key, or damaged; theta node init writes them");
        let digits = text.strip_prefix(HEAD).ok_or(WRONG)?.trim_end();
        if digits.len() != 64 {
            return Err(WRONG);
        }
        let mut master = Secret::new([0; 32]);
        let mut digits = digits.chars().map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()));
        for byte in master.expose_mut() {
            let mut digit = || digits.next().flatten().ok_or(WRONG);
            *byte = (digit()? << 4) | digit()?;
        }
        Ok(Self::new(master))
    }
}

impl fmt::Debug for OperatorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorKey(<redacted>)")
    }
}
