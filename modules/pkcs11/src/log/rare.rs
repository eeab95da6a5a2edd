//! What was said just now, and is not said again.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use theta_names::{NodeId, Seldom};

/// For how long one thing is said once.
const PAUSE: Duration = Duration::from_secs(60);
/// The most things of a kind that are said in that time: who makes them up has no more lines.
pub(super) const MOST: usize = 256;
/// The same of what one node says of others.
pub(super) const MOST_TOLD: usize = 32;
/// The most kinds that are remembered: those of tellers of long ago make room.
const MOST_KINDS: usize = 1024;

/// Things of one kind have their own lines: what a node that lies can make up keeps nothing of another kind from being said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// False answers that this client has found.
    FalseAnswer,
    /// What this node says of others.
    ToldBy(NodeId),
    /// What this machine lacks, such as keys that are fit.
    Fault,
}

impl Kind {
    const fn most(self) -> usize {
        match self {
            Self::ToldBy(_) => MOST_TOLD,
            Self::FalseAnswer | Self::Fault => MOST,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Rare(Mutex<HashMap<Kind, Said>>);

/// What was said of one kind.
#[derive(Debug, Default)]
struct Said {
    things: HashMap<String, Seldom>,
    /// How much was not said since something was.
    left_out: u64,
}

impl Rare {
    /// Whether something may be said of this now. Then it is, and this is how much of the kind was left out before it.
    pub(super) fn is_time(&self, kind: Kind, about: &str, now: Instant) -> Option<u64> {
        let is_new = |thing: &Seldom| !thing.is_due(now);
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !kinds.contains_key(&kind) && kinds.len() >= MOST_KINDS {
            kinds.retain(|_, said| said.things.values().any(is_new));
            if kinds.len() >= MOST_KINDS {
                return None;
            }
        }
        let said = kinds.entry(kind).or_default();
        if !said.things.contains_key(about) && said.things.len() >= kind.most() {
            said.things.retain(|_, thing| is_new(thing));
        }
        let has_place = said.things.contains_key(about) || said.things.len() < kind.most();
        let is_time = has_place && {
            let thing = said.things.entry(about.to_owned()).or_insert_with(|| Seldom::every(PAUSE));
            thing.is_time(now).is_some()
        };
        if !is_time {
            // Those of which nothing is remembered count, too.
            said.left_out = said.left_out.saturating_add(1);
            return None;
        }
        Some(std::mem::take(&mut said.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_by(number: u16) -> Kind {
        Kind::ToldBy(number.try_into().unwrap())
    }

    #[test]
    fn each_thing_is_said_once_a_minute_and_no_more_than_so_many() {
        let (rare, now) = (Rare::default(), Instant::now());
        let is_time = |about: &str, now| rare.is_time(Kind::Fault, about, now);
        assert_eq!((is_time("one", now), is_time("one", now + PAUSE / 2)), (Some(0), None));
        assert_eq!(is_time("one", now + PAUSE), Some(1), "one was left out");
        let later = now + PAUSE;
        assert_eq!((0..2 * MOST).filter(|number| is_time(&number.to_string(), later).is_some()).count(), MOST - 1);
        assert_eq!(is_time("two", later + PAUSE), Some(u64::try_from(MOST).unwrap() + 1), "what is old makes room");
    }

    /// Node 1 makes up whatever it can.
    #[test]
    fn what_one_node_makes_up_silences_nobody_else() {
        let (rare, now) = (Rare::default(), Instant::now());
        let made_up = (0..9 * MOST).filter(|number| rare.is_time(told_by(1), &number.to_string(), now).is_some());
        assert_eq!(made_up.count(), MOST_TOLD);
        for kind in [told_by(2), Kind::FalseAnswer, Kind::Fault] {
            assert_eq!(rare.is_time(kind, "0", now), Some(0), "{kind:?}");
        }
    }
}
