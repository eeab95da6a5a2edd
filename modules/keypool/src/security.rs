//! What the keys of a pool are safe from.

use core::{fmt, str::FromStr};

use theta_names::Delivery;
use theta_schemes::Suite;

/// What holders of a pool's keys may do that turn against them. It makes a difference to ECDSA alone: holders of other keys multiply no shared
/// values, and gain nothing by a lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// Whatever they like.
    #[default]
    Active,
    /// Put together what they have seen. One that does not follow the protocol may learn the key, and nobody notices.
    Passive,
}

/// The text is neither word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("security is \"active\" or \"passive\"")]
pub struct SecurityError;

impl Security {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Passive => "passive",
        }
    }

    /// What a key of this suite is made with, before k and n decide about the majority.
    pub(crate) fn asked(self, suite: Suite) -> Delivery {
        match self {
            Self::Passive if suite.supports(Delivery::Passive) => Delivery::Passive,
            Self::Passive | Self::Active => Delivery::default(),
        }
    }
}

impl FromStr for Security {
    type Err = SecurityError;

    fn from_str(text: &str) -> Result<Self, SecurityError> {
        [Self::Active, Self::Passive].into_iter().find(|known| known.name() == text).ok_or(SecurityError)
    }
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
