//! What is measured of a scheme.

use std::{fmt, str::FromStr};

/// One step of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    /// A dealer's work for a whole key. For RSA without the search for primes.
    KeyGeneration,
    /// Of a plaintext, with everything.
    Encrypt,
    /// All that a party does before it makes a share: parse, hash, check proofs.
    CheckRequest,
    /// A share without its proof, encoded.
    BareShare,
    /// A share, encoded.
    CreateShare,
    /// From bytes.
    DecodeShare,
    /// Of one party.
    VerifyShare,
    /// Of k parties, in a batch.
    VerifyShares,
    /// k shares of the parties 1 to k, the result checked where the scheme can.
    Combine,
    /// The same of k parties spread over 1 to n, whose Lagrange coefficients are long.
    CombineSpread,
    /// A payload, with the key that was combined.
    Decrypt,
    /// A signature or a coin, by whoever has the public key.
    VerifyResult,
    /// A pair of nonces and its commitments, encoded.
    RoundOne,
    /// The commitments of k signers from bytes.
    DecodeCommitments,
    /// One signer's share from k commitments and a message: the whole package and the share.
    RoundTwo,
    /// The package, the sum of k shares, its check.
    Aggregate,
}

impl Operation {
    /// All, in the order of a key's life.
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
