//! What machines ask their callers, and the answers.

use core::fmt;

use theta_schemes::Claim;

use crate::{ecdsa, frost};

/// What a machine asks its caller.
pub enum Ask {
    /// The [stock](crate::Stock) of the key's epoch. Some of what is asked has no answer: see [`frost::Ask::is_question`].
    Nonces(frost::Ask),
    /// Whether a result is right. Callers check what waits [together](theta_schemes::check_together), soon; nothing is gained by
    /// waiting for more. The answer is [`Supply::Checked`].
    Check(Claim),
    /// The [stock](crate::Stock) of the key's epoch. Some of what is asked has no answer: see [`ecdsa::Ask`].
    Presignatures(ecdsa::Ask),
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nonces(ask) => f.debug_tuple("Nonces").field(ask).finish(),
            Self::Check(claim) => f.debug_tuple("Check").field(claim).finish(),
            Self::Presignatures(ask) => f.debug_tuple("Presignatures").field(ask).finish(),
        }
    }
}

/// What its caller answers.
#[derive(Debug)]
pub enum Supply {
    /// Nonces and commitments of FROST, by the stock.
    Nonces(frost::Supply),
    /// Whether the result is right that the machine asked about. It asks about one at a time.
    Checked(bool),
    /// A presignature of ECDSA, by the stock.
    Presignature(ecdsa::Supply),
}

/// Material made in advance that is taken out to sign, once it is certain that it never signs again. `into()` is the answer then; otherwise
/// [`Used::refused`] is.
#[derive(Debug)]
pub enum Used {
    /// Nonces of FROST.
    Nonces(frost::Used),
    /// A presignature of ECDSA.
    Presignature(ecdsa::Used),
}

impl Used {
    /// The day on which it was made, or an earlier one, in days since 1970.
    #[must_use]
    pub const fn day(&self) -> u32 {
        match self {
            Self::Nonces(used) => used.day,
            Self::Presignature(used) => used.day,
        }
    }

    /// What is public of it, and no other material's.
    #[must_use]
    pub fn name(&self) -> Vec<u8> {
        match self {
            Self::Nonces(used) => used.nonces.encoded_commitments(),
            Self::Presignature(used) => used.presignature.id().to_vec(),
        }
    }

    /// The answer that it may not sign; it is wiped.
    #[must_use]
    pub fn refused(self) -> Supply {
        match self {
            Self::Nonces(used) => Supply::Nonces(used.refused()),
            Self::Presignature(used) => Supply::Presignature(used.refused()),
        }
    }
}

impl From<Used> for Supply {
    fn from(used: Used) -> Self {
        match used {
            Used::Nonces(used) => Self::Nonces(used.into()),
            Used::Presignature(used) => Self::Presignature(used.into()),
        }
    }
}

impl From<frost::Ask> for Ask {
    fn from(ask: frost::Ask) -> Self {
        Self::Nonces(ask)
    }
}

impl From<frost::Supply> for Supply {
    fn from(supply: frost::Supply) -> Self {
        Self::Nonces(supply)
    }
}
