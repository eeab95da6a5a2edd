//! Whose transfers these are.

use theta_groups::Transcript;
use theta_names::ShareIndex;

use crate::Misuse;

/// A session: two parties, and which of them sends. Every hash of this crate begins with it, so that nothing of one session means
/// anything in another.
///
/// The id has to be new for each session: sessions with one id and one pair share their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    id: [u8; 32],
    sender: ShareIndex,
    receiver: ShareIndex,
}

impl Session {
    /// The session `id` in which `sender` sends to `receiver`.
    ///
    /// # Errors
    /// [`Misuse::OneParty`].
    pub fn new(id: [u8; 32], sender: ShareIndex, receiver: ShareIndex) -> Result<Self, Misuse> {
        if sender == receiver { Err(Misuse::OneParty) } else { Ok(Self { id, sender, receiver }) }
    }

    /// The same session with the roles exchanged: base OTs go the other way than what is made of them.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { id: self.id, sender: self.receiver, receiver: self.sender }
    }

    /// Begins a hash.
    pub(crate) fn transcript(&self, domain: &'static str) -> Transcript {
        Transcript::new(domain)
            .with("session", &self.id)
            .with("sender", &self.sender.get().to_be_bytes())
            .with("receiver", &self.receiver.get().to_be_bytes())
    }
}
