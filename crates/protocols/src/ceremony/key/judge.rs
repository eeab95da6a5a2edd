//! Which dealings count: what the agreement decides about.

use theta_groups::Group;
use theta_rounds::{Malformed, PartyId};

use crate::ceremony::agreement::{Judge, Verdict};
use crate::ceremony::codec::{Reader, put_party};
use crate::ceremony::dealings::Dealings;
use crate::ceremony::plan::{Aim, CeremonyPlan};
use crate::ceremony::statement::{Digest, Kind, Slot};

/// The slot of the one dealing of each dealer.
pub(in crate::ceremony) const DEALING: Slot = Slot::new(Kind::Dealing, 0);

/// A value to decide: the dealings that count by rising dealer, or that there is to be no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::ceremony) enum Selection {
    CallOff,
    Dealings(Vec<(PartyId, Digest)>),
}

impl Selection {
    pub(in crate::ceremony) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Self::Dealings(list) = self {
            for (dealer, digest) in list {
                put_party(&mut out, *dealer);
                out.extend_from_slice(digest);
            }
        }
        out
    }

    /// Reads a selection that fits the plan.
    pub(in crate::ceremony) fn decode<G: Group>(plan: &CeremonyPlan<G>, bytes: &[u8]) -> Result<Self, Malformed> {
        let list = Reader::new(bytes).all(|reader| Ok((reader.party()?, reader.array::<32>()?)))?;
        if list.is_empty() {
            return Ok(Self::CallOff);
        }
        let rising = list.iter().zip(list.iter().skip(1)).all(|((a, _), (b, _))| a < b);
        let dealers = list.iter().all(|(dealer, _)| plan.dealer_index(*dealer).is_some());
        let enough = match plan.aim() {
            // One more than can lie: one of them at least is honest and has told its secret to nobody.
            Aim::Generate => list.len() >= usize::from(plan.threshold().k()),
            // What interpolates the old secret, and no more.
            Aim::Reshare(source) | Aim::Recover(source, _) => list.len() == usize::from(source.public.threshold().k()),
        };
        if rising && dealers && enough { Ok(Self::Dealings(list)) } else { Err(Malformed("not a set of dealings")) }
    }
}

/// One member's opinion, for the agreement.
pub(super) struct Opinion<'a, G: Group> {
    pub(super) plan: &'a CeremonyPlan<G>,
    pub(super) dealings: &'a Dealings<G>,
    pub(super) ticks: u32,
}

impl<G: Group> Opinion<'_, G> {
    const fn wants_to_call_off(&self) -> bool {
        self.plan.patience() > 0 && self.ticks >= self.plan.patience()
    }
}

impl<G: Group> Judge for Opinion<'_, G> {
    fn propose(&mut self) -> Option<Vec<u8>> {
        if self.wants_to_call_off() {
            return Some(Selection::CallOff.encode());
        }
        let mut good: Vec<_> = self.dealings.good(DEALING).collect();
        let enough = match self.plan.aim() {
            // All dealings are better than some; but whoever has nothing to say does not keep the others waiting.
            Aim::Generate if self.ticks == 0 => self.plan.dealers().len(),
            Aim::Generate => usize::from(self.plan.threshold().k()),
            Aim::Reshare(source) | Aim::Recover(source, _) => usize::from(source.public.threshold().k()),
        };
        if good.len() < enough {
            return None;
        }
        if !matches!(self.plan.aim(), Aim::Generate) {
            good.truncate(enough);
        }
        Some(Selection::Dealings(good).encode())
    }

    fn judge(&mut self, value: &[u8]) -> Verdict {
        let list = match Selection::decode(self.plan, value) {
            Err(_) => return Verdict::Invalid,
            Ok(Selection::CallOff) if self.wants_to_call_off() => return Verdict::Valid,
            Ok(Selection::CallOff) => return Verdict::Invalid,
            Ok(Selection::Dealings(list)) => list,
        };
        let bad = |(dealer, digest): &(PartyId, Digest)| {
            let entry = self.dealings.get(digest);
            let other = entry.is_some_and(|entry| entry.statement.author() != *dealer);
            other || self.dealings.is_convicted(*dealer) || self.dealings.is_wrong(digest)
        };
        if list.iter().any(bad) {
            return Verdict::Invalid;
        }
        if list.iter().all(|(_, digest)| self.dealings.get(digest).is_some()) {
            Verdict::Valid
        } else {
            Verdict::Unknown
        }
    }
}
