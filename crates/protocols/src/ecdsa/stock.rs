//! The presignatures that one holder keeps for one epoch of a key.
//!
//! They are a part of the [stock](crate::Stock) of the key's epoch, with what is known of those who make them. See
//! `docs/adr/0051-ecdsa-in-the-service.md`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use theta_rounds::PartyId;
use theta_sharing::ShareIndex;

use super::curves::AnyPresignature;
use super::queue::{Place, Queue};
use crate::Served;

/// A set of holders in which somebody cheated. It makes no more programs at this party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// The holders, by rising index.
    pub holders: Vec<ShareIndex>,
    /// What was found false, perhaps before this party's last start.
    pub phase: Cow<'static, str>,
    /// Who it was, if that is known: of two holders always the other one.
    pub party: Option<PartyId>,
}

impl Quarantine {
    /// Whether these holders make no program with this party any more: they are this set, or whoever cheated in it is among them. A cheat that is known has
    /// one false guess at what this party hides, and not one in each set.
    pub(super) fn forbids(&self, holders: &[ShareIndex]) -> bool {
        self.holders == holders || self.party.is_some_and(|party| holders.contains(&party.share()))
    }

    /// Whether this is to be noted beside what is known: a cheat that nobody has named yet, or a set that nothing forbids.
    pub(super) fn is_news(&self, known: &[Self]) -> bool {
        match self.party {
            Some(_) => known.iter().all(|known| known.party != self.party),
            None => !known.iter().any(|known| known.forbids(&self.holders)),
        }
    }

    /// Whether these holders have made it.
    fn made(&self, presignature: &AnyPresignature) -> bool {
        presignature.signers().map(PartyId::share).eq(self.holders.iter().copied())
    }
}

/// Why a program has failed a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody cheated, or began anew where this holder cannot see it, itself perhaps.
    Check,
    /// These began anew in the middle, or say so.
    Restart,
    /// The holders did not mean the same.
    Apart,
}

impl Cause {
    /// In one word, for metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Restart => "restart",
            Self::Apart => "apart",
        }
    }
}

/// What a machine asks of the stock of its key's epoch, or gives it to keep.
#[derive(Debug)]
pub enum Ask {
    /// Take out, for good, a presignature of which this holder says what it signs: the oldest of those whose signers are doubted least, none of them
    /// in `without`. Whoever has waited for longer has one first: it gets one if there are as many more that it may use. The answer is [`Supply::Drawn`].
    Draw {
        /// This holder.
        owner: PartyId,
        /// Signers that it must not have.
        without: BTreeSet<PartyId>,
        /// Whether to wait if there is none and a program makes some, or others have waited for longer, and there is a place among those that wait: the
        /// answer is then [`Served::Later`], with this question.
        waits: bool,
        /// Its place, if it waits already.
        place: Option<Place>,
    },
    /// Take out, for good, the presignature of that name, if `owner` says what it signs. The answer is [`Supply::Taken`].
    Take {
        /// Who named it.
        owner: PartyId,
        /// Its name.
        id: [u8; 32],
        /// Whether to wait if it is not there and a program makes some for the owner: it may have ended at the owner before it does here. The answer is
        /// then [`Served::Later`], with this question. One waits for each name, and few for each owner.
        waits: bool,
        /// Whether this one waits already.
        again: bool,
    },
    /// Keep these, as far as there is room for their owners'; the others are wiped, as are those that a set in quarantine has made: its program may have
    /// ended here after the cheat was found. No answer.
    Keep {
        /// The presignatures, oldest first.
        presignatures: Vec<AnyPresignature>,
        /// The most of one owner that are kept.
        most: usize,
        /// The day on which they were made, or an earlier one, in days since 1970.
        day: u32,
        /// Counts the program until they are kept, so that whoever waits for it finds them.
        made: Option<UnderWay>,
    },
    /// An attempt with these holders failed, and it is not known whose fault that was: presignatures of others come first. No answer.
    Doubt(Vec<PartyId>),
    /// Somebody cheated among these holders, and they make no more programs with this one. What they have made is wiped. No answer.
    Quarantine(Quarantine),
    /// A program of holders most of whom are honest has failed a check, and messages do not show by whom. Programs of others are made all the same; whoever
    /// runs the node should hear of it if it goes on. No answer.
    Failed {
        /// Those who may have brought it about, this holder among them or not.
        holders: Vec<PartyId>,
        /// Why it may be.
        cause: Cause,
        /// Which check.
        phase: &'static str,
    },
    /// The shares of all these signers make no signature, or what these two say of a message in a program differs: one of them has lied, and it does not show
    /// which. Where each such set is kept it may show by elimination:
    /// see [`Stock::spoiled`](crate::Stock::spoiled). No answer.
    Spoiled {
        /// This holder.
        local: PartyId,
        /// The signers, or the two.
        signers: Vec<PartyId>,
        /// The most holders that lie: t.
        liars: u16,
    },
    /// This holder seems to lack the presignatures of which it says what they sign, as after a restart. They still sign if it names one, for it may
    /// only have been hindered; but they are not counted, and where there is no room for new ones they are wiped first. No answer.
    Spare(PartyId),
    /// These holders have just signed. No answer.
    Trust(Vec<PartyId>),
    /// A filling by holders all of whom it takes begins to use what is hidden. No answer.
    Begun,
    /// Such a filling has ended well: it counts no more, and nor does one of before that did not. No answer.
    EndedWell,
}

/// The programs of one party that make presignatures for a stock and have not ended, by who owns what they make; nobody alone owns what is made when
/// nobody asks. Clones count the same ones.
#[derive(Clone, Debug, Default)]
pub struct Making(Arc<Mutex<BTreeMap<Option<PartyId>, usize>>>);

/// One of these programs, until it is dropped.
#[derive(Debug)]
pub struct UnderWay(Making, Option<PartyId>);

impl Making {
    /// A program begins.
    pub(super) fn begin(&self, owner: Option<PartyId>) -> UnderWay {
        *self.counted().entry(owner).or_default() += 1;
        UnderWay(self.clone(), owner)
    }

    /// How many programs make some for this owner alone.
    pub(super) fn of(&self, owner: PartyId) -> usize {
        self.counted().get(&Some(owner)).copied().unwrap_or(0)
    }

    /// Whether a program makes some for this owner, or for all.
    fn is_under_way(&self, owner: PartyId) -> bool {
        let counted = self.counted();
        [None, Some(owner)].iter().any(|owner| counted.contains_key(owner))
    }

    fn counted(&self) -> MutexGuard<'_, BTreeMap<Option<PartyId>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Self(making, owner) = self;
        let mut counted = making.counted();
        let left = counted.get(owner).map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            counted.remove(owner);
        } else {
            counted.insert(*owner, left);
        }
    }
}

/// What the stock answers.
#[derive(Debug)]
pub enum Supply {
    /// To [`Ask::Draw`].
    Drawn {
        /// If there is one that may sign.
        presignature: Option<AnyPresignature>,
        /// Holders that are doubted.
        doubted: Vec<PartyId>,
        /// How many of the owner's are left.
        left: usize,
        /// Sets of holders that make no programs with this one.
        quarantined: Vec<Quarantine>,
    },
    /// To [`Ask::Take`].
    Taken {
        /// Who named it.
        owner: PartyId,
        /// Its name.
        id: [u8; 32],
        /// If it was there and may sign.
        presignature: Option<AnyPresignature>,
    },
}

/// A presignature that is taken out to sign.
#[derive(Debug)]
pub struct Used {
    /// The presignature.
    pub presignature: AnyPresignature,
    /// The day on which it was made, or an earlier one, in days since 1970.
    pub day: u32,
    supply: Supply,
}

impl From<Used> for Supply {
    fn from(Used { presignature, mut supply, .. }: Used) -> Self {
        match &mut supply {
            Self::Drawn { presignature: place, .. } | Self::Taken { presignature: place, .. } => {
                *place = Some(presignature);
            }
        }
        supply
    }
}

impl Used {
    /// The answer that it may not sign; it is wiped.
    #[must_use]
    pub fn refused(self) -> Supply {
        self.supply
    }
}

/// A presignature that waits.
struct Waiting {
    presignature: AnyPresignature,
    /// The day on which it was made, or an earlier one, in days since 1970.
    day: u32,
    /// Whether its owner seems to lack it.
    is_spare: bool,
    /// Whether its owner has named it before it was here: nobody draws it any more, and whoever still waits for it takes it out.
    is_named: bool,
}

/// So many names of each owner that were asked for in vain are remembered.
const MOST_NAMED: usize = 64;

/// What one holder keeps. It starts empty.
#[derive(Default)]
pub(crate) struct Presignatures {
    /// Oldest first.
    kept: VecDeque<Waiting>,
    /// In how many attempts that failed lately each holder was.
    doubts: BTreeMap<PartyId, u32>,
    /// Sets of holders in which somebody cheated, in the order in which they were found.
    quarantined: Vec<Quarantine>,
    /// Fillings that have used what is hidden and not ended well, less one for each that has.
    unended: u32,
    /// What owners have named while a program was under way here that may bring it.
    named: BTreeMap<PartyId, BTreeSet<[u8; 32]>>,
    /// Programs that make some.
    making: Making,
    /// Who waits for that.
    queue: Queue,
}

impl Presignatures {
    /// What programs that make presignatures are counted by.
    pub(crate) fn making(&self) -> Making {
        self.making.clone()
    }

    /// Those that wait and that their owners do not seem to lack.
    fn counted(&self) -> impl Iterator<Item = &AnyPresignature> {
        self.kept.iter().filter(|waiting| !waiting.is_spare && !waiting.is_named).map(|waiting| &waiting.presignature)
    }

    /// How many wait. Those that their owners seem to lack are not counted: they keep nobody from making others.
    pub(crate) fn ready(&self) -> usize {
        self.counted().count()
    }

    /// Wipes those that were made before this day. Says whether there were any.
    pub(crate) fn wipe_before(&mut self, day: u32) -> bool {
        let before = self.kept.len();
        self.kept.retain(|waiting| waiting.day >= day);
        self.kept.len() < before
    }

    /// How many wait, with so many of each owner at most: what one has too much of is nothing that others have.
    pub(crate) fn ready_of_each(&self, most: usize) -> usize {
        let mut owned: BTreeMap<PartyId, usize> = BTreeMap::new();
        self.counted().for_each(|presignature| *owned.entry(presignature.owner()).or_default() += 1);
        owned.values().map(|owned| most.min(*owned)).sum()
    }

    /// How many wait of which this party says what they sign, as [`Self::ready`] counts.
    pub(crate) fn owned_by(&self, owner: PartyId) -> usize {
        self.counted().filter(|presignature| presignature.owner() == owner).count()
    }

    /// Holders that were in attempts which failed lately.
    pub(crate) fn doubted(&self) -> Vec<PartyId> {
        self.doubts.keys().copied().collect()
    }

    /// The sets of holders in which somebody cheated.
    pub(crate) fn quarantined(&self) -> &[Quarantine] {
        &self.quarantined
    }

    /// Fillings that have used what is hidden and not ended well, less one for each that has.
    pub(crate) const fn unended(&self) -> u32 {
        self.unended
    }

    /// Does what is asked for.
    pub(crate) fn serve(&mut self, ask: Ask) -> Served<Supply, Used, Ask> {
        match ask {
            Ask::Draw { owner, without, waits, place } => self.draw(owner, without, waits, place),
            Ask::Take { owner, id, waits, again } => match self.take(owner, id) {
                None if waits && self.making.is_under_way(owner) && (again || self.note_named(owner, id)) => {
                    Served::Later(Ask::Take { owner, id, waits, again: true })
                }
                taken => served(taken, Supply::Taken { owner, id, presignature: None }),
            },
            Ask::Keep { presignatures, most, day, made } => {
                self.keep(presignatures, most, day);
                drop(made);
                let making = &self.making;
                self.named.retain(|owner, _| making.is_under_way(*owner));
                Served::Done
            }
            Ask::Doubt(parties) => {
                for party in parties {
                    let doubts = self.doubts.entry(party).or_default();
                    *doubts = doubts.saturating_add(1);
                }
                Served::Done
            }
            Ask::Quarantine(quarantine) => {
                let _ = self.quarantine(quarantine);
                Served::Done
            }
            Ask::Failed { .. } | Ask::Spoiled { .. } => Served::Done,
            Ask::Spare(owner) => {
                self.mark(owner, true);
                Served::Done
            }
            Ask::Trust(parties) => {
                for party in parties {
                    self.doubts.remove(&party);
                }
                Served::Done
            }
            Ask::Begun => {
                self.unended = self.unended.saturating_add(1);
                Served::Done
            }
            Ask::EndedWell => {
                self.unended = self.unended.saturating_sub(2);
                Served::Done
            }
        }
    }

    /// Remembers what an owner has named before it is here, until no program makes any for it: the others have taken theirs out, so that it is of no use after
    /// this request. Says whether it is new and there is room.
    fn note_named(&mut self, owner: PartyId, id: [u8; 32]) -> bool {
        let named = self.named.entry(owner).or_default();
        named.len() < MOST_NAMED && named.insert(id)
    }

    /// Takes out the presignature of that name, if this party says what it signs.
    fn take(&mut self, owner: PartyId, id: [u8; 32]) -> Option<Waiting> {
        let is_it = |waiting: &Waiting| waiting.presignature.id() == id && waiting.presignature.owner() == owner;
        let place = self.kept.iter().position(is_it)?;
        let taken = self.kept.remove(place)?;
        if taken.is_spare {
            // It has this one, so it has not lost those that were made with it.
            self.mark(owner, false);
        }
        Some(taken)
    }

    /// Takes out the one that this owner should use next, unless others have waited for it.
    fn draw(
        &mut self,
        owner: PartyId,
        without: BTreeSet<PartyId>,
        waits: bool,
        place: Option<Place>,
    ) -> Served<Supply, Used, Ask> {
        // Whoever has waited for long enough goes before those that it waited behind: they are over as well, or may not have what there is.
        let before = if !waits && place.is_some() { 0 } else { self.queue.before(place.as_ref()) };
        let best = self.best(owner, &without, before);
        let found = best.and_then(|at| self.kept.remove(at));
        // Those that came before may leave what is there; nobody waits for what nobody makes.
        let may_come = || self.making.is_under_way(owner) || self.best(owner, &without, 0).is_some();
        if waits
            && found.is_none()
            && may_come()
            && let Some(place) = place.or_else(|| self.queue.join())
        {
            return Served::Later(Ask::Draw { owner, without, waits, place: Some(place) });
        }
        let left = self.kept.iter().filter(|waiting| waiting.presignature.owner() == owner).count();
        let (doubted, quarantined) = (self.doubted(), self.quarantined.clone());
        served(found, Supply::Drawn { presignature: None, doubted, left, quarantined })
    }

    /// Notes of all that wait of this owner whether it seems to lack them.
    fn mark(&mut self, owner: PartyId, is_spare: bool) {
        let of_owner = self.kept.iter_mut().filter(|waiting| waiting.presignature.owner() == owner);
        of_owner.for_each(|waiting| waiting.is_spare = is_spare);
    }

    /// Keeps these, and of each owner so many at most. Where there are too many, first what it seems to lack or has named goes, the oldest first, and then what
    /// has the highest names: that depends on nothing but what there is, so that stocks stay alike whichever of two programs has ended first. Each of an owner's
    /// that its other signers have thrown away costs a request a tick.
    fn keep(&mut self, mut presignatures: Vec<AnyPresignature>, most: usize, day: u32) {
        presignatures.retain(|made| self.quarantined.iter().all(|quarantine| !quarantine.made(made)));
        let owners: BTreeSet<PartyId> = presignatures.iter().map(AnyPresignature::owner).collect();
        for presignature in presignatures {
            let named = self.named.get(&presignature.owner());
            let is_named = named.is_some_and(|named| named.contains(&presignature.id()));
            self.kept.push_back(Waiting { presignature, day, is_spare: false, is_named });
        }
        for owner in owners {
            self.make_room(owner, most);
        }
    }

    /// Wipes what there is too much of an owner's.
    fn make_room(&mut self, owner: PartyId, most: usize) {
        let is_of_owner = |waiting: &Waiting| waiting.presignature.owner() == owner;
        let mut excess = self.kept.iter().filter(|waiting| is_of_owner(waiting)).count().saturating_sub(most);
        self.kept.retain(|waiting| {
            let goes = excess > 0 && (waiting.is_spare || waiting.is_named) && is_of_owner(waiting);
            excess -= usize::from(goes);
            !goes
        });
        let of_owner = self.kept.iter().filter(|waiting| is_of_owner(waiting));
        let mut names: Vec<[u8; 32]> = of_owner.map(|waiting| waiting.presignature.id()).collect();
        names.sort_unstable();
        if let Some(first_to_go) = names.get(most) {
            self.kept.retain(|waiting| !is_of_owner(waiting) || waiting.presignature.id() < *first_to_go);
        }
    }

    /// Notes a set of holders, and wipes what they have made: this party does nothing more with them. Says whether it is news, which it is once, and once
    /// more for each cheat that is named.
    pub(crate) fn quarantine(&mut self, quarantine: Quarantine) -> bool {
        self.kept.retain(|waiting| !quarantine.made(&waiting.presignature));
        let is_news = quarantine.is_news(&self.quarantined);
        if is_news {
            // A cheat that is named says more than the sets that it is in.
            self.quarantined.retain(|known| known.party.is_some() || !quarantine.forbids(&known.holders));
            self.quarantined.push(quarantine);
        }
        is_news
    }

    /// Where the presignature is that an owner should use next, if so many others of those that it may use are left.
    fn best(&self, owner: PartyId, without: &BTreeSet<PartyId>, left: usize) -> Option<usize> {
        let doubts = |presignature: &AnyPresignature| -> u32 {
            let doubts = |signer: PartyId| self.doubts.get(&signer).copied().unwrap_or(0);
            presignature.signers().map(doubts).fold(0, u32::saturating_add)
        };
        let usable = |presignature: &AnyPresignature| {
            presignature.owner() == owner && !presignature.signers().any(|signer| without.contains(&signer))
        };
        let is_usable = |waiting: &Waiting| !waiting.is_named && usable(&waiting.presignature);
        let all = || self.kept.iter().enumerate().filter(|(_, waiting)| is_usable(waiting));
        all().nth(left)?;
        all().min_by_key(|(_, waiting)| doubts(&waiting.presignature)).map(|(place, _)| place)
    }
}

fn served(found: Option<Waiting>, supply: Supply) -> Served<Supply, Used, Ask> {
    match found {
        Some(Waiting { presignature, day, .. }) => Served::Used(Used { presignature, day, supply }),
        None => Served::Supply(supply),
    }
}
