//! Recognition of digests. With P-256 and RSA a name server has nodes sign the SHA-256 digest of what it signs. Whoever has the zone can compute
//! the digests of all that may be signed now, and see which one it is: then the same rule decides as about bytes
//! ([`consent`](crate::consent::consent)).
//!
//! - [`candidates`]: the record sets that may be signed; `added`: those among them that are not in the copy.
//! - [`moments`]: the times that signatures may have.
//! - `memory`: events that were recognised, with the digests of all their sets, so that the rest of an event costs a look each.
//! - `budget`: of each client digests that are none, and what looking for such has cost.
//! - [`offline`]: what a key of the keys signs that is kept offline.
//! - `search`: in which order the rest is tried; [`work`]: how much.

mod added;
mod budget;
pub mod candidates;
mod memory;
pub mod moments;
pub mod offline;
mod search;
pub mod work;

use std::sync::{Mutex, MutexGuard, PoisonError};

use candidates::{Candidates, Digest, Which};
use memory::{Memory, Recognised};
use moments::Style;
use offline::Offline;
use search::{Found, Hit, search};
use work::Work;

/// A day in seconds.
const DAY: u32 = 86_400;

/// How signers make signatures, as far as an operator knows, and how far the agent goes to recognise one.
#[derive(Clone, Debug)]
pub struct Guesses {
    /// How they make times, the likeliest first.
    pub styles: Vec<Style>,
    /// How far from now signatures of keys may begin, in seconds, by their request ([`Offline`]). An agent takes it from what it demands of them
    /// ([`Terms`](crate::consent::Terms)).
    pub ahead: u32,
    /// The most blocks of 64 bytes that are hashed to recognise one digest.
    pub most_blocks: u64,
}

impl Guesses {
    /// Signatures that begin 90 minutes back (Knot), an hour back (BIND), or at once, and end after one of so many days.
    #[must_use]
    pub fn of_days(lifetimes: &[u32]) -> Self {
        let ends = lifetimes.iter().map(|days| days.saturating_mul(DAY));
        let styles = ends.flat_map(|lifetime| [5_400, 3_600, 0].map(|back| Style { back, lifetime })).collect();
        Self { styles, ahead: 0, most_blocks: 10_000_000 }
    }
}

/// The candidates that are in force, and which ones they are: the number is another one after each change of zone or keys.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// What may be signed.
    pub candidates: &'a Candidates,
    /// What an offline key signs besides, if it is known what it is asked for.
    pub offline: Option<&'a Offline>,
    /// Their number.
    pub number: u64,
}

/// What a key signs in an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// What is signed of the first of the digests.
    pub first: Option<Vec<u8>>,
    /// In the order in which signers go through a zone.
    pub digests: Vec<Digest>,
}

/// Recognises digests of record sets, and remembers events.
#[derive(Debug)]
pub struct Recogniser {
    guesses: Guesses,
    memory: Mutex<Memory>,
    /// Whoever searches has it: one at a time, since the first of an event finds what the others need.
    turn: Mutex<()>,
}

/// On whose account is what is asked ahead: a recogniser answers either clients of the nodes or whoever looks ahead.
const AHEAD: &str = "";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recogniser {
    /// It remembers nothing yet.
    #[must_use]
    pub fn new(guesses: Guesses) -> Self {
        Self { guesses, memory: Mutex::default(), turn: Mutex::default() }
    }

    /// The signed bytes that have this digest, about which a client asks, who pays for it.
    ///
    /// # Errors
    /// Why there are none, in words.
    pub fn recognise(&self, client: &str, statement: &[u8], current: Current<'_>, now: u64) -> Result<Vec<u8>, String> {
        self.find(client, statement, current, now).map(|Recognised { bytes, .. }| bytes)
    }

    /// What the same key signs in the same event besides ([`Candidates::around`]): so many at most, from so many before this one on.
    ///
    /// # Errors
    /// As [`Self::recognise`]; or all has been hashed that there may be for now.
    pub fn ahead(
        &self,
        statement: &[u8],
        (before, most): (usize, usize),
        current: Current<'_>,
        now: u64,
    ) -> Result<Ahead, String> {
        let Recognised { found, .. } = self.find(AHEAD, statement, current, now)?;
        let Found { which, signer, moment } =
            found.ok_or_else(|| "nothing follows from what an offline key signs".to_owned())?;
        let mut work = Work::of(lock(&self.memory).budget(AHEAD, now).left(&self.guesses, now));
        let around = current.candidates.around(which, before, signer, moment, &mut work).take(most);
        let (places, digests): (Vec<_>, _) = around.unzip();
        lock(&self.memory).budget(AHEAD, now).spend(&work);
        if work.was_short() {
            return Err(
                "too many questions about what is signed next: for a second this agent answers no more".to_owned()
            );
        }
        let first = places.first().and_then(|place| current.candidates.bytes(Which::Set(*place), signer, moment));
        Ok(Ahead { first, digests })
    }

    /// What the digest is of.
    fn find(&self, client: &str, statement: &[u8], current: Current<'_>, now: u64) -> Result<Recognised, String> {
        let Ok(digest) = Digest::try_from(statement) else {
            return Err(format!("a digest of SHA-256 has 32 bytes, and this has {}", statement.len()));
        };
        if current.candidates.signers().is_empty() {
            return Err("no key of this zone signs digests: the keys of the agent are all of Ed25519".to_owned());
        }
        // Events go on while another digest is searched for.
        if let Some(answer) = lock(&self.memory).look_up(client, &digest, current, now) {
            return answer;
        }
        let _turn = lock(&self.turn);
        let outline = {
            let mut memory = lock(&self.memory);
            if let Some(answer) = memory.look_up(client, &digest, current, now) {
                return answer;
            }
            memory.budget(client, now).may_search(&self.guesses, now)?;
            memory.outline(current)
        };
        let mut work = Work::of(self.guesses.most_blocks);
        let hit = search(&digest, current, &self.guesses, &outline, now, &mut work);
        // To have all digests of the event is no search: it is done once.
        let mut more = Work::of(u64::MAX);
        let tables = match &hit {
            Some(Hit::Now(found)) => outline.tables(found, current.candidates, &mut more),
            Some(Hit::Offline(_)) | None => Vec::new(),
        };
        let mut memory = lock(&self.memory);
        memory.count(client, now, &work, &more);
        match hit {
            None => Err(memory.miss((client, digest), &work, &self.guesses, (current, now))),
            Some(Hit::Offline((moment, bytes))) => {
                memory.learn_offline(moment);
                Ok(Recognised { found: None, bytes })
            }
            Some(Hit::Now(found)) => {
                memory.learn(found, tables, current);
                let bytes = current.candidates.bytes(found.which, found.signer, found.moment);
                bytes.map(|bytes| Recognised { found: Some(found), bytes }).ok_or_else(|| memory::none(current))
            }
        }
    }

    /// One that guesses alike, and remembers nothing.
    #[must_use]
    pub fn afresh(&self) -> Self {
        Self::new(self.guesses.clone())
    }

    /// How many blocks of 64 bytes were hashed in searches.
    #[must_use]
    pub fn hashed(&self) -> u64 {
        lock(&self.memory).hashed()
    }
}
