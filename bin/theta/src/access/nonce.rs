//! Nonces of requests for ceremonies.

use core::{fmt, str::FromStr};

use rand_core::Rng as _;

use crate::{exit::Failure, random};

/// The nonce of a request for a ceremony. It distinguishes the request from all others, for approvers and the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonce(pub(crate) [u8; 32]);

impl Nonce {
    /// Draws a new one.
    pub(crate) fn draw() -> Result<Self, Failure> {
        let mut nonce = [0; 32];
        random::generator()?.fill_bytes(&mut nonce);
        Ok(Self(nonce))
    }
}

impl FromStr for Nonce {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or("a nonce is 32 bytes in hexadecimal")
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}
