//! Set-ups that programs leave to later ones of the same parties: oblivious transfer of each pair.
//!
//! A program takes a run of its own out of a set-up ([`theta_ot::extension::Sender::for_run`]), so that programs at the same time need no order. A set-up
//! is as good as all that has run on it: what a cheat has guessed in one program helps it in the next. So it is gone with the first program that
//! does not end well, be it by silence, and serves few at the same time. See `spec/mpc.md`, "Set-ups that serve many programs".

use core::fmt;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use theta_names::ShareIndex;
use theta_ot::extension::MOST_RUNS;

use super::{
    HASH,
    room::{Held, SetUpRoom},
};

/// The most set-ups that are kept: of each set of holders that a request may take one, for few holders.
const MOST: usize = 8;
/// The most of the same parties: programs that begin at the same time on none make one each.
pub(super) const MOST_OF_PARTIES: usize = 2;
/// The most programs that use one at the same time: so many guesses a cheat has before the first of them is known.
const MOST_AT_ONCE: u32 = 8;

/// What is kept of set-ups at one party, in memory alone. It starts empty, and is wiped when it is dropped.
pub struct SetUps<T>(Mutex<Shelf<T>>);

struct Shelf<T> {
    /// Oldest first.
    kept: VecDeque<Arc<SetUp<T>>>,
    /// Those that were taken away while programs used them, or might.
    lent: Vec<Weak<SetUp<T>>>,
    /// Parties that have none any more: programs that run still may make some.
    without: Vec<Vec<ShareIndex>>,
    /// Who was found to cheat: programs that run still are told.
    cheats: Cheats,
    /// In days since 1970.
    today: u32,
    /// What it shares with the shelves of a node's other keys.
    room: SetUpRoom,
}

/// Parties that were found to cheat by a message of theirs, in any program of a key's epoch, at one party. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Cheats(Arc<Mutex<BTreeSet<ShareIndex>>>);

impl Cheats {
    /// This one is known, from another program or from before. Programs that run still are told.
    pub fn note(&self, cheat: ShareIndex) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(cheat);
    }

    /// Notes those of the parties that are at these positions, and returns the positions of all that are known now, in their order.
    fn judge(&self, parties: &[ShareIndex], cheats: &[usize]) -> Vec<usize> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(cheats.iter().filter_map(|position| parties.get(*position)));
        let is_known = |position: usize| parties.get(position).is_some_and(|party| known.contains(party));
        let last = cheats.iter().map(|position| position.saturating_add(1)).max().unwrap_or(0).max(parties.len());
        (0..last).filter(|position| is_known(*position) || cheats.contains(position)).collect()
    }
}

struct SetUp<T> {
    id: [u8; HASH],
    parties: Vec<ShareIndex>,
    cheats: Cheats,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// Nothing after a program that has not ended well.
    value: Option<T>,
    /// Whether no program begins on it any more: it is wiped when those that use it have ended.
    is_let_go: bool,
    /// Programs that use it, or may do so in a moment.
    running: u32,
    /// Programs that have used it.
    runs: u32,
    /// The day of the last use.
    day: u32,
    /// The last use, as the room counts.
    used: u64,
}

impl<T> State<T> {
    /// Whether a program may begin on it, for all that it knows itself.
    const fn is_of_use(&self) -> bool {
        self.value.is_some() && !self.is_let_go
    }

    /// Nobody uses what is let go.
    fn wipe_if_idle(&mut self) {
        if self.is_let_go && self.running == 0 {
            self.value = None;
        }
    }
}

impl<T> SetUp<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Held for SetUp<T> {
    fn weight(&self) -> Option<(u64, usize)> {
        let state = self.state();
        state.is_of_use().then(|| (state.used, self.parties.len().saturating_sub(1).max(1)))
    }

    fn let_go(&self) {
        let mut state = self.state();
        state.is_let_go = true;
        state.wipe_if_idle();
    }
}

impl<T> Default for SetUps<T> {
    fn default() -> Self {
        Self::knowing(&Cheats::default())
    }
}

impl<T> SetUps<T> {
    /// None yet, of a key of which these cheats are known.
    #[must_use]
    pub fn knowing(cheats: &Cheats) -> Self {
        let (kept, lent, without, cheats) = (VecDeque::new(), Vec::new(), Vec::new(), cheats.clone());
        Self(Mutex::new(Shelf { kept, lent, without, cheats, today: 0, room: SetUpRoom::default() }))
    }
}

impl<T> fmt::Debug for SetUps<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetUps(<redacted>)")
    }
}

impl<T: Send + 'static> SetUps<T> {
    fn shelf(&self) -> MutexGuard<'_, Shelf<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on they are counted in this room, with those of other keys.
    pub fn count_in(&self, room: &SetUpRoom) {
        let mut shelf = self.shelf();
        if shelf.room.is(room) {
            return;
        }
        shelf.room = room.clone();
        for set_up in &shelf.kept {
            set_up.state().used = room.next_use();
            shelf.count(set_up);
        }
    }

    /// Says what day it is, in days since 1970: set-ups that are used count as of that day.
    pub fn note_day(&self, day: u32) {
        self.shelf().today = day;
    }

    /// Wipes what was used last before this day. Says whether there was anything.
    pub fn wipe_before(&self, day: u32) -> bool {
        let mut shelf = self.shelf();
        let before = shelf.kept.len();
        shelf.let_go(|it| it.state().day < day);
        shelf.kept.len() < before
    }

    /// Wipes those of these parties for good: programs that have been offered one get none, and none is kept of them any more.
    pub fn wipe_of(&self, parties: &[ShareIndex]) {
        let mut shelf = self.shelf();
        shelf.wipe(|it| it.parties == parties);
        if !shelf.without.iter().any(|known| known == parties) {
            shelf.without.push(parties.to_vec());
        }
    }

    /// Wipes those that this party has a part in, as [`Self::wipe_of`].
    pub fn wipe_with(&self, party: ShareIndex) {
        self.shelf().wipe(|it| it.parties.contains(&party));
    }

    /// How many are of use.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.shelf().kept.iter().filter(|it| it.state().is_of_use()).count()
    }

    /// Those of these parties that a program may use: it takes one of them at most, and drops the others. What was not used since the day before
    /// yesterday is wiped, whether or not anybody has looked meanwhile.
    pub(crate) fn offer(&self, parties: &[ShareIndex]) -> Vec<Lease<T>> {
        let mut shelf = self.shelf();
        let now = (shelf.today, shelf.room.next_use());
        shelf.let_go(|it| {
            let state = it.state();
            !state.is_of_use() || state.runs >= MOST_RUNS || state.day.saturating_add(1) < now.0
        });
        let of_parties = shelf.kept.iter().filter(|it| it.parties == parties);
        of_parties.filter_map(|it| Lease::of(it, now)).collect()
    }

    /// Keeps a new one, which the program that has made it uses first. Of those that make room for it the one goes that nobody has used for longest: of
    /// this key where there are too many of it, and otherwise of all keys of the node.
    pub(crate) fn keep(&self, id: [u8; HASH], parties: &[ShareIndex], value: T) -> Option<Lease<T>> {
        let mut shelf = self.shelf();
        let now = (shelf.today, shelf.room.next_use());
        let state = State { value: Some(value), is_let_go: false, running: 0, runs: 0, day: now.0, used: now.1 };
        let cheats = shelf.cheats.clone();
        let made = Arc::new(SetUp { id, parties: parties.to_vec(), cheats, state: Mutex::new(state) });
        let lease = Lease::of(&made, now);
        if shelf.without.iter().any(|known| known == parties) || !shelf.cheats.judge(parties, &[]).is_empty() {
            return lease;
        }
        let same = |it: &Arc<SetUp<T>>| it.parties == parties;
        let of_parties = shelf.kept.iter().filter(|it| same(it)).count();
        if of_parties >= MOST_OF_PARTIES {
            shelf.make_room(same);
        } else if shelf.kept.len() >= MOST {
            shelf.make_room(|_| true);
        }
        shelf.count(&made);
        shelf.kept.push_back(made);
        lease
    }
}

impl<T: Send + 'static> Shelf<T> {
    /// Counts one in the room, which others may have to leave for it, of this shelf or of another one.
    fn count(&self, set_up: &Arc<SetUp<T>>) {
        let weak: Weak<SetUp<T>> = Arc::downgrade(set_up);
        self.room.add(weak);
    }

    /// Wipes these, lent ones as well.
    fn wipe(&mut self, goes: impl Fn(&SetUp<T>) -> bool) {
        let lent = self.lent.iter().filter_map(Weak::upgrade);
        let all: Vec<_> = lent.chain(self.kept.iter().cloned()).filter(|it| goes(it)).collect();
        all.iter().for_each(|it| it.state().value = None);
        self.kept.retain(|it| !goes(it));
    }

    /// Takes the one of these away that was used least lately. Programs that use it go on.
    fn make_room(&mut self, candidate: impl Fn(&Arc<SetUp<T>>) -> bool) {
        let candidates = self.kept.iter().filter(|it| candidate(it));
        let oldest = candidates.min_by_key(|it| it.state().used).map(|it| it.id);
        self.let_go(|it| Some(it.id) == oldest);
    }

    /// Takes these away. Programs that use them go on, and may be told yet that they are worth nothing.
    fn let_go(&mut self, goes: impl Fn(&SetUp<T>) -> bool) {
        self.lent.retain(|it| it.strong_count() > 0);
        let lent = &mut self.lent;
        self.kept.retain(|it| {
            let goes = goes(it);
            if goes {
                it.let_go();
            }
            lent.extend(goes.then(|| Arc::downgrade(it)));
            !goes
        });
    }
}

/// A program's hold on a set-up. Dropped after [`Self::begin`] without [`Self::end_well`], it wipes the set-up for all.
pub(crate) struct Lease<T> {
    set_up: Arc<SetUp<T>>,
    has_begun: bool,
}

impl<T> Lease<T> {
    /// One more, if there is room.
    fn of(set_up: &Arc<SetUp<T>>, (today, uses): (u32, u64)) -> Option<Self> {
        let mut state = set_up.state();
        if !state.is_of_use() || state.running >= MOST_AT_ONCE {
            return None;
        }
        state.running += 1;
        state.day = state.day.max(today);
        state.used = state.used.max(uses);
        drop(state);
        Some(Self { set_up: Arc::clone(set_up), has_begun: false })
    }

    /// The set-up's name, the same at all parties.
    pub(crate) fn id(&self) -> [u8; HASH] {
        self.set_up.id
    }

    /// Takes out what a program uses; `None` if the set-up is gone by now.
    pub(crate) fn begin<U>(&mut self, take: impl FnOnce(&T) -> U) -> Option<U> {
        let mut state = self.set_up.state();
        let taken = state.value.as_ref().map(take)?;
        state.runs = state.runs.saturating_add(1);
        self.has_begun = true;
        Some(taken)
    }

    /// The parties at these positions are found to cheat, by their messages. Returns the positions of all who were found to, here or in another program that
    /// runs at the same time: unless there are none, a program may not go on, and show something that depends on what they have tried in it.
    pub(crate) fn judge(&self, cheats: &[usize]) -> Vec<usize> {
        self.set_up.cheats.judge(&self.set_up.parties, cheats)
    }

    /// The program has ended, and nothing in it was found false or was kept back.
    pub(crate) fn end_well(mut self) {
        self.has_begun = false;
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        let mut state = self.set_up.state();
        state.running = state.running.saturating_sub(1);
        if self.has_begun {
            state.value = None;
        }
        state.wipe_if_idle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parties(numbers: &[u16]) -> Vec<ShareIndex> {
        numbers.iter().map(|number| ShareIndex::try_from(*number).unwrap()).collect()
    }

    fn ids(set_ups: &SetUps<u8>, of: &[ShareIndex]) -> Vec<u8> {
        set_ups.offer(of).iter().map(|lease| lease.id()[0]).collect()
    }

    #[test]
    fn a_program_that_does_not_end_well_takes_its_set_up_along() {
        let (set_ups, both) = (SetUps::default(), parties(&[1, 2]));
        let mut first = set_ups.keep([1; HASH], &both, 10).unwrap();
        assert_eq!(first.begin(|value| *value), Some(10));
        first.end_well();
        assert_eq!((ids(&set_ups, &both), set_ups.ready()), (vec![1], 1));
        assert!(ids(&set_ups, &parties(&[1, 3])).is_empty(), "others' are of no use");

        let [mut good, mut bad] = [(), ()].map(|()| set_ups.offer(&both).remove(0));
        assert_eq!((good.begin(|value| *value), bad.begin(|value| *value)), (Some(10), Some(10)));
        let mut late = set_ups.offer(&both).remove(0);
        drop(bad);
        good.end_well();
        assert_eq!(late.begin(|value| *value), None, "it was offered before, and is gone");
        assert_eq!((ids(&set_ups, &both), set_ups.ready()), (vec![], 0));
    }

    #[test]
    fn who_was_found_to_cheat_stops_programs_that_run_still() {
        let set_ups = SetUps::default();
        let lease = |parties_of: &[u16], id: u8| set_ups.keep([id; HASH], &parties(parties_of), id).unwrap();
        let (finds, other, without) = (lease(&[1, 2, 4], 1), lease(&[2, 4, 5], 2), lease(&[1, 2, 5], 3));
        assert!([&finds, &other, &without].iter().all(|lease| lease.judge(&[]).is_empty()));
        assert_eq!(finds.judge(&[2]), [2], "party 4");
        assert_eq!((finds.judge(&[]), other.judge(&[]), without.judge(&[])), (vec![2], vec![1], vec![]));
        assert_eq!(other.judge(&[0]), [0, 1], "party 2, too");
        assert_eq!(lease(&[4, 6], 4).judge(&[]), [0], "nor does one that begins later");
        assert_eq!(set_ups.ready(), 3, "of it nothing is kept any more");
        set_ups.wipe_with(ShareIndex::try_from(4).unwrap());
        assert_eq!((set_ups.ready(), ids(&set_ups, &parties(&[1, 2, 5]))), (1, vec![3]));
    }

    #[test]
    fn what_is_only_offered_does_no_harm_and_few_use_one_together() {
        let (set_ups, both) = (SetUps::default(), parties(&[1, 2]));
        drop(set_ups.keep([1; HASH], &both, 10));
        let held: Vec<_> = (0..MOST_AT_ONCE).map(|_| set_ups.offer(&both).remove(0)).collect();
        assert!(ids(&set_ups, &both).is_empty());
        drop(held);
        assert_eq!(ids(&set_ups, &both), [1]);
    }

    #[test]
    fn there_are_few_of_the_same_parties_and_few_of_all() {
        let set_ups = SetUps::default();
        for number in 0..6 {
            drop(set_ups.keep([number; HASH], &parties(&[1, 2]), number));
        }
        assert_eq!(ids(&set_ups, &parties(&[1, 2])), [4, 5]);
        for number in 10..16 {
            drop(set_ups.keep([number; HASH], &parties(&[1, u16::from(number)]), number));
        }
        assert_eq!(set_ups.ready(), MOST);
        // The one goes that was not used for longest.
        let mut used = set_ups.offer(&parties(&[1, 2])).remove(0);
        assert!(used.begin(|_| ()).is_some());
        used.end_well();
        drop(set_ups.keep([20; HASH], &parties(&[1, 20]), 20));
        assert_eq!(
            (ids(&set_ups, &parties(&[1, 10])), ids(&set_ups, &parties(&[1, 2])), set_ups.ready()),
            (vec![], vec![4, 5], MOST)
        );
    }

    /// A node has many keys: what it keeps of all of them is bounded, and what nobody uses goes first, whatever key it is of.
    #[test]
    fn there_are_few_of_all_keys_together() {
        let (room, both) = (SetUpRoom::new(3), parties(&[1, 2]));
        let keys: Vec<SetUps<u8>> = (0..100).map(|_| SetUps::default()).collect();
        keys.iter().for_each(|key| key.count_in(&room));
        let ready = |key: usize| keys[key].ready();
        let all = || keys.iter().map(SetUps::ready).sum::<usize>();
        for (number, key) in (0..).zip(&keys) {
            drop(key.keep([number; HASH], &both, number));
            assert!(all() <= 3, "{} set-ups", all());
        }
        assert_eq!([96, 97, 98, 99].map(ready), [0, 1, 1, 1]);
        assert!(ids(&keys[0], &both).is_empty());
        // One that is used stays longer, and whoever uses one that has to go goes on.
        let mut used = keys[97].offer(&both).remove(0);
        let mut lent = keys[98].offer(&both).remove(0);
        assert_eq!((used.begin(|value| *value), lent.begin(|value| *value)), (Some(97), Some(98)));
        used.end_well();
        drop(keys[97].offer(&both));
        drop(keys[0].keep([100; HASH], &both, 100));
        assert_eq!([97, 98, 99, 0].map(ready), [1, 1, 0, 1]);
        drop(keys[1].keep([101; HASH], &both, 101));
        assert_eq!([97, 98, 0, 1].map(ready), [1, 0, 1, 1]);
        assert_eq!(lent.begin(|value| *value), Some(98), "it goes on");
        assert!(lent.set_up.state().value.is_some());
        let gone = Arc::clone(&lent.set_up);
        lent.end_well();
        assert!(gone.state().value.is_none(), "it is wiped with its last use");
        // One of many partners takes the place of as many.
        drop(keys[2].keep([102; HASH], &parties(&[1, 2, 3, 4]), 102));
        assert_eq!((all(), ready(2)), (1, 1));
    }

    /// What has to go for others is reached by a quarantine as long as a program uses it.
    #[test]
    fn a_quarantine_reaches_what_makes_room() {
        let (room, both) = (SetUpRoom::new(1), parties(&[1, 2]));
        let [one, other] = [(); 2].map(|()| SetUps::default());
        [&one, &other].into_iter().for_each(|key| key.count_in(&room));
        let mut held = one.keep([1; HASH], &both, 1).unwrap();
        drop(other.keep([2; HASH], &both, 2));
        assert_eq!((one.ready(), other.ready()), (0, 1));
        one.wipe_of(&both);
        assert_eq!(held.begin(|value| *value), None);
    }

    #[test]
    fn a_quarantine_takes_all_of_its_parties() {
        let set_ups = SetUps::default();
        let mut held = set_ups.keep([1; HASH], &parties(&[1, 2]), 1).unwrap();
        drop(set_ups.keep([2; HASH], &parties(&[1, 2]), 2));
        drop(set_ups.keep([3; HASH], &parties(&[1, 3]), 3));
        set_ups.wipe_of(&parties(&[1, 2]));
        assert_eq!(held.begin(|value| *value), None, "it was offered before");
        assert_eq!((ids(&set_ups, &parties(&[1, 2])), set_ups.ready()), (vec![], 1));
        // One that had made room for others, and one that a program makes that runs still.
        let both = parties(&[1, 3]);
        let mut held = set_ups.offer(&both).remove(0);
        (10..12).for_each(|number| drop(set_ups.keep([number; HASH], &both, number)));
        assert_eq!(ids(&set_ups, &both), [10, 11]);
        set_ups.wipe_of(&both);
        assert_eq!(held.begin(|value| *value), None, "it was lent");
        let mut late = set_ups.keep([12; HASH], &both, 12).unwrap();
        assert_eq!((late.begin(|value| *value), ids(&set_ups, &both)), (Some(12), vec![]));
    }

    #[test]
    fn what_nobody_uses_goes_with_its_day() {
        let (set_ups, both) = (SetUps::default(), parties(&[1, 2]));
        set_ups.note_day(7);
        drop(set_ups.keep([1; HASH], &both, 10));
        assert!(!set_ups.wipe_before(7));
        set_ups.note_day(8);
        assert_eq!(ids(&set_ups, &both), [1]);
        assert!(!set_ups.wipe_before(8), "it was offered on day 8");
        assert!(set_ups.wipe_before(9));
        assert_eq!(set_ups.ready(), 0);
        // Nobody has looked for long.
        drop(set_ups.keep([2; HASH], &both, 10));
        set_ups.note_day(10);
        assert_eq!(ids(&set_ups, &both), [0_u8; 0]);
    }

    #[test]
    fn a_set_up_is_used_up() {
        let (set_ups, both) = (SetUps::default(), parties(&[1, 2]));
        drop(set_ups.keep([1; HASH], &both, 10));
        for _ in 0..MOST_RUNS {
            let mut lease = set_ups.offer(&both).remove(0);
            assert!(lease.begin(|_| ()).is_some());
            lease.end_well();
        }
        assert!(ids(&set_ups, &both).is_empty());
    }
}
