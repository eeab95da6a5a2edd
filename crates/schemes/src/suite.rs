//! The names of everything that a key can be.

use core::{fmt, str::FromStr};

/// A scheme on a group in one form: what a key is made for, fixed for its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Suite {
    /// TDH2 (Shoup-Gennaro 2002) on ristretto255.
    Sg02Ristretto255,
    /// TDH2 on G1 of BLS12-381.
    Sg02Bls12381,
    /// BLS signatures, minimal public key: keys in G1, signatures in G2 (what Ethereum uses).
    Bls04MinPk,
    /// BLS signatures, minimal signature: keys in G2, signatures in G1 (what drand uses).
    Bls04MinSig,
    /// Diffie-Hellman coin (Cachin-Kursawe-Shoup 2005) on ristretto255.
    Cks05Ristretto255,
    /// Diffie-Hellman coin on G1 of BLS12-381.
    Cks05Bls12381,
}

/// What a key may be used for; one purpose a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Threshold decryption.
    Decrypt,
    /// Threshold signatures.
    Sign,
    /// Common coins.
    Coin,
}

impl Suite {
    /// Every suite of this build.
    pub const ALL: [Self; 6] = [
        Self::Sg02Ristretto255,
        Self::Sg02Bls12381,
        Self::Bls04MinPk,
        Self::Bls04MinSig,
        Self::Cks05Ristretto255,
        Self::Cks05Bls12381,
    ];

    /// The name in files, on the command line and in every hash.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sg02Ristretto255 => "sg02-ristretto255",
            Self::Sg02Bls12381 => "sg02-bls12381",
            Self::Bls04MinPk => "bls04-bls12381-min-pk",
            Self::Bls04MinSig => "bls04-bls12381-min-sig",
            Self::Cks05Ristretto255 => "cks05-ristretto255",
            Self::Cks05Bls12381 => "cks05-bls12381",
        }
    }

    /// The scheme's short name in the literature.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Sg02Ristretto255 | Self::Sg02Bls12381 => "SG02",
            Self::Bls04MinPk | Self::Bls04MinSig => "BLS04",
            Self::Cks05Ristretto255 | Self::Cks05Bls12381 => "CKS05",
        }
    }

    /// The group's name.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Sg02Ristretto255 | Self::Cks05Ristretto255 => "ristretto255",
            Self::Sg02Bls12381 | Self::Bls04MinPk | Self::Bls04MinSig | Self::Cks05Bls12381 => "bls12-381",
        }
    }

    /// What keys of this suite are for.
    #[must_use]
    pub const fn purpose(self) -> Purpose {
        match self {
            Self::Sg02Ristretto255 | Self::Sg02Bls12381 => Purpose::Decrypt,
            Self::Bls04MinPk | Self::Bls04MinSig => Purpose::Sign,
            Self::Cks05Ristretto255 | Self::Cks05Bls12381 => Purpose::Coin,
        }
    }
}

impl Purpose {
    /// The name that people read.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decrypt => "decrypt",
            Self::Sign => "sign",
            Self::Coin => "coin",
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A suite name that this build does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown suite {0:?}; the known ones are {list}", list = Suite::ALL.map(Suite::name).join(", "))]
pub struct UnknownSuite(pub String);

impl FromStr for Suite {
    type Err = UnknownSuite;

    fn from_str(name: &str) -> Result<Self, UnknownSuite> {
        Self::ALL.into_iter().find(|suite| suite.name() == name).ok_or_else(|| UnknownSuite(name.to_owned()))
    }
}
