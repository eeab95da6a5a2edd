//! Bearer tokens: 256 random bits that name a client.
//!
//! The policy file holds hashes, so that its readers cannot act as the clients. One plain hash is enough: slow and salted
//! hashes protect what people choose from guessing, and nobody guesses 256 random bits. The text form makes sure that no
//! token is a password that a person made up. The time to find a token's hash in a table depends on hashes alone, which
//! reveal nothing about tokens.

use core::{fmt, ops::Range, str::FromStr};

use base64ct::{Base64UrlUnpadded, Encoding};
use rand_core::CryptoRng;
use theta_groups::Secret;
use zeroize::Zeroize;

use crate::Digest;

const PREFIX: &str = "theta-token-";
/// The length of the text form, in bytes.
const LEN: usize = PREFIX.len() + 43;
const HASH_PREFIX: &str = "sha256:";
const DOMAIN: &str = "theta/token/v1";

/// A token. Text form: `theta-token-` and 43 characters of Base64 for URLs.
pub struct Token(Secret<[u8; 32]>);

/// The text is not a token. It is not repeated here, because it may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token; it is written as theta-token- and 43 more characters")]
pub struct TokenError;

impl Token {
    /// A new token.
    pub fn generate(rng: &mut impl CryptoRng) -> Self {
        let mut bytes = Secret::new([0; 32]);
        rng.fill_bytes(bytes.expose_mut());
        Self(bytes)
    }

    /// The text form, for the client alone.
    #[must_use]
    pub fn to_text(&self) -> Secret<String> {
        let mut digits = Base64UrlUnpadded::encode_string(self.0.expose());
        let mut text = String::with_capacity(PREFIX.len() + digits.len());
        text.push_str(PREFIX);
        text.push_str(&digits);
        digits.zeroize();
        Secret::new(text)
    }

    /// The hash that stands in the policy file.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash(Digest::in_domain(DOMAIN, self.0.expose()))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let digits = text.strip_prefix(PREFIX).ok_or(TokenError)?;
        let mut bytes = Secret::new([0; 32]);
        match Base64UrlUnpadded::decode(digits, bytes.expose_mut()) {
            Ok(decoded) if decoded.len() == 32 => Ok(Self(bytes)),
            _ => Err(TokenError),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(<redacted>)")
    }
}

/// The place, in bytes, of the first whole token in a text that should hold none. An error about the text must not repeat it.
pub fn find_token(text: &str) -> Option<Range<usize>> {
    text.match_indices(PREFIX)
        .map(|(place, _)| place..place.saturating_add(LEN))
        .find(|place| text.get(place.clone()).is_some_and(|token| token.parse::<Token>().is_ok()))
}

/// The hash of a token: SHA-256 of `theta/token/v1`, a byte 0 and the token's 32 bytes. Text form: `sha256:` and 64
/// hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenHash(Digest);

/// The text is not a token's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token's hash; it is written as sha256: and 64 hexadecimal digits")]
pub struct TokenHashError;

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HASH_PREFIX}{}", self.0)
    }
}

impl FromStr for TokenHash {
    type Err = TokenHashError;

    fn from_str(text: &str) -> Result<Self, TokenHashError> {
        let digest = text.strip_prefix(HASH_PREFIX).and_then(|digits| digits.parse().ok());
        digest.map(Self).ok_or(TokenHashError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_hashes_round_trip() {
        let token = Token(Secret::new(core::array::from_fn(|i| u8::try_from(i).unwrap())));
        let text = token.to_text();
        assert_eq!(text.expose(), "theta-token-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
        assert_eq!(text.expose().parse::<Token>().unwrap().hash(), token.hash());
        // From Python: hashlib.sha256(b"theta/token/v1\0" + bytes(range(32))).hexdigest()
        let expected = "cdb3971fdbccdaa79c64f4342ed773c8f311425ea7e7ec97909a1cee94baa2f7";
        assert_eq!(token.hash().to_string(), format!("sha256:{expected}"));
        assert_eq!(token.hash().to_string().parse(), Ok(token.hash()));
        assert_eq!(format!("{token:?}"), "Token(<redacted>)");
    }

    #[test]
    fn what_people_make_up_is_no_token() {
        let good = "theta-token-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
        for bad in ["", "hunter2", "theta-token-hunter2", &good[12..], &format!("{good}A"), &good.replace("Hh8", "Hh9")]
        {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
        assert!("md5:00".parse::<TokenHash>().is_err() && "0".repeat(64).parse::<TokenHash>().is_err());
    }
}
