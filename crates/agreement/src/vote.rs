//! Proposals and votes, as they are signed.

use theta_names::codec::{Reader, Sink, Writer};
use theta_rounds::Malformed;

use crate::{Digest, Electorate, VoteCertificate};

/// What a member says in a view. The numbers stand in what is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum VoteKind {
    /// What to decide, of the view's leader.
    Proposal = 5,
    /// The first vote.
    Prevote = 6,
    /// The second vote; a quorum of them is the decision.
    Precommit = 7,
}

/// Where a proposal or vote belongs: an honest member says one thing at most under each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// What it is.
    pub kind: VoteKind,
    /// In which view, from 0.
    pub view: u32,
}

impl Ballot {
    /// That kind, in that view.
    #[must_use]
    pub const fn new(kind: VoteKind, view: u32) -> Self {
        Self { kind, view }
    }

    /// Kind (1), view (4).
    pub fn write<S: Sink>(self, writer: Writer<S>) -> Writer<S> {
        writer.u8(self.kind as u8).u32(self.view)
    }

    /// Reads what [`Ballot::write`] wrote.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let kind = match reader.u8()? {
            5 => VoteKind::Proposal,
            6 => VoteKind::Prevote,
            7 => VoteKind::Precommit,
            _ => return Err(Malformed("no such vote")),
        };
        Ok(Self { kind, view: reader.u32()? })
    }
}

/// Reads a vote's body: a digest, or nothing for none.
pub(crate) fn vote_of(body: &[u8]) -> Result<Option<Digest>, Malformed> {
    if body.is_empty() {
        return Ok(None);
    }
    Digest::try_from(body).map(Some).map_err(|_| Malformed("a vote is a digest or nothing"))
}

/// A proposal: a value, and the quorum of prevotes that it had in an earlier view.
pub(crate) struct Proposal {
    pub(crate) value: Vec<u8>,
    pub(crate) polka: Option<VoteCertificate>,
}

impl Proposal {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let writer = Writer::default().bytes(&self.value);
        self.polka.iter().fold(writer, |writer, polka| writer.bytes(&polka.encode())).finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let value = reader.bytes()?.to_vec();
        let polka = if reader.is_empty() { None } else { Some(VoteCertificate::decode(reader.bytes()?)?) };
        Ok(reader.end(Self { value, polka })?)
    }
}

/// Checks the body of a proposal or vote. What is wrong with it is its author's offence; nobody honest says it.
///
/// # Errors
/// [`Malformed`]: it cannot be read, or repeats a value with a false certificate.
pub fn check<E: Electorate>(electorate: &E, ballot: Ballot, body: &[u8]) -> Result<(), Malformed> {
    if ballot.kind != VoteKind::Proposal {
        return vote_of(body).map(drop);
    }
    let Proposal { value, polka } = Proposal::decode(body)?;
    let Some(polka) = polka else { return Ok(()) };
    let earlier = polka.kind() == VoteKind::Prevote && polka.view() < ballot.view;
    let same = *polka.digest() == electorate.value_digest(&value);
    if earlier && same && polka.is_valid(electorate) { Ok(()) } else { Err(Malformed("a proposal with a false polka")) }
}
