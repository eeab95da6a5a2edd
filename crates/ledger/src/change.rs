//! Changes of the members.

use theta_agreement::SIGNATURE_LEN;
use theta_groups::Transcript;
use theta_names::codec::{DecodeError, Reader, Writer};

use crate::founding::{Card, FoundingError, MOST_CARD};
use crate::{Action, LedgerId, Warrant};

/// What the group decides about who belongs to it. The signature of a card in one is
/// checked when the change is, by [`crate::LedgerState::check`]: whoever reads a list of them stops at the first that is false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// A new member. Its number is the one after the highest that was ever given.
    Add(Card),
    /// Another machine in a member's place, with keys of its own and that member's number.
    Replace {
        /// The member's number.
        node: u16,
        /// The card of the machine.
        card: Card,
    },
    /// A member's new card, signed with the key of ceremonies that it has: other addresses, another TLS key.
    Renew {
        /// The member's number.
        node: u16,
        /// The card.
        card: Card,
    },
    /// A member leaves. Its number is not given again.
    Remove {
        /// The member's number.
        node: u16,
    },
}

impl MemberChange {
    /// The tags of actions that are changes of members.
    pub(crate) const TAGS: core::ops::RangeInclusive<u8> = 5..=8;

    /// The member that it is about; `None` for a new one.
    #[must_use]
    pub const fn node(&self) -> Option<u16> {
        match self {
            Self::Add(_) => None,
            Self::Replace { node, .. } | Self::Renew { node, .. } | Self::Remove { node } => Some(*node),
        }
    }

    /// The card that it brings, if it does.
    #[must_use]
    pub const fn card(&self) -> Option<&Card> {
        match self {
            Self::Add(card) | Self::Replace { card, .. } | Self::Renew { card, .. } => Some(card),
            Self::Remove { .. } => None,
        }
    }

    /// Whether its reason has the form of a proof (a signature of 64 bytes, or a warrant) and not that of a client's request, which never has 64 bytes and
    /// begins otherwise than a warrant. Such a change takes nobody's consent, and is refused if the proof is false.
    #[must_use]
    pub fn claims_proof(&self, reason: &[u8]) -> bool {
        match self {
            Self::Renew { .. } => true,
            Self::Replace { .. } => reason.len() == SIGNATURE_LEN || Warrant::is_like(reason),
            Self::Add(_) | Self::Remove { .. } => false,
        }
    }

    /// What a member's operator signs to have its own machine replaced. Nobody else need agree, since the place remains that operator's. `gone` is the
    /// key of ceremonies of the machine that the member has now. It is signed as well so that an operator who has signed for one machine, and then for
    /// another one instead, does not find the first in its place one day.
    #[must_use]
    pub fn signed_by_operator(&self, ledger: &LedgerId, gone: &[u8; 32]) -> Transcript {
        let action = Action::Members(self.clone()).encode();
        Transcript::new("theta/operator/change/v1")
            .with("ledger", ledger.as_bytes())
            .with("gone", gone)
            .with("action", &action)
    }

    /// Its encoding, which is that of the action of an entry.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Add(card) => Writer::new(5).bytes(&card.encode()),
            Self::Replace { node, card } => Writer::new(6).u16(*node).bytes(&card.encode()),
            Self::Renew { node, card } => Writer::new(7).u16(*node).bytes(&card.encode()),
            Self::Remove { node } => Writer::new(8).u16(*node),
        }
        .finish()
    }

    /// Reads what [`MemberChange::encode`] wrote, and nothing else. The signature of a card is still to be checked.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        match Action::decode(bytes)? {
            Action::Members(change) => Ok(change),
            _ => Err(DecodeError::Field("a change of members")),
        }
    }

    /// Reads what stands behind the tag.
    pub(crate) fn read(tag: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match tag {
            5 => Self::Add(read_card(reader)?),
            6 => Self::Replace { node: reader.node()?, card: read_card(reader)? },
            7 => Self::Renew { node: reader.node()?, card: read_card(reader)? },
            8 => Self::Remove { node: reader.node()? },
            _ => return Err(DecodeError::Field("the kind of change of members")),
        })
    }
}

/// Reads a card behind its length, whose signature and operator's key are still to be checked.
pub(crate) fn read_card(reader: &mut Reader<'_>) -> Result<Card, DecodeError> {
    Card::decode_unchecked(reader.bytes_within(MOST_CARD)?).map_err(|error| match error {
        FoundingError::Encoding(error) => error,
        _ => DecodeError::Field("a card"),
    })
}
