//! The plan of a ceremony: everything on which all parties must agree before it begins.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use theta_groups::Transcript;
use theta_names::{Epoch, SuiteName};
use theta_rounds::PartyId;
use theta_sharing::{EncodedKey, ProofOfPossession, ShareIndex, Threshold, ThresholdError};

use super::CeremonyMember;
use super::codec::Writer;
use super::sizes::GroupSizes;

/// The id of a ceremony: a hash of its whole plan. Every signature in the ceremony covers it, so nothing can be carried
/// from one ceremony to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CeremonyId([u8; 32]);

impl CeremonyId {
    /// The id of these bytes: for tools that look into messages, and for simulated liars.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// An existing key and its holders: the party of index i is at place i - 1.
#[derive(Clone, Debug)]
pub struct Source {
    /// The key.
    pub public: Arc<EncodedKey>,
    /// Its holders by share index.
    pub holders: Vec<PartyId>,
}

/// The aim of a ceremony.
#[derive(Clone, Debug)]
pub enum Aim {
    /// A new key.
    Generate,
    /// New shares of a key, for the same holders or others, with the same threshold or another.
    Reshare(Source),
    /// One holder's lost share of a key.
    Recover(Source, ShareIndex),
}

/// Everything that parties of a ceremony agree on beforehand, and that a third party needs to judge evidence.
#[derive(Clone, Debug)]
pub struct CeremonyPlan {
    id: CeremonyId,
    suite: SuiteName,
    group: GroupSizes,
    proof_of_possession: Option<&'static dyn ProofOfPossession>,
    epoch: Epoch,
    aim: Aim,
    threshold: Threshold,
    members: Vec<PartyId>,
    roster: BTreeMap<PartyId, CeremonyMember>,
    patience: u32,
}

/// What [`CeremonyPlan::new`] is made of.
#[derive(Clone, Debug)]
pub struct PlanParts {
    /// The suite of the key.
    pub suite: SuiteName,
    /// The group of the key, as `Group::NAME` has it.
    pub group: &'static str,
    /// The proof of possession that keys of the suite carry, if they carry one.
    pub proof_of_possession: Option<&'static dyn ProofOfPossession>,
    /// Unique among all ceremonies of the group: 32 random bytes from whoever starts it.
    pub nonce: [u8; 32],
    /// The sharing that comes out: the first for a new key, the next one for new shares.
    pub epoch: Epoch,
    /// What it is for.
    pub aim: Aim,
    /// The threshold of the key afterwards.
    pub k: u16,
    /// The holders afterwards by share index; for [`Aim::Recover`] the same as the source's.
    pub members: Vec<PartyId>,
    /// The identities of all that take part: holders before and holders afterwards.
    pub roster: Vec<CeremonyMember>,
    /// After how many ticks a party that sees no decision proposes to abort; 0: never.
    pub patience: u32,
}

/// Why a plan makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The threshold.
    #[error(transparent)]
    Threshold(#[from] ThresholdError),
    /// A party that appears twice in one list.
    #[error("party {0} is listed twice")]
    Twice(PartyId),
    /// A holder whose identity is not in the roster, or somebody in the roster who is no holder.
    #[error("party {0} is not in both the roster and a list of holders")]
    Roster(PartyId),
    /// A group that no key is on.
    #[error("there are no keys on a group {0}")]
    Group(&'static str),
    /// Another number of holders than the key has, another group, or another party than the key's.
    #[error("the plan does not fit the key that it is about")]
    Source,
}

impl CeremonyPlan {
    /// Checks the parts and computes the id.
    ///
    /// # Errors
    /// The [`PlanError`] that names the first mistake.
    pub fn new(parts: PlanParts) -> Result<Self, PlanError> {
        let PlanParts { suite, group, proof_of_possession, nonce, epoch, aim, k, members, roster, patience } = parts;
        let n = u16::try_from(members.len()).map_err(|_| PlanError::Source)?;
        let threshold = Threshold::new(k, n)?;
        let mut identities = BTreeMap::new();
        for member in roster {
            if let Some(twice) = identities.insert(member.party(), member) {
                return Err(PlanError::Twice(twice.party()));
            }
        }
        let plan = Self {
            id: CeremonyId([0; 32]),
            suite,
            group: GroupSizes::named(group).ok_or(PlanError::Group(group))?,
            proof_of_possession,
            epoch,
            aim,
            threshold,
            members,
            roster: identities,
            patience,
        };
        plan.check()?;
        let id = plan.compute_id(&nonce);
        Ok(Self { id, ..plan })
    }

    fn check(&self) -> Result<(), PlanError> {
        let holders = self.source().map_or(&[][..], |source| &source.holders);
        for list in [&self.members[..], holders] {
            let mut sorted = list.to_vec();
            sorted.sort_unstable();
            if let Some((twice, _)) = sorted.iter().zip(sorted.iter().skip(1)).find(|(a, b)| a == b) {
                return Err(PlanError::Twice(*twice));
            }
        }
        let mut listed = self.members.iter().chain(holders);
        if let Some(party) = listed.find(|party| !self.roster.contains_key(party)) {
            return Err(PlanError::Roster(*party));
        }
        let known = |party: &&PartyId| !self.members.contains(party) && !holders.contains(party);
        if let Some(party) = self.roster.keys().find(known) {
            return Err(PlanError::Roster(*party));
        }
        let Some(Source { public, holders }) = self.source() else { return Ok(()) };
        let n = usize::from(public.threshold.n());
        let mut elements = public.verification_keys.iter().chain([&public.public_key]);
        let of_group = elements.all(|element| element.len() == self.group.element_len());
        let fits = of_group && n == public.verification_keys.len() && n == holders.len();
        let fits = match &self.aim {
            Aim::Recover(_, lost) => {
                let same = *holders == self.members && public.threshold == self.threshold;
                fits && same && self.threshold.contains(*lost)
            }
            _ => fits,
        };
        if fits { Ok(()) } else { Err(PlanError::Source) }
    }

    fn compute_id(&self, nonce: &[u8; 32]) -> CeremonyId {
        let parties = |list: &[PartyId]| {
            list.iter().fold(Writer::default(), |writer, party| writer.node_id(party.node())).finish()
        };
        let mut transcript = Transcript::new("theta/ceremony/plan/v2")
            .with("nonce", nonce)
            .with("suite", self.suite.as_str().as_bytes())
            .with("group", self.group.name().as_bytes())
            .with("epoch", &self.epoch.get().to_be_bytes())
            .with("k", &self.threshold.k().to_be_bytes())
            .with("members", &parties(&self.members))
            .with("patience", &self.patience.to_be_bytes());
        for member in self.roster.values() {
            transcript.append("identity", &member.encode());
        }
        if let Some(Source { public, holders }) = self.source() {
            let lost = if let Aim::Recover(_, lost) = &self.aim { lost.get() } else { 0 };
            transcript.append("lost", &lost.to_be_bytes());
            transcript.append("holders", &parties(holders));
            transcript.append("source", &public_digest(&self.suite, public));
        }
        CeremonyId(transcript.finish32())
    }

    /// The ceremony's id.
    #[must_use]
    pub const fn id(&self) -> &CeremonyId {
        &self.id
    }

    /// The scheme of the key.
    #[must_use]
    pub const fn suite(&self) -> &SuiteName {
        &self.suite
    }

    /// The group of the key.
    pub(super) const fn group(&self) -> GroupSizes {
        self.group
    }

    /// The proof of possession that the key carries, if it carries one.
    pub(super) const fn proof_of_possession(&self) -> Option<&'static dyn ProofOfPossession> {
        self.proof_of_possession
    }

    /// The number of the sharing that comes out.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What it is for.
    #[must_use]
    pub const fn aim(&self) -> &Aim {
        &self.aim
    }

    /// The threshold of the key afterwards.
    #[must_use]
    pub const fn threshold(&self) -> Threshold {
        self.threshold
    }

    /// The holders afterwards, by share index.
    #[must_use]
    pub fn members(&self) -> &[PartyId] {
        &self.members
    }

    /// All that take part.
    pub fn parties(&self) -> impl Iterator<Item = PartyId> {
        self.roster.keys().copied()
    }

    /// Ticks until a party proposes to abort; 0: never.
    pub(super) const fn patience(&self) -> u32 {
        self.patience
    }

    pub(super) fn member(&self, party: PartyId) -> Option<&CeremonyMember> {
        self.roster.get(&party)
    }

    pub(super) const fn source(&self) -> Option<&Source> {
        match &self.aim {
            Aim::Generate => None,
            Aim::Reshare(source) | Aim::Recover(source, _) => Some(source),
        }
    }

    /// The dealers: the holders of the existing key, or of the new one.
    pub(super) fn dealers(&self) -> &[PartyId] {
        self.source().map_or(&self.members, |source| &source.holders)
    }

    /// The share index that a party will have.
    #[must_use]
    pub fn index_of(&self, party: PartyId) -> Option<ShareIndex> {
        place(&self.members, party)
    }

    /// The share index that a dealer has in the source.
    pub(super) fn dealer_index(&self, party: PartyId) -> Option<ShareIndex> {
        place(self.dealers(), party)
    }

    /// The size of a quorum. If at most t = k - 1 of the n members are malicious, any two quorums have an honest party
    /// in common, and each contains t + 1 honest parties if n >= 2t + 1.
    ///
    /// Where n >= 3t + 1, the n - t honest parties are a quorum. In smaller groups nothing false can be decided either,
    /// but a decision may need more than the honest parties: all n of them at worst.
    #[must_use]
    pub fn quorum(&self) -> usize {
        theta_agreement::quorum(usize::from(self.threshold.n()), usize::from(self.threshold.t()))
    }
}

fn place(list: &[PartyId], party: PartyId) -> Option<ShareIndex> {
    ShareIndex::at(list.iter().position(|other| *other == party)?)
}

/// A digest of all that is public about a key.
#[must_use]
pub fn public_digest(suite: &SuiteName, public: &EncodedKey) -> [u8; 32] {
    let mut transcript = Transcript::new("theta/ceremony/public/v2")
        .with("suite", suite.as_str().as_bytes())
        .with("k", &public.threshold.k().to_be_bytes())
        .with("public key", &public.public_key)
        .with("possession", public.proof_of_possession.as_deref().unwrap_or_default());
    for key in &public.verification_keys {
        transcript.append("verification key", key);
    }
    transcript.finish32()
}

impl fmt::Display for CeremonyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
