//! Tokens: 256 random bits that name a client, and that nobody is sent.
//!
//! A token is the seed of an Ed25519 key. Policies have the public key; a node gets a [`TokenProof`], which is good for that node alone
//! and for an hour at most. So none of the nodes, and no reader of a policy, can act as the client. The text form makes sure that no
//! token is a password that a person made up, which could be guessed from the public key. Encodings: `spec/policy.md`, Tokens.

use core::{fmt, ops::Range, str::FromStr};

use base64ct::{Base64UrlUnpadded, Encoding};
use rand_core::CryptoRng;
use theta_groups::Secret;
use theta_names::codec::{DecodeError, Reader, Writer};
use zeroize::Zeroize;

use crate::{Invalid, Signature, SigningKey, SigningKeyError, UnixTime, Validity, VerifyingKey, signing};

const PREFIX: &str = "theta-token2-";
/// That of tokens which clients of before sent whole to every node: some node may have kept any of them, and such a client would send one again.
const OLD_PREFIX: &str = "theta-token-";
/// What comes after it, in bytes.
const DIGITS: usize = 43;
const DOMAIN: &str = "theta/token-proof/v1";
/// The longest that a proof is good for: an hour, in milliseconds.
pub const MOST_PROOF_LIFETIME: u64 = 3_600_000;
/// The length of an encoded proof, in bytes.
const PROOF_LEN: usize = 32 + 8 + 8 + 64;
/// The length of its text form.
const PROOF_TEXT_LEN: usize = 150;

/// A token. Text form: `theta-token2-` and 43 characters of Base64 for URLs.
pub struct Token(SigningKey);

/// Why a text is no token. It is not repeated here, because it may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is none.
    #[error("not a token; it is written as theta-token2- and 43 more characters")]
    Malformed,
    /// It is one of those that were sent.
    #[error(
        "this token is of before tokens proved themselves, and every node that was asked has had it whole: make a new one (theta token new)"
    )]
    SentWhole,
}

impl Token {
    /// A new token.
    ///
    /// # Errors
    /// As [`SigningKey::generate`].
    pub fn generate(rng: &mut impl CryptoRng) -> Result<Self, SigningKeyError> {
        SigningKey::generate(rng).map(Self)
    }

    /// The text form, for the client alone.
    #[must_use]
    pub fn to_text(&self) -> Secret<String> {
        let mut digits = Base64UrlUnpadded::encode_string(self.0.seed().expose());
        let mut text = String::with_capacity(PREFIX.len() + digits.len());
        text.push_str(PREFIX);
        text.push_str(&digits);
        digits.zeroize();
        Secret::new(text)
    }

    /// The key that stands in the policy file.
    #[must_use]
    pub fn key(&self) -> TokenKey {
        self.0.verifying_key().into()
    }

    /// Proves possession to the node whose TLS key has this fingerprint (SHA-256 of its `SubjectPublicKeyInfo`), for this time. The proof is
    /// to be sent to that node alone: until the end of its time, whoever has it is this client there.
    #[must_use]
    pub fn prove(&self, node: &[u8; 32], validity: Validity) -> TokenProof {
        let signature = self.0.sign(&signed(node, validity, self.key()));
        TokenProof { key: self.key(), validity, signature }
    }
}

/// What a proof signs.
fn signed(node: &[u8; 32], validity: Validity, key: TokenKey) -> Vec<u8> {
    Writer::of(DOMAIN).raw(node).u64(validity.from.0).u64(validity.until.0).raw(&key.0).finish()
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let none = if is_old(text) { TokenError::SentWhole } else { TokenError::Malformed };
        let digits = text.strip_prefix(PREFIX).ok_or(none)?;
        let mut seed = Secret::new([0; 32]);
        match Base64UrlUnpadded::decode(digits, seed.expose_mut()) {
            Ok(decoded) if decoded.len() == 32 => SigningKey::from_seed(seed).map(Self).map_err(|_| none),
            _ => Err(none),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(<redacted>)")
    }
}

fn is_old(text: &str) -> bool {
    let mut bytes = Secret::new([0; 32]);
    let digits = text.strip_prefix(OLD_PREFIX).filter(|digits| digits.len() == DIGITS);
    digits.is_some_and(|digits| Base64UrlUnpadded::decode(digits, bytes.expose_mut()).is_ok())
}

/// The place, in bytes, of the first whole token in a text that should hold none. An error about the text must not repeat it.
pub fn find_token(text: &str) -> Option<Range<usize>> {
    let find = |prefix: &'static str| {
        let places = text.match_indices(prefix);
        let places = places.map(move |(place, _)| place..place.saturating_add(prefix.len()).saturating_add(DIGITS));
        places.filter(|place| {
            let found = text.get(place.clone());
            found.is_some_and(|found| !matches!(found.parse::<Token>(), Err(TokenError::Malformed)))
        })
    };
    find(PREFIX).chain(find(OLD_PREFIX)).min_by_key(|place| place.start)
}

/// The public key of a token. Text form, as in policies: that of a [`VerifyingKey`]. One that comes out of a proof is a claim, of which no more
/// than its bytes is known: looking it up costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenKey([u8; 32]);

/// The text is not the key of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the key of a token; it is written as ed25519: and 64 hexadecimal digits")]
pub struct TokenKeyError;

impl FromStr for TokenKey {
    type Err = TokenKeyError;

    fn from_str(text: &str) -> Result<Self, TokenKeyError> {
        text.parse::<VerifyingKey>().map(Self::from).map_err(|_| TokenKeyError)
    }
}

impl From<VerifyingKey> for TokenKey {
    fn from(key: VerifyingKey) -> Self {
        Self(*key.as_bytes())
    }
}

impl fmt::Display for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", signing::PREFIX, hex::encode(self.0))
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Proves to one node that its sender has a token. Text form: Base64 for URLs of its 112 bytes, 150 characters. `Debug` does not show the
/// signature, since whoever has the proof can use it at that node.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenProof {
    key: TokenKey,
    validity: Validity,
    signature: Signature,
}

/// The key of a token that has proven itself: only [`TokenProof::verify`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenToken {
    key: TokenKey,
    until: UnixTime,
}

/// Why a token is not believed. Nothing of what was sent is repeated here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenProofError {
    /// The text is not a proof; it may be a token.
    #[error(
        "this is not a token's proof, which every node takes in place of the token: use a client that makes one, or theta token proof"
    )]
    Malformed,
    /// It is not valid now, or for too long.
    #[error("the token's proof is of another time: {0}; compare the clocks of the client and of this node")]
    Invalid(#[from] Invalid),
    /// One was false before on the same connection.
    #[error("a false proof of a token came by this connection before, and no other one is looked at: connect anew")]
    Distrusted,
    /// So many came by the same connection that this one is not looked at.
    #[error(
        "more proofs of tokens came by this connection in a minute than this node verifies: send one proof with all requests, and make another one after a quarter of an hour"
    )]
    TooManyByConnection,
    /// There were so many of the same token that this one is not looked at.
    #[error(
        "this node verified more proofs of this token in a minute than it does for one: send one proof with all requests, and make another one after a quarter of an hour"
    )]
    TooManyOfToken,
    /// Another token's owner made it, or it was made for another node.
    #[error(
        "the token's proof is false, or made for another node than this: it names the TLS key of the node that it is sent to"
    )]
    False,
}

impl TokenProof {
    /// The key that it claims.
    #[must_use]
    pub const fn key(&self) -> TokenKey {
        self.key
    }

    /// Verifies it at the node whose TLS key has this fingerprint.
    ///
    /// # Errors
    /// [`TokenProofError::Invalid`] or [`TokenProofError::False`].
    pub fn verify(&self, node: &[u8; 32], now: UnixTime) -> Result<ProvenToken, TokenProofError> {
        self.validity.check_bounded(now, MOST_PROOF_LIFETIME)?;
        let key = VerifyingKey::from_bytes(self.key.0).ok_or(TokenProofError::False)?;
        key.verify(&signed(node, self.validity, self.key), &self.signature).map_err(|_| TokenProofError::False)?;
        Ok(ProvenToken { key: self.key, until: self.validity.until })
    }

    /// Its text form. It is for one node's ears.
    #[must_use]
    pub fn to_text(&self) -> String {
        let fields = Writer::onto(Vec::with_capacity(PROOF_LEN)).raw(&self.key.0);
        let fields = fields.u64(self.validity.from.0).u64(self.validity.until.0).raw(self.signature.as_bytes());
        Base64UrlUnpadded::encode_string(&fields.finish())
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let key = TokenKey(reader.array()?);
        let validity = Validity { from: UnixTime(reader.u64()?), until: UnixTime(reader.u64()?) };
        let signature = Signature(reader.array()?);
        reader.end(Self { key, validity, signature })
    }
}

impl FromStr for TokenProof {
    type Err = TokenProofError;

    fn from_str(text: &str) -> Result<Self, TokenProofError> {
        // The length first: nothing longer is read.
        let mut bytes = [0; PROOF_LEN];
        let text = Some(text).filter(|text| text.len() == PROOF_TEXT_LEN).ok_or(TokenProofError::Malformed)?;
        let bytes = Base64UrlUnpadded::decode(text, &mut bytes).map_err(|_| TokenProofError::Malformed)?;
        Self::decode(bytes).map_err(|_| TokenProofError::Malformed)
    }
}

impl fmt::Debug for TokenProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenProof({}, {}..{})", self.key, self.validity.from, self.validity.until)
    }
}

impl ProvenToken {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> TokenKey {
        self.key
    }

    /// The first moment at which the proof is good no more.
    #[must_use]
    pub const fn until(&self) -> UnixTime {
        self.until
    }
}

#[cfg(test)]
mod tests;
