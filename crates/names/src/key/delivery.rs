//! Who does the work for a request.

use core::{fmt, str::FromStr};

/// Who makes shares of a key, and whom they go to. All holders must agree on it: it belongs to the key, and never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Every holder makes a share and sends it to all, and all combine.
    #[default]
    All,
    /// The request draws k + 1 makers of shares, two of which combine and tell the rest; the others stand by. Only for
    /// schemes whose combined values can be checked.
    Quorum,
    /// Exactly k holders, drawn for each program, compute shares of a result with each other, and all but one of them may cheat without learning
    /// anything; whoever cheats stops them. Only for schemes whose holders multiply shared values.
    DishonestMajority,
}

/// The text names no delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a delivery is all, quorum or dishonest-majority")]
pub struct DeliveryError;

impl Delivery {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::All, Self::Quorum, Self::DishonestMajority];

    /// The name that people read.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Quorum => "quorum",
            Self::DishonestMajority => "dishonest-majority",
        }
    }

    /// Its code in encodings.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::All => 1,
            Self::Quorum => 2,
            Self::DishonestMajority => 3,
        }
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
