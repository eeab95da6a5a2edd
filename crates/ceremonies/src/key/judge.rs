//! The set of qualified dealings (QUAL in the literature on distributed key generation): the value that the agreement decides.

use core::ops::RangeInclusive;

use theta_agreement::{Judge, Verdict};
use theta_groups::Group;
use theta_rounds::{Malformed, PartyId};

use crate::codec::{Reader, Writer, read_entries, write_entries};
use crate::dealings::Dealings;
use crate::plan::{Aim, CeremonyPlan};
use crate::record::map_of;
use crate::statement::{Digest, Kind, StatementSlot};

/// The last dealing of a dealer: see [`dealing_slot`].
const LAST_DEALING: u32 = 8;
/// The slots of a dealer's dealings. The later ones have places for members whose keys came late.
pub(crate) const DEALINGS: RangeInclusive<StatementSlot> =
    StatementSlot::new(Kind::Dealing, 0)..=StatementSlot::new(Kind::Dealing, LAST_DEALING);
/// Ticks without a new key after which a dealer stops waiting for the keys of silent members.
pub(super) const KEY_TICKS: u32 = 2;
/// Ticks after which a dealer deals even if keys still come.
pub(super) const MOST_KEY_TICKS: u32 = 16;
/// Ticks for which a member refuses sets that are right for itself: those without a place for a member whose key it has, or with a dealing
/// of a party that it knows to lie. What it knows others may not know, and without it there may be no quorum: so not for ever.
const STRICT_TICKS: u32 = 8;

/// The slot of a dealing that is dealt now: one for each doubling of the ticks, from two on. So the number of dealings
/// is bounded whenever keys come, and the last ones are so far apart that all honest keys arrive in between.
pub(super) fn dealing_slot(ticks: u32) -> StatementSlot {
    let octave = ticks.checked_ilog2().map_or(0, |octave| octave.saturating_sub(1));
    StatementSlot::new(Kind::Dealing, octave.min(LAST_DEALING))
}

/// A value to decide: the dealings that count by rising dealer, or that there is to be no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Abort,
    Dealings(Vec<(PartyId, Digest)>),
}

impl Selection {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let list = if let Self::Dealings(list) = self { list.as_slice() } else { &[] };
        write_entries(Writer::default(), list.iter().map(|(dealer, digest)| (dealer, digest))).finish()
    }

    /// Reads a selection that fits the plan.
    pub(crate) fn decode(plan: &CeremonyPlan, bytes: &[u8]) -> Result<Self, Malformed> {
        let list = read_entries(Reader::new(bytes), "dealings are listed by rising dealer")?;
        if list.is_empty() {
            return Ok(Self::Abort);
        }
        let dealers = list.iter().all(|(dealer, _)| plan.dealer_index(*dealer).is_some());
        let enough = match plan.aim() {
            // One more than can lie, so at least one dealer is honest and has told its secret to nobody.
            Aim::Generate => list.len() >= usize::from(plan.threshold().k()),
            // As many as interpolate the old secret, and no more.
            Aim::Reshare(source) | Aim::Recover(source, _) => list.len() == usize::from(source.public.threshold.k()),
        };
        if dealers && enough { Ok(Self::Dealings(list)) } else { Err(Malformed("not a set of dealings")) }
    }
}

/// One member's opinion, for the agreement.
pub(super) struct Opinion<'a, G: Group> {
    pub(super) plan: &'a CeremonyPlan,
    pub(super) dealings: &'a Dealings<G>,
    pub(super) ticks: u32,
}

impl<G: Group> Opinion<'_, G> {
    const fn wants_to_abort(&self) -> bool {
        self.plan.patience() > 0 && self.ticks >= self.plan.patience()
    }
}

impl<G: Group> Judge for Opinion<'_, G> {
    fn propose(&mut self) -> Option<Vec<u8>> {
        if self.wants_to_abort() {
            return Some(Selection::Abort.encode());
        }
        let enough = match self.plan.aim() {
            // All dealings are better than some, but silent dealers must not keep the others waiting.
            Aim::Generate if self.ticks == 0 => self.plan.dealers().len(),
            Aim::Generate => usize::from(self.plan.threshold().k()),
            Aim::Reshare(source) | Aim::Recover(source, _) => usize::from(source.public.threshold.k()),
        };
        // Every member with a key gets a place, if that is possible; otherwise those whose keys came first, since the
        // honest dealers have places for all whose keys came long enough ago.
        let good = self.dealings.good(DEALINGS);
        let all: Vec<_> = good.map(|(dealer, digest)| (dealer, digest, self.dealings.covered(&digest))).collect();
        // The latest of each dealer's dealings that has places for so many, by rising dealer.
        let latest = |count| {
            let covering = all.iter().filter(|(_, _, covered)| *covered >= count);
            map_of(covering.map(|(dealer, digest, _)| (*dealer, *digest)).collect())
        };
        let counts = (self.plan.quorum()..=self.dealings.arrived()).rev();
        let mut good: Vec<_> = counts.map(latest).find(|good| good.len() >= enough)?.into_iter().collect();
        if !matches!(self.plan.aim(), Aim::Generate) {
            good.truncate(enough);
        }
        Some(Selection::Dealings(good).encode())
    }

    fn judge(&mut self, value: &[u8]) -> Verdict {
        let list = match Selection::decode(self.plan, value) {
            Err(_) => return Verdict::Invalid,
            Ok(Selection::Abort) if self.wants_to_abort() => return Verdict::Valid,
            Ok(Selection::Abort) => return Verdict::Invalid,
            Ok(Selection::Dealings(list)) => list,
        };
        let (all, strict) = (self.dealings.arrived(), self.ticks < STRICT_TICKS);
        let bad = |(dealer, digest): &(PartyId, Digest)| {
            let entry = self.dealings.get(digest);
            let other = entry.is_some_and(|entry| entry.statement.author() != *dealer);
            let left_out = entry.is_some() && self.dealings.covered(digest) < all;
            let own = self.dealings.is_wrong(digest) || self.dealings.leaves_out(digest);
            other || own || (strict && (left_out || self.dealings.is_convicted(*dealer)))
        };
        if list.iter().any(bad) {
            return Verdict::Invalid;
        }
        if list.iter().all(|(_, digest)| self.dealings.is_checked(digest)) { Verdict::Valid } else { Verdict::Unknown }
    }
}
