//! Quorums of votes on one value, for everyone to check.

use std::collections::BTreeMap;

use theta_names::codec::{Reader, Writer};
use theta_rounds::{Malformed, PartyId};

use crate::vote::vote_of;
use crate::{Ballot, Digest, Electorate, Signature, VoteKind, read_entries, write_entries};

/// Votes of a quorum for the same value in the same view. Of precommits it is a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoteCertificate {
    ballot: Ballot,
    digest: Digest,
    signatures: BTreeMap<PartyId, Signature>,
}

impl VoteCertificate {
    /// What these signatures make; whether they are a quorum's is for [`VoteCertificate::is_valid`].
    #[must_use]
    pub const fn new(ballot: Ballot, digest: Digest, signatures: BTreeMap<PartyId, Signature>) -> Self {
        Self { ballot, digest, signatures }
    }

    /// Where the votes belong.
    #[must_use]
    pub const fn ballot(&self) -> Ballot {
        self.ballot
    }

    /// Prevotes or precommits.
    #[must_use]
    pub const fn kind(&self) -> VoteKind {
        self.ballot.kind
    }

    /// The view of the votes.
    #[must_use]
    pub const fn view(&self) -> u32 {
        self.ballot.view
    }

    /// What stands for the value.
    #[must_use]
    pub const fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The signatures by signer.
    #[must_use]
    pub const fn signatures(&self) -> &BTreeMap<PartyId, Signature> {
        &self.signatures
    }

    /// Whether a quorum of the members signed.
    #[must_use]
    pub fn is_valid<E: Electorate>(&self, electorate: &E) -> bool {
        self.signatures.len() >= electorate.quorum()
            && self.signatures.keys().all(|author| electorate.members().contains(author))
            && electorate.are_signed(self.ballot, &self.digest, &self.signatures)
    }

    /// Ballot, digest behind its length, and party and signature of each signer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let writer = self.ballot.write(Writer::default()).bytes(&self.digest);
        write_entries(writer, &self.signatures).finish()
    }

    /// Reads what [`VoteCertificate::encode`] wrote. It may still be false.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (ballot, digest) = (Ballot::read(&mut reader)?, vote_of(reader.bytes()?)?);
        let digest = digest.ok_or(Malformed("a certificate for no value"))?;
        let signatures = read_entries(reader, "signers are listed by rising party")?.into_iter().collect();
        Ok(Self { ballot, digest, signatures })
    }
}
