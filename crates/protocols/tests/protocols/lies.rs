//! Lies that can be told in every protocol of several rounds, for groups that are drawn by seed.

use theta_rounds::simulator::{Adversary, Behaviour, SimRng, below};

/// How many kinds of lies there are in every protocol.
const KINDS: usize = 12;

/// A lie of some kind: one of those of every protocol, or a protocol's own, which `own` makes from its number, below `others`. A liar that crashes does
/// so within its first `most_sent` messages.
pub(crate) fn any_lie(
    rng: &mut SimRng,
    most_sent: u64,
    others: usize,
    own: impl Fn(usize) -> Box<dyn Adversary>,
) -> Box<dyn Adversary> {
    let behaviour = match usize::try_from(below(rng, u64::try_from(KINDS + others).unwrap())).unwrap() {
        0 => Behaviour::Silent,
        1 => Behaviour::Garbage,
        2 => Behaviour::BitFlip,
        3 => Behaviour::Truncate,
        4 => Behaviour::WrongChannel,
        5 => Behaviour::Empty,
        6 => Behaviour::TwoToSame,
        7 => Behaviour::Equivocate,
        8 => Behaviour::CopyOthers,
        9 => Behaviour::Flood,
        10 => Behaviour::CrashAfter(usize::try_from(below(rng, most_sent)).unwrap()),
        11 => Behaviour::Overlong,
        other => return own(other - KINDS),
    };
    Box::new(behaviour)
}
