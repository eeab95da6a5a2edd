//! Who does the work for a request.

use core::{fmt, str::FromStr};

/// Who makes shares of a key, and whom they go to. All holders must agree on it: it belongs to the key, and never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Every holder makes a share and sends it to all, and all combine.
    #[default]
    All,
    /// The request draws k + 1 makers of shares, two of which combine and tell the rest; the others stand by. Only for
    /// schemes of one round.
    Quorum,
    /// Exactly k holders, drawn for each program, compute shares of a result with each other, and all but one of them may cheat without learning
    /// anything; whoever cheats stops them. Only for schemes whose holders multiply shared values.
    DishonestMajority,
    /// As [`Self::All`], with less work for each result, but holders that compute together are safe from each other only as long as each of them
    /// follows the protocol: one that does not may learn the key. Only for schemes whose holders multiply shared values.
    Passive,
    /// As [`Self::DishonestMajority`], with less work for each result and the same weakness as [`Self::Passive`]: all but one may put together what
    /// they have seen without learning anything, but one that does not follow the protocol may learn the key.
    PassiveDishonestMajority,
}

/// The text names no delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a delivery is all, quorum, dishonest-majority, passive or passive-dishonest-majority")]
pub struct DeliveryError;

impl Delivery {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::All, Self::Quorum, Self::DishonestMajority, Self::Passive, Self::PassiveDishonestMajority];

    /// The name that people read.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Quorum => "quorum",
            Self::DishonestMajority => "dishonest-majority",
            Self::Passive => "passive",
            Self::PassiveDishonestMajority => "passive-dishonest-majority",
        }
    }

    /// Its code in encodings.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::All => 1,
            Self::Quorum => 2,
            Self::DishonestMajority => 3,
            Self::Passive => 4,
            Self::PassiveDishonestMajority => 5,
        }
    }

    /// Whether holders that compute with each other are safe only from those that follow the protocol.
    #[must_use]
    pub const fn is_passive(self) -> bool {
        matches!(self, Self::Passive | Self::PassiveDishonestMajority)
    }

    /// Whether exactly k holders compute each result, all but one of whom may stand together against it.
    #[must_use]
    pub const fn has_dishonest_majority(self) -> bool {
        matches!(self, Self::DishonestMajority | Self::PassiveDishonestMajority)
    }

    /// The inverse of `code`.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|delivery| delivery.code() == code)
    }
}

impl FromStr for Delivery {
    type Err = DeliveryError;

    fn from_str(name: &str) -> Result<Self, DeliveryError> {
        Self::ALL.into_iter().find(|delivery| delivery.name() == name).ok_or(DeliveryError)
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
