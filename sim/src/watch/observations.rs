//! What is seen to happen in a run, counted: the events that scenarios are about.

use std::collections::BTreeMap;

/// Something that happened: what an adversary did, what was done against it, what the group decided. A test checks with
/// these that what it is about has happened at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Observation {
    /// A liar sent a false statement of a ceremony.
    Lied,
    /// A node was started with an older copy of its store, or an empty one.
    SetBack,
    /// Such a node was asked for a share for a slot, and did not trust its store.
    Distrusted,
    /// A person confirmed the store.
    Confirmed,
    /// A request of a ceremony was sent to a node at which that ceremony had ended.
    AskedAgain,
    /// The node answered that the request is used up.
    UsedUp,
    /// A change of a key's state was sent to a node that had made it before.
    ChangedAgain,
    /// The node answered that it has made later changes.
    OutOfDate,
    /// A node stopped using a key before the group had decided that.
    Frozen,
    /// Another change of a key's state waited for the group's decision.
    ChangeWaits,
    /// A thief ran a stolen copy of a node.
    Stolen,
    /// The copy was made during a ceremony.
    StolenInCeremony,
    /// The thief had shares of several epochs of one key.
    EpochsRobbed,
    /// The thief had k shares of one epoch, and so the key.
    KeyCombined,
    /// A node lost its power.
    Crashed,
    /// The network parted.
    Parted,
    /// A host gave a node a frame that it had bent, kept, or taken for somebody else's.
    Forged,
    /// A node waited for the order of its host before it promised a slot.
    RaceWaited,
    /// Another message was first in that order.
    RaceLost,
    /// An entry of the ledger: a dealer's key.
    Adopted,
    /// An entry: a ceremony begins.
    Begun,
    /// An entry: a ceremony has ended with new shares,
    Activated,
    /// with a share that was found,
    Recovered,
    /// or with nothing.
    Aborted,
    /// An entry: another machine has a member's place.
    Replaced,
    /// An entry: a member has a new card.
    Renewed,
    /// An entry: a new member.
    Joined,
    /// An entry: a member leaves.
    Left,
    /// Operators signed a warrant.
    Warranted,
    /// An entry was decided with the votes of a machine in the place of a member's.
    ByWarrant,
    /// The machine that was said to be gone came back,
    CameBack,
    /// or a thief ran it.
    RunByThief,
    /// A message came from a machine that has a member's place no more, or not yet, and was not taken.
    Unseated,
    /// The other machine had a right share in the end.
    ShareRegained,
    /// Any other entry.
    OtherEntry,
    /// A client took an entry.
    Followed,
    /// A client was told something false, and did not believe it.
    FalseAnswer,
    /// A node sent its share of a presignature of ECDSA.
    Presigned,
    /// A node announced that it makes presignatures.
    Filled,
    /// An honest node put a set of holders in quarantine that none had yet, or named another cheat in it.
    Quarantined,
    /// The most ticks that an honest node lacked an entry which another one had, once it was connected.
    SlowestSpread,
    /// The most ticks that a ceremony ran once a quorum was connected.
    SlowestCeremony,
    /// The most ticks that it took until nothing was left to do, once a quorum was connected.
    SlowestEnd,
}

impl Observation {
    /// Whether it is the largest of some numbers, and not a count.
    #[must_use]
    pub const fn is_most(self) -> bool {
        matches!(self, Self::SlowestSpread | Self::SlowestCeremony | Self::SlowestEnd)
    }
}

/// How often each of them happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observations {
    counts: BTreeMap<Observation, u64>,
    /// By the name of the behaviour.
    lies: BTreeMap<&'static str, u64>,
}

impl Observations {
    pub(crate) fn note(&mut self, observation: Observation) {
        self.add(observation, 1);
    }

    pub(crate) fn add(&mut self, observation: Observation, times: u64) {
        *self.counts.entry(observation).or_default() += times;
    }

    /// Notes a number of which the largest counts.
    pub(crate) fn most(&mut self, observation: Observation, number: u64) {
        let most = self.counts.entry(observation).or_default();
        *most = number.max(*most);
    }

    /// Counts the lies of one liar.
    pub(crate) fn lied(&mut self, kind: &'static str, times: u64) {
        if times > 0 {
            *self.lies.entry(kind).or_default() += times;
        }
    }

    /// Adds those of another run.
    pub fn absorb(&mut self, other: &Self) {
        for (observation, times) in &other.counts {
            if observation.is_most() { self.most(*observation, *times) } else { self.add(*observation, *times) }
        }
        other.lies.iter().for_each(|(kind, times)| self.lied(kind, *times));
    }

    /// How many messages liars of each kind left out, changed or added to.
    pub fn lies(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.lies.iter().map(|(kind, times)| (*kind, *times))
    }

    /// How often it happened.
    #[must_use]
    pub fn count(&self, observation: Observation) -> u64 {
        self.counts.get(&observation).copied().unwrap_or_default()
    }
}
