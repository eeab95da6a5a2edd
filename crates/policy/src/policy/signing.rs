//! Signing rules, which every allowed signature with a key must obey, whichever rule allows it.

use core::fmt;

use theta_names::{Operation, SlotOrder};
use theta_statements::{Ask, Digest, Name};

use crate::Reason;
use crate::SlotDecision;
use crate::operation::OperationSet;
use crate::pattern::KeyPattern;
use crate::slots::{SlotClaim, SlotRace, SlotScope, SlotStanding, SlotState};

const DOMAIN: &str = "theta/slot/v1";

#[derive(Clone, Debug)]
pub(crate) struct SigningRule {
    pub(crate) name: Name,
    pub(crate) keys: Vec<KeyPattern>,
    pub(crate) operations: OperationSet,
    pub(crate) slot: SlotSource,
    pub(crate) order: SlotOrder,
    /// Whether the total order of the nodes' hosts says which of several messages a node promises.
    pub(crate) ordered: bool,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// Where the slot of a message is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotSource {
    /// In the request: the client is trusted to say which slot its message is for.
    Claimed,
    /// In the first eight bytes of the message, big-endian.
    MessagePrefix,
    /// In the request; the message must be the SHA-256 digest of its eight bytes, big-endian.
    MessageSha256,
}

impl SlotSource {
    pub(crate) const ALL: [Self; 3] = [Self::Claimed, Self::MessagePrefix, Self::MessageSha256];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::MessagePrefix => "message-prefix",
            Self::MessageSha256 => "message-sha256",
        }
    }
}

impl fmt::Display for SigningRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.order == SlotOrder::Increasing { ", upwards only" } else { "" };
        let race = if self.ordered { ", the first in the host's order" } else { "" };
        write!(f, "one message for a slot from {} to {} ({}){order}{race}", self.first, self.last, self.slot.name())
    }
}

impl SigningRule {
    pub(crate) fn covers(&self, ask: &Ask<'_>) -> bool {
        // What holds for messages holds for their digests: no rule is got around by hashing first.
        let operation = if ask.operation == Operation::SignDigest { Operation::Sign } else { ask.operation };
        self.operations.contains(operation) && self.keys.iter().any(|pattern| pattern.matches(ask.key))
    }

    /// The slot of the ask, checked against the rule; needs no state.
    pub(crate) fn slot_of(&self, ask: &Ask<'_>) -> Result<u64, Reason> {
        let signing = || self.name.clone();
        // The slot is in the message, and the message is not here.
        if ask.operation == Operation::SignDigest && self.slot != SlotSource::Claimed {
            return Err(Reason::SlotUnreadable { signing: signing() });
        }
        let slot = match self.slot {
            SlotSource::Claimed => ask.slot,
            SlotSource::MessagePrefix => {
                let prefix = ask.statement.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
                let prefix = prefix.ok_or_else(|| Reason::SlotUnreadable { signing: signing() })?;
                if ask.slot.is_some_and(|slot| slot != prefix) {
                    return Err(Reason::SlotDiffers { signing: signing() });
                }
                Some(prefix)
            }
            SlotSource::MessageSha256 => {
                let digest = ask.slot.map(|slot| Digest::of(&slot.to_be_bytes()));
                if digest.is_some_and(|digest| digest.0 != ask.statement) {
                    return Err(Reason::SlotDiffers { signing: signing() });
                }
                ask.slot
            }
        };
        let slot = slot.ok_or_else(|| Reason::SlotMissing { signing: signing() })?;
        if (self.first..=self.last).contains(&slot) {
            Ok(slot)
        } else {
            Err(Reason::SlotOutside { signing: signing(), slot, first: self.first, last: self.last })
        }
    }

    /// The slot that an allowed ask takes, if the hosts' order says who is first; `None` if it does not, or the ask has no slot.
    pub(crate) fn race(&self, ask: &Ask<'_>, statement: Digest) -> Option<SlotRace> {
        let slot = self.slot_of(ask).ok().filter(|_| self.ordered)?;
        let key = ask.key.unwrap_or_default().to_owned();
        Some(SlotRace { key, rule: self.name.clone(), slot, digest: digest_of(ask, statement) })
    }

    /// Gives the slot to this message if it is free, and says how the slot stands.
    pub(crate) fn take(
        &self,
        ask: &Ask<'_>,
        statement: Digest,
        slot: u64,
        state: &impl SlotState,
    ) -> Result<SlotClaim, Reason> {
        let key = ask.key.unwrap_or_default();
        let scope = SlotScope { key, rule: self.name.as_str() };
        let digest = digest_of(ask, statement);
        let standing = match state.decide(scope, slot, digest, self.order) {
            Ok(SlotDecision::Allowed | SlotDecision::Same) => SlotStanding::Taken,
            Ok(SlotDecision::Conflict { previous }) => SlotStanding::Contested { previous: Digest(previous) },
            Ok(SlotDecision::Below { mark }) => SlotStanding::Over { mark },
            Err(error) => {
                let (signing, problem) = (self.name.clone(), error.to_string());
                return Err(Reason::SlotsUnavailable { signing, problem });
            }
        };
        Ok(SlotClaim { key: key.to_owned(), rule: self.name.clone(), slot, digest, standing })
    }
}

/// What a slot is given to. The operation is hashed, too: a message to sign and a coin of the same bytes are different.
fn digest_of(ask: &Ask<'_>, statement: Digest) -> Digest {
    let mut decided = vec![ask.operation.code()];
    decided.extend_from_slice(&statement.0);
    Digest::in_domain(DOMAIN, &decided)
}
