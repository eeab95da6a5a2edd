//! The states of keys and of their versions, and how they change.

use core::fmt;

/// What a key is for. A key has one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Threshold decryption.
    Decrypt,
    /// Threshold signatures.
    Sign,
    /// Common coins.
    Coin,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Decrypt, Self::Sign, Self::Coin];

    /// The name that people read.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decrypt => "decrypt",
            Self::Sign => "sign",
            Self::Coin => "coin",
        }
    }

    /// Its code in the store.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Decrypt => 1,
            Self::Sign => 2,
            Self::Coin => 3,
        }
    }

    /// The inverse of `code`.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.code() == code)
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The state of a key and of each of its versions. A version does what its own state and the key's both allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyState {
    /// Made, but not certified by its holders: serves nobody. Only versions have this state.
    Pending,
    /// Serves every request.
    Active,
    /// Rotated out: still decrypts what was encrypted to it, but neither signs nor draws coins.
    Retired,
    /// Serves nobody until a person enables it again.
    Disabled,
    /// The shares are gone for ever; the store keeps the public part.
    Destroyed,
}

impl KeyState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Pending, Self::Active, Self::Retired, Self::Disabled, Self::Destroyed];

    /// The name that people read.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Retired => "retired",
            Self::Disabled => "disabled",
            Self::Destroyed => "destroyed",
        }
    }

    /// Whether an operator may change a key or version from this state to `next`. A pending version becomes active by a certificate
    /// alone, which is no change of an operator. Destroyed is final. A retired version becomes active only through disabled, and the
    /// store refuses that to a version that has a successor.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Active, Self::Retired | Self::Disabled | Self::Destroyed)
            | (Self::Retired, Self::Disabled | Self::Destroyed)
            | (Self::Disabled, Self::Active | Self::Retired | Self::Destroyed)
            | (Self::Pending, Self::Destroyed) => true,
            (Self::Pending, Self::Pending | Self::Active | Self::Retired | Self::Disabled)
            | (Self::Active, Self::Pending | Self::Active)
            | (Self::Retired, Self::Pending | Self::Active | Self::Retired)
            | (Self::Disabled, Self::Pending | Self::Disabled)
            | (Self::Destroyed, Self::Pending | Self::Active | Self::Retired | Self::Disabled | Self::Destroyed) => {
                false
            }
        }
    }

    /// Whether a key of this purpose serves requests in this state.
    #[must_use]
    pub const fn serves(self, purpose: Purpose) -> bool {
        match (self, purpose) {
            (Self::Active, _) | (Self::Retired, Purpose::Decrypt) => true,
            (Self::Retired, Purpose::Sign | Purpose::Coin) | (Self::Pending | Self::Disabled | Self::Destroyed, _) => {
                false
            }
        }
    }

    /// The state that allows what both states allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Destroyed, _) | (_, Self::Destroyed) => Self::Destroyed,
            (Self::Pending, _) | (_, Self::Pending) => Self::Pending,
            (one, another) => one.max(another),
        }
    }

    /// Its code in the store.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Pending => 1,
            Self::Active => 2,
            Self::Retired => 3,
            Self::Disabled => 4,
            Self::Destroyed => 5,
        }
    }

    /// The inverse of `code`.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyState, KeyState::*, Purpose};

    #[test]
    fn all_pairs_of_states() {
        let allowed = [
            (Pending, Destroyed),
            (Active, Retired),
            (Active, Disabled),
            (Active, Destroyed),
            (Retired, Disabled),
            (Retired, Destroyed),
            (Disabled, Active),
            (Disabled, Retired),
            (Disabled, Destroyed),
        ];
        for from in KeyState::ALL {
            for to in KeyState::ALL {
                assert_eq!(from.may_become(to), allowed.contains(&(from, to)), "{from} to {to}");
            }
        }
    }

    #[test]
    fn only_decryption_outlives_rotation() {
        for purpose in Purpose::ALL {
            assert!(Active.serves(purpose));
            assert_eq!(Retired.serves(purpose), purpose == Purpose::Decrypt);
            for state in [Pending, Disabled, Destroyed] {
                assert!(!state.serves(purpose), "{state} {purpose}");
            }
        }
    }

    #[test]
    fn the_stricter_state_holds() {
        for state in KeyState::ALL {
            assert_eq!(Active.and(state), state);
            assert_eq!(Destroyed.and(state), Destroyed);
            assert_eq!(KeyState::from_code(state.code()), Some(state));
            for other in KeyState::ALL {
                assert_eq!(state.and(other), other.and(state));
                for purpose in Purpose::ALL {
                    assert_eq!(state.and(other).serves(purpose), state.serves(purpose) && other.serves(purpose));
                }
            }
        }
        assert_eq!(Retired.and(Disabled), Disabled);
        assert_eq!((KeyState::from_code(0), KeyState::from_code(6)), (None, None));
    }
}
