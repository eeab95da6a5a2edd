//! What machines ask their callers, and the answers.

use theta_schemes::Claim;

use crate::frost;

/// What a machine asks its caller.
#[derive(Debug)]
pub enum Ask {
    /// The [stock](frost::Stock) of the key's epoch. Some of what is asked has no answer: see [`frost::Ask::is_question`].
    Stock(frost::Ask),
    /// Whether a result is right. Callers check what waits [together](theta_schemes::check_together), soon; nothing is gained by
    /// waiting for more. The answer is [`Supply::Checked`].
    Check(Claim),
}

/// What its caller answers.
#[derive(Debug)]
pub enum Supply {
    /// By the stock.
    Stock(frost::Supply),
    /// Whether the result is right that the machine asked about. It asks about one at a time.
    Checked(bool),
}

impl From<frost::Ask> for Ask {
    fn from(ask: frost::Ask) -> Self {
        Self::Stock(ask)
    }
}

impl From<frost::Supply> for Supply {
    fn from(supply: frost::Supply) -> Self {
        Self::Stock(supply)
    }
}
