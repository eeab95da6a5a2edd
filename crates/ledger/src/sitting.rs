//! The members that decide the entry of one height.

use theta_agreement::{Ballot, Digest, Electorate, Member, MemberKeys, Message, Signature, schnorr};
use theta_groups::Transcript;
use theta_names::codec::Writer;
use theta_rounds::PartyId;

use crate::{Entry, LedgerId};

/// The members of the ledger at one height. Every signature is on ledger, height and entry before, so that no vote counts anywhere
/// else.
#[derive(Clone, Debug)]
pub(crate) struct Sitting {
    ledger: LedgerId,
    height: u64,
    previous: Digest,
    members: Vec<Member>,
    parties: Vec<PartyId>,
    faulty: usize,
}

impl Sitting {
    pub(crate) fn new(ledger: LedgerId, height: u64, previous: Digest, members: &[Member], faulty: usize) -> Self {
        let parties = members.iter().map(Member::party).collect();
        Self { ledger, height, previous, members: members.to_vec(), parties, faulty }
    }

    pub(crate) const fn height(&self) -> u64 {
        self.height
    }

    fn message(&self, author: PartyId, ballot: Ballot, body: &[u8]) -> Message {
        Transcript::new("theta/ledger/vote/v1")
            .with("ledger", self.ledger.as_bytes())
            .with("height", &self.height.to_be_bytes())
            .with("previous", &self.previous)
            .with("author", &author.get().to_be_bytes())
            .with("ballot", &ballot.write(Writer::default()).finish())
            .with("body", body)
    }

    pub(crate) fn sign(&self, keys: &MemberKeys, ballot: Ballot, body: &[u8]) -> Signature {
        keys.sign(&self.message(keys.party(), ballot, body))
    }
}

impl Electorate for Sitting {
    fn members(&self) -> &[PartyId] {
        &self.parties
    }

    fn faulty(&self) -> usize {
        self.faulty
    }

    /// The turn goes round with the heights, so that a leader that is away costs one view of n heights and not of all.
    fn first_leader(&self) -> usize {
        let n = u64::try_from(self.parties.len().max(1)).unwrap_or(1);
        usize::try_from(self.height.checked_rem(n).unwrap_or(0)).unwrap_or(0)
    }

    /// The ledger stands still until the entry is decided.
    fn last_view(&self) -> u32 {
        u32::MAX
    }

    fn value_digest(&self, value: &[u8]) -> Digest {
        Entry::digest_of(&self.ledger, value)
    }

    fn is_signed(&self, author: PartyId, ballot: Ballot, body: &[u8], signature: &Signature) -> bool {
        let member = self.members.iter().find(|member| member.party() == author);
        let message = self.message(author, ballot, body);
        member.is_some_and(|member| schnorr::vartime_verify(member.verifying_key(), &message, signature))
    }
}
