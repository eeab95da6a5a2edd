//! The steps of a scheme that are measured.

use std::{fmt, str::FromStr};

/// One step of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// Dealing a whole key; for RSA without the search for primes.
    KeyGeneration,
    /// Encrypting a plaintext, payload included.
    Encrypt,
    /// All that a party does before it makes a share: parsing, hashing, checking proofs.
    CheckRequest,
    /// Making a share without its proof, and encoding it.
    BareShare,
    /// Making a share with its proof, and encoding it.
    CreateShare,
    /// Decoding a share.
    DecodeShare,
    /// Verifying the share of one party.
    VerifyShare,
    /// Verifying the shares of k parties, in a batch.
    VerifyShares,
    /// Combining the shares of parties 1 to k, and checking the result where the scheme can.
    Combine,
    /// Combining the shares of k parties spread over 1 to n, whose Lagrange coefficients are long.
    CombineSpread,
    /// Opening a payload with the key that was combined.
    Decrypt,
    /// Verifying a signature or a coin with the public key.
    VerifyResult,
    /// Making a pair of nonces and its commitments, and encoding these.
    RoundOne,
    /// Decoding the commitments of k signers.
    DecodeCommitments,
    /// Making one signer's share from k commitments and a message, the package included.
    RoundTwo,
    /// Making the package, adding k shares, and checking the signature.
    Aggregate,
}

impl Operation {
    /// All operations, in the order of a key's life.
    pub(super) const ALL: [Self; 16] = [
        Self::KeyGeneration,
        Self::Encrypt,
        Self::CheckRequest,
        Self::BareShare,
        Self::CreateShare,
        Self::DecodeShare,
        Self::VerifyShare,
        Self::VerifyShares,
        Self::Combine,
        Self::CombineSpread,
        Self::Decrypt,
        Self::VerifyResult,
        Self::RoundOne,
        Self::DecodeCommitments,
        Self::RoundTwo,
        Self::Aggregate,
    ];

    /// The name in files.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::KeyGeneration => "key generation",
            Self::Encrypt => "encrypt",
            Self::CheckRequest => "check request",
            Self::BareShare => "create bare share",
            Self::CreateShare => "create share",
            Self::DecodeShare => "decode share",
            Self::VerifyShare => "verify one share",
            Self::VerifyShares => "verify k shares",
            Self::Combine => "combine",
            Self::CombineSpread => "combine spread",
            Self::Decrypt => "decrypt payload",
            Self::VerifyResult => "verify result",
            Self::RoundOne => "round 1",
            Self::DecodeCommitments => "decode commitments",
            Self::RoundTwo => "round 2",
            Self::Aggregate => "aggregate",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
            .ok_or_else(|| format!("no operation {name:?}: there are {}", Self::ALL.map(Self::name).join(", ")))
    }
}
