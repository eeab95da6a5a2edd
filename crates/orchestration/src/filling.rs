//! Who fills the stocks of presignatures of a key, and when, if nobody asks for a signature.
//!
//! A holder whose stock is below its level tells the others that it begins to make presignatures. Each of them decides by itself whether it takes
//! part. Holders whose stocks are low see so at the same time, so they take turns: each waits for its rank, which a hash of the key gives. At each
//! holder one filling of a key is under way at a time. Where two begin at nearly the same time, all go on with the one of the lower rank.
//!
//! Where a filling takes all holders, and uses what they hide before it comes to nothing, one of them may have fallen silent because it knows that a check
//! fails. Then all of them leave fillings of the key alone for a time that doubles with each.
//!
//! Who begins fillings that come to nothing is not heard again for a time that doubles with each of them: so liars cost the others a bounded part of
//! their time.

use core::time::Duration;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use theta_custody::KeyEntry;
use theta_names::{Epoch, NodeId};
use theta_schemes::keys::KeyId;
use tokio::time::Instant;

use crate::InstanceId;

/// How long a holder waits for those of a lower rank, for each of them; and the first pause after a filling that came to nothing.
pub(crate) const STEP: Duration = Duration::from_millis(500);
/// The longest pause is the first, doubled so many times.
const MOST_DOUBLINGS: u32 = 7;
/// How many fillings of one other holder, of different keys, are under way at a time: the others have places, too.
const MOST_OF_ONE: usize = 4;
/// How many fillings of another holder without this one are heard, in how long.
const ELSEWHERE: (u32, Duration) = (16, Duration::from_secs(16));
/// The longest time between two looks at whether enough holders are connected is the first, doubled so many times.
const MOST_LOOKS: u32 = 5;

/// The longest quiet after a filling that used what is hidden and came to nothing is the first pause, doubled so many times: nine hours.
const MOST_QUIET: u32 = 16;

/// The fillings of all keys of a node.
#[derive(Debug, Default)]
pub(crate) struct Fillings(Mutex<BTreeMap<KeyId, OfKey>>);

/// The fillings of a key in one epoch.
#[derive(Debug)]
struct OfKey {
    epoch: Epoch,
    under_way: Option<UnderWay>,
    /// Fillings that this holder has begun, and that came to nothing, since the last that did not.
    failures: u32,
    /// Looks since when too few holders are connected.
    looks: u32,
    /// Until when there is no filling, because of those that used what is hidden and came to nothing.
    quiet_until: Option<Instant>,
    /// Of each other holder whose last filling came to nothing: since how many that is so, and until when it is not heard.
    unheard: BTreeMap<NodeId, (u32, Instant)>,
    /// Of each other holder that filled stocks without this one: how many times, and since when that is counted.
    without: BTreeMap<NodeId, (u32, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    id: InstanceId,
    initiator: NodeId,
    rank: u16,
    since: Instant,
}

/// A filling that is about to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// Its instance.
    pub(crate) id: InstanceId,
    /// The holder that begins it.
    pub(crate) initiator: NodeId,
    /// Now.
    pub(crate) now: Instant,
    /// How many presignatures this node has before.
    pub(crate) had: usize,
    /// How many fillings before have used what is hidden and not ended well.
    pub(crate) unended: u32,
}

/// The right to fill the stock of a key at this node, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct FillingPermit {
    fillings: Arc<Fillings>,
    key: KeyId,
    epoch: Epoch,
    beginning: Beginning,
}

/// How a filling ended at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// This node has presignatures that it did not have before.
    Here,
    /// Others have: this node was not among those that made them.
    Elsewhere,
    /// Nobody, as far as is known here.
    Nowhere,
}

impl OfKey {
    const fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            under_way: None,
            failures: 0,
            looks: 0,
            quiet_until: None,
            unheard: BTreeMap::new(),
            without: BTreeMap::new(),
        }
    }

    fn is_forgettable(&self) -> bool {
        let nothing_kept = self.unheard.is_empty() && self.without.is_empty() && self.quiet_until.is_none();
        self.under_way.is_none() && self.failures == 0 && self.looks == 0 && nothing_kept
    }

    /// For how long there is no filling.
    fn quiet(&self, now: Instant) -> Duration {
        self.quiet_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// A filling that used what is hidden came to nothing, as so many did of late.
    fn keep_quiet(&mut self, unended: u32, now: Instant) {
        let until = now + STEP.saturating_mul(1 << unended.min(MOST_QUIET));
        self.quiet_until = Some(self.quiet_until.map_or(until, |before| before.max(until)));
    }

    /// A holder has filled stocks without this one, as it says: with too many of these it is not heard for a while.
    fn elsewhere(&mut self, initiator: NodeId, now: Instant) {
        let (count, since) = self.without.entry(initiator).or_insert((0, now));
        if now.saturating_duration_since(*since) >= ELSEWHERE.1 {
            (*count, *since) = (0, now);
        }
        *count = count.saturating_add(1);
        if *count >= ELSEWHERE.0 {
            let failures = self.unheard.get(&initiator).map_or(0, |(failures, _)| *failures);
            self.unheard.insert(initiator, (failures, *since + ELSEWHERE.1));
        }
    }
}

impl Fillings {
    fn all(&self) -> MutexGuard<'_, BTreeMap<KeyId, OfKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the fillings of a key. What was of an earlier epoch is forgotten; whoever still has an entry of one sees none, and leaves none.
    fn of<T>(&self, key: &KeyEntry, look: impl FnOnce(&mut OfKey) -> T) -> T {
        let mut all = self.all();
        let of_key = all.entry(key.key_id).or_insert_with(|| OfKey::new(key.epoch));
        if of_key.epoch > key.epoch {
            return look(&mut OfKey::new(key.epoch));
        }
        if of_key.epoch < key.epoch {
            *of_key = OfKey::new(key.epoch);
        }
        let seen = look(of_key);
        if of_key.is_forgettable() {
            all.remove(&key.key_id);
        }
        seen
    }

    fn under_way_of(&self, initiator: NodeId) -> usize {
        let of_it = |of_key: &&OfKey| of_key.under_way.is_some_and(|under_way| under_way.initiator == initiator);
        self.all().values().filter(of_it).count()
    }

    /// Begins a filling at this node, `local`, unless another one is under way or its initiator is not heard at present, or has enough others
    /// under way.
    pub(crate) fn begin(
        self: &Arc<Self>,
        key: &KeyEntry,
        beginning: Beginning,
        local: NodeId,
    ) -> Option<FillingPermit> {
        let Beginning { id, initiator, now, .. } = beginning;
        let rank = rank(key, initiator)?;
        if initiator != local && self.under_way_of(initiator) >= MOST_OF_ONE {
            return None;
        }
        let begins = self.of(key, |of_key| {
            let is_heard = of_key.unheard.get(&initiator).is_none_or(|(_, until)| *until <= now);
            // Of two that begin at nearly the same time, all take the same.
            let gives_way = |other: UnderWay| now.saturating_duration_since(other.since) < STEP && rank < other.rank;
            let begins = is_heard && of_key.quiet(now).is_zero() && of_key.under_way.is_none_or(gives_way);
            if begins {
                of_key.quiet_until = None;
                (of_key.under_way, of_key.looks) = (Some(UnderWay { id, initiator, rank, since: now }), 0);
            }
            begins
        });
        begins.then(|| FillingPermit { fillings: Arc::clone(self), key: key.key_id, epoch: key.epoch, beginning })
    }

    /// After how long this node should look at its stock again if too few holders are connected now.
    pub(crate) fn look_again(&self, key: &KeyEntry) -> Duration {
        self.of(key, |of_key| {
            let doublings = of_key.looks.min(MOST_LOOKS);
            of_key.looks = of_key.looks.saturating_add(1);
            STEP.saturating_mul(1 << doublings)
        })
    }

    /// After how long the node `local` should begin a filling, from when its stock is seen to be low: its rank tells, and what came of its last ones.
    pub(crate) fn pause(&self, key: &KeyEntry, local: NodeId, now: Instant) -> Duration {
        let turn = STEP.saturating_mul(rank(key, local).unwrap_or(0).into());
        let (failures, quiet) = self.of(key, |of_key| (of_key.failures, of_key.quiet(now)));
        let pause = if failures == 0 { Duration::ZERO } else { pause_after(failures) };
        turn.saturating_add(pause.max(quiet))
    }

    /// Whether a filling of the key is under way at this node.
    pub(crate) fn is_under_way(&self, key: &KeyEntry) -> bool {
        self.of(key, |of_key| of_key.under_way.is_some())
    }

    /// Forgets keys that are not among these.
    pub(crate) fn keep(&self, is_known: impl Fn(&KeyId) -> bool) {
        self.all().retain(|key, _| is_known(key));
    }
}

impl FillingPermit {
    /// Looks at the fillings of the key, if its epoch is still the same.
    fn of<T>(&self, look: impl FnOnce(&mut OfKey) -> T) -> Option<T> {
        let mut all = self.fillings.all();
        all.get_mut(&self.key).filter(|of_key| of_key.epoch == self.epoch).map(look)
    }

    /// How it began.
    pub(crate) const fn beginning(&self) -> Beginning {
        self.beginning
    }

    /// Whether another filling has come in this one's place, or another epoch.
    pub(crate) fn is_superseded(&self) -> bool {
        let is_this = |of_key: &mut OfKey| of_key.under_way.is_some_and(|under_way| under_way.id == self.beginning.id);
        !self.of(is_this).unwrap_or(false)
    }

    /// It came to nothing after what is hidden was used, as so many did of late: for a while there is none. So it is also if another one came in its
    /// place, which a cheat could begin.
    pub(crate) fn keep_quiet(&self, unended: u32, now: Instant) {
        // Of another epoch nothing is to be noted.
        let _ = self.of(|of_key| of_key.keep_quiet(unended, now));
    }

    /// The filling has ended so at the node `local`.
    pub(crate) fn end(self, local: NodeId, filled: Filled, now: Instant) {
        let Beginning { id, initiator, .. } = self.beginning;
        let note = |of_key: &mut OfKey| match (filled, initiator == local) {
            // Another one came in its place, which is nobody's fault.
            _ if of_key.under_way.is_none_or(|under_way| under_way.id != id) => {}
            (Filled::Here, true) => of_key.failures = 0,
            (_, true) => of_key.failures = of_key.failures.saturating_add(1),
            (Filled::Here, false) => drop(of_key.unheard.remove(&initiator)),
            // Its word is all that says so: nothing is forgiven for it, and not many are heard one after the other.
            (Filled::Elsewhere, false) => of_key.elsewhere(initiator, now),
            (Filled::Nowhere, false) => {
                let before = of_key.unheard.get(&initiator).map_or(0, |(failures, _)| *failures);
                let failures = before.saturating_add(1);
                // Shorter than the initiator's own pause, so that an honest one is heard when it tries again.
                of_key.unheard.insert(initiator, (failures, now + pause_after(failures) / 2));
            }
        };
        // Of another epoch nothing is to be noted.
        let _ = self.of(note);
    }
}

impl Drop for FillingPermit {
    fn drop(&mut self) {
        let id = self.beginning.id;
        let _ = self.of(|of_key| {
            if of_key.under_way.is_some_and(|under_way| under_way.id == id) {
                of_key.under_way = None;
            }
        });
    }
}

/// The pause after so many fillings that came to nothing, one after the other.
fn pause_after(failures: u32) -> Duration {
    STEP.saturating_mul(1 << failures.min(MOST_DOUBLINGS))
}

/// The rank of a holder: they take turns from one that the key's id and epoch select.
fn rank(key: &KeyEntry, node: NodeId) -> Option<u16> {
    let (index, n) = (key.holders.index_of(node)?.get(), key.public.threshold().n());
    let [a, b, ..] = *key.key_id.as_bytes();
    let first = u64::from(u16::from_be_bytes([a, b])).wrapping_add(key.epoch.get().into()).checked_rem(n.into())?;
    let place = (u64::from(index) + u64::from(n) - 1 - first).checked_rem(n.into())?;
    u16::try_from(place).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A holder that says without end that it fills stocks elsewhere is heard so often in a while, and no more.
    #[test]
    fn fillings_without_this_holder_are_few() {
        let (mut of_key, now, liar) = (OfKey::new(Epoch::FIRST), Instant::now(), NodeId::try_from(2).unwrap());
        let is_heard = |of_key: &OfKey, at: Instant| of_key.unheard.get(&liar).is_none_or(|(_, until)| *until <= at);
        let mut heard = 0;
        for second in 0..32 {
            let at = now + Duration::from_secs(second);
            for _ in 0..100 {
                if is_heard(&of_key, at) {
                    of_key.elsewhere(liar, at);
                    heard += 1;
                }
            }
        }
        assert_eq!(heard, 32, "sixteen in sixteen seconds");
    }

    /// Of a cheat that falls silent in each filling there are few, however long it goes on.
    #[test]
    fn quiet_grows_with_fillings_that_did_not_end_well() {
        let (mut of_key, now) = (OfKey::new(Epoch::FIRST), Instant::now());
        let quiet = [1, 2, 3, 16, 17, u32::MAX].map(|unended| {
            of_key.quiet_until = None;
            of_key.keep_quiet(unended, now);
            of_key.quiet(now).as_secs()
        });
        assert_eq!(quiet, [1, 2, 4, 32_768, 32_768, 32_768]);
        of_key.keep_quiet(1, now);
        assert_eq!(of_key.quiet(now).as_secs(), 32_768, "a shorter one ends no longer one");
        assert!(of_key.quiet(now + Duration::from_secs(40_000)).is_zero());
        assert!(!of_key.is_forgettable());
    }
}
