//! A result that waits for its check.

use theta_rounds::PartyId;
use theta_schemes::Claim;
use theta_schemes::keys::Combined;
use theta_sharing::ShareIndex;

use super::gathering::Gathering;
use super::message::ShareMessage;

/// Where an unchecked result comes from.
pub(super) enum Origin {
    /// The shares that are here.
    Shares,
    /// A party sent it.
    Party(PartyId),
}

/// A result that waits for its check, and what comes meanwhile.
pub(super) struct Checking {
    /// The question, until it is asked.
    pub(super) claim: Option<Claim>,
    pub(super) combined: Combined,
    /// Whose shares are in it, where that is known.
    pub(super) contributors: Vec<ShareIndex>,
    pub(super) origin: Origin,
    /// The shares so far; `None` before this party has made its own.
    pub(super) gathering: Option<Gathering>,
    /// Messages that came since. They are looked at only if the result is false: nearly always it is not.
    pub(super) held: Vec<(PartyId, ShareMessage)>,
}

impl Checking {
    pub(super) fn new(
        (claim, contributors): (Claim, Vec<ShareIndex>),
        origin: Origin,
        gathering: Option<Gathering>,
    ) -> Self {
        Self { combined: claim.combined(), claim: Some(claim), contributors, origin, gathering, held: Vec::new() }
    }

    /// Keeps a message; each party has few, since each of its slots is taken once.
    pub(super) fn hold(&mut self, from: PartyId, message: ShareMessage) {
        self.held.push((from, message));
    }

    /// Forgets what a party sent.
    pub(super) fn exclude(&mut self, party: PartyId) {
        self.held.retain(|(from, _)| *from != party);
        if let Some(gathering) = &mut self.gathering {
            gathering.remove(party);
        }
    }
}
