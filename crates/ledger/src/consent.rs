//! Consents: who must have agreed to an action before it can be an entry, and their signatures.
//!
//! The members that vote are the group's. Up to k - 1 of a key's holders may lie, whatever the group's k is, so that what moves a key takes
//! the word of as many of its holders as it takes to use it: one of them is honest, and has asked its own policy. They give it beforehand,
//! and it stands in the entry; so the votes need not be anybody's in particular.

use theta_agreement::schnorr::{self, Claim};
use theta_agreement::{Member, MemberKeys, Message, SIGNATURE_LEN, Signature};
use theta_groups::Transcript;
use theta_names::NodeId;
use theta_names::codec::{DecodeError, Reader, Writer};

use crate::{Digest, LedgerId};

/// For how many seconds a consent is given.
const CONSENT_SECONDS: u64 = 5 * 86_400;

/// One member's consent to one action, until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consent {
    /// Whose.
    pub node: NodeId,
    /// The latest time of an entry with it, in seconds since 1970.
    pub until: u64,
    /// Signed with the member's key.
    pub signature: Signature,
}

/// Whose consent an action takes, and that of how many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The numbers of the nodes whose consent counts.
    pub of: Vec<u16>,
    /// How many of them it takes.
    pub needed: usize,
}

impl Demand {
    /// What needs nobody's consent.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { of: Vec::new(), needed: 0 }
    }

    /// Whether a node's consent counts.
    #[must_use]
    pub fn is_of(&self, node: NodeId) -> bool {
        self.of.contains(&node.get())
    }
}

/// What a consent is to: an action, as long as nothing else was decided about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsentSubject {
    /// The ledger.
    pub ledger: LedgerId,
    /// The digest of the action.
    pub action: Digest,
    /// The height of the newest entry about its key; 0 if there is none.
    pub since: u64,
}

fn message(subject: &ConsentSubject, node: NodeId, until: u64) -> Message {
    Transcript::new("theta/ledger/consent/v1")
        .with("ledger", subject.ledger.as_bytes())
        .with("action", &subject.action)
        .with("since", &subject.since.to_be_bytes())
        .with("node", &node.get().to_be_bytes())
        .with("until", &until.to_be_bytes())
}

impl Consent {
    /// A member's consent, from now on for a while. `now` is in seconds since 1970.
    #[must_use]
    pub fn give(subject: &ConsentSubject, keys: &MemberKeys, now: u64) -> Self {
        let (node, until) = (keys.party().node(), now.saturating_add(CONSENT_SECONDS));
        Self { node, until, signature: keys.sign(&message(subject, node, until)) }
    }

    /// Whether it was given by this member.
    #[must_use]
    pub fn is_of(&self, member: &Member, subject: &ConsentSubject) -> bool {
        self.claim(member, subject).is_some_and(|claim| schnorr::vartime_verify_all(&[claim]))
    }

    /// The claim that it was given by this member; `None` if it says that it is another's.
    pub(crate) fn claim<'a>(&'a self, member: &'a Member, subject: &ConsentSubject) -> Option<Claim<'a>> {
        let message = message(subject, self.node, self.until);
        let claim = Claim { key: member.verifying_key(), message, signature: &self.signature };
        (member.node() == self.node).then_some(claim)
    }

    /// Whether an entry of this time may have it.
    #[must_use]
    pub const fn covers(&self, time: u64) -> bool {
        time <= self.until
    }

    fn write(&self, writer: Writer) -> Writer {
        writer.node_id(self.node).u64(self.until).raw(&self.signature)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (node, until) = (reader.node_id()?, reader.u64()?);
        Ok(Self { node, until, signature: reader.array::<SIGNATURE_LEN>()? })
    }
}

/// Their number (2), and each: node (2), until (8), signature (64), by rising node.
pub(crate) fn write_consents(writer: Writer, consents: &[Consent]) -> Writer {
    let count = u16::try_from(consents.len()).unwrap_or(u16::MAX);
    consents.iter().fold(writer.u16(count), |writer, consent| consent.write(writer))
}

pub(crate) fn read_consents(reader: &mut Reader<'_>) -> Result<Vec<Consent>, DecodeError> {
    let count = reader.u16()?;
    let consents = (0..count).map(|_| Consent::read(reader)).collect::<Result<Vec<_>, _>>()?;
    let rising = consents.iter().zip(consents.iter().skip(1)).all(|(one, other)| one.node < other.node);
    if rising { Ok(consents) } else { Err(DecodeError::Field("consents by rising number")) }
}
