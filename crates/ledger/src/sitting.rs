//! The members that decide the entry of one height.

use std::collections::BTreeMap;

use theta_agreement::schnorr::{self, Claim};
use theta_agreement::{Ballot, Digest, Electorate, Member, MemberKeys, Message, Signature, VoteCertificate};
use theta_groups::Transcript;
use theta_names::NodeId;
use theta_names::codec::Writer;
use theta_rounds::PartyId;

use crate::{Entry, LedgerId};

/// The members that may vote with two keys, and the second ones.
type StandIns = BTreeMap<PartyId, Vec<Member>>;

/// A machine, by its key of ceremonies.
pub(crate) type MachineKey = [u8; 32];

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
    /// Other machines that vote in the place of a member's.
    stand_ins: StandIns,
}

impl Sitting {
    pub(crate) fn new(ledger: LedgerId, height: u64, previous: Digest, members: &[Member], faulty: usize) -> Self {
        let parties = members.iter().map(Member::party).collect();
        Self { ledger, height, previous, members: members.to_vec(), parties, faulty, stand_ins: StandIns::new() }
    }

    /// From now on the machine with this key votes for its member, too.
    pub(crate) fn stand_in(&mut self, member: Member) {
        let others = self.stand_ins.entry(member.party()).or_default();
        if !others.contains(&member) {
            others.push(member);
        }
    }

    /// The members that are stood in for.
    pub(crate) fn stood_in_for(&self) -> impl Iterator<Item = NodeId> {
        self.stand_ins.keys().map(|party| party.node())
    }

    /// Whether a certificate has the vote of the machine with these keys, and not of another one in its place.
    pub(crate) fn has_vote_of(&self, keys: &MemberKeys, certificate: &VoteCertificate) -> bool {
        certificate.signatures().get(&keys.party()).is_some_and(|signature| {
            let message = self.message(keys.party(), certificate.ballot(), certificate.digest());
            schnorr::vartime_verify(keys.member().verifying_key(), &message, signature)
        })
    }

    /// Whether two machines may vote for a member.
    pub(crate) fn is_double(&self, party: PartyId) -> bool {
        self.stand_ins.contains_key(&party)
    }

    /// Whether a key of ceremonies is that of a machine which votes for a member.
    pub(crate) fn is_machine_of(&self, party: PartyId, key: &MachineKey) -> bool {
        self.machines(party).any(|member| member.verifying_key().bytes() == key)
    }

    /// Whether it is that of a machine which votes in the place of the member's.
    pub(crate) fn is_stand_in(&self, party: PartyId, key: &MachineKey) -> bool {
        let others = self.stand_ins.get(&party).map(Vec::as_slice).unwrap_or_default();
        others.iter().any(|member| member.verifying_key().bytes() == key)
    }

    fn machines(&self, party: PartyId) -> impl Iterator<Item = &Member> {
        let others = self.stand_ins.get(&party).map(Vec::as_slice).unwrap_or_default();
        self.members.iter().filter(move |member| member.party() == party).chain(others)
    }

    /// Which of a member's machines signed; `None` if none did.
    pub(crate) fn signer(
        &self,
        author: PartyId,
        ballot: Ballot,
        body: &[u8],
        signature: &Signature,
    ) -> Option<MachineKey> {
        let message = self.message(author, ballot, body);
        let mut machines = self.machines(author);
        let signer = machines.find(|member| schnorr::vartime_verify(member.verifying_key(), &message, signature))?;
        signer.verifying_key().bytes().try_into().ok()
    }

    /// The same for a vote that was checked: where there is one machine, it is that.
    pub(crate) fn signer_of_checked(
        &self,
        author: PartyId,
        ballot: Ballot,
        body: &[u8],
        signature: &Signature,
    ) -> Option<MachineKey> {
        if self.stand_ins.contains_key(&author) {
            return self.signer(author, ballot, body, signature);
        }
        self.machines(author).next()?.verifying_key().bytes().try_into().ok()
    }

    /// Whether a machine votes. A member's own machine does not while another stands in for it, even if it has come back.
    pub(crate) fn seats(&self, keys: &MemberKeys) -> bool {
        match self.stand_ins.get(&keys.party()) {
            Some(others) => others.contains(keys.member()),
            None => self.members.contains(keys.member()),
        }
    }

    /// Members that the entry before draws for a view: so many, or fewer where one is drawn twice.
    pub(crate) fn drawn(&self, view: u32, count: usize) -> impl Iterator<Item = PartyId> {
        let drawn = Transcript::new("theta/ledger/collectors/v1")
            .with("ledger", self.ledger.as_bytes())
            .with("height", &self.height.to_be_bytes())
            .with("previous", &self.previous)
            .with("view", &view.to_be_bytes())
            .finish32();
        let (numbers, _) = drawn.as_chunks::<2>();
        let places = numbers.iter().take(count).map(|number| usize::from(u16::from_be_bytes(*number)));
        let places: Vec<usize> = places.collect();
        places.into_iter().filter_map(|place| self.parties.get(place.checked_rem(self.parties.len())?).copied())
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
        self.signer(author, ballot, body, signature).is_some()
    }

    /// Together, but for members in whose place other machines may have signed.
    fn are_signed(&self, ballot: Ballot, body: &[u8], signatures: &BTreeMap<PartyId, Signature>) -> bool {
        let mut claims = Vec::with_capacity(signatures.len());
        for (author, signature) in signatures {
            if self.is_double(*author) {
                if !self.is_signed(*author, ballot, body, signature) {
                    return false;
                }
                continue;
            }
            let Some(member) = self.members.iter().find(|member| member.party() == *author) else { return false };
            let message = self.message(*author, ballot, body);
            claims.push(Claim { key: member.verifying_key(), message, signature });
        }
        schnorr::vartime_verify_all(&claims)
    }
}
