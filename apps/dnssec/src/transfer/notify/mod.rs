//! What a primary tells when the zone has changed (RFC 1996), so that nobody waits until it is asked again. It is believed if it is signed with the key with
//! which the zone is transferred, and then says only that it is time to ask.

mod listener;
#[cfg(test)]
mod tests;

use std::{
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

pub use self::listener::ListenError;
pub(super) use self::listener::listen;
use super::tsig::{Key, Sequence};
use crate::owner::Owner;

/// A primary is asked so often at most, whatever it tells.
const APART: Duration = Duration::from_secs(1);
/// The header of a message; a question's type and class, SOA and IN.
const HEADER: usize = 12;
const SOA_IN: [u8; 4] = [0, 6, 0, 1];
/// NOTIFY, in the place in which the header has it; a response; an authoritative one.
const NOTIFY: u8 = 4 << 3;
const RESPONSE: u8 = 0x80;
const AUTHORITATIVE: u8 = 0x04;
/// RCODEs (RFC 1035, section 4.1.1; RFC 2136, section 2.2).
const GOOD: u8 = 0;
const FORMAT: u8 = 1;
const NOT_IMPLEMENTED: u8 = 4;
const NOT_AUTHORISED: u8 = 9;

/// Whether something was told that has not been looked at.
#[derive(Debug, Default)]
pub(super) struct News {
    are_there: Mutex<bool>,
    come: Condvar,
}

impl News {
    /// Tells that there are some. Those that come while nobody has looked are one.
    pub(super) fn tell(&self) {
        *self.are_there.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.come.notify_all();
    }

    /// Waits for news, so long at most, and no shorter than it takes for questions to be apart; the last one was asked then. What comes from now on
    /// is news again.
    pub(super) fn wait(&self, longest: Duration, asked: Instant) {
        let are_there = self.are_there.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.come.wait_timeout_while(are_there, longest, |are_there| !*are_there);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        thread::sleep(APART.min(longest).saturating_sub(asked.elapsed()));
        *self.are_there.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// What is said to a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    /// The answer, no longer than the message.
    pub(super) answer: Vec<u8>,
    /// Why it tells nothing, if it does not.
    pub(super) objection: Option<String>,
}

/// The question of a message with its id, if it can be answered.
struct Question<'a> {
    /// The id and the flags.
    head: [u8; 4],
    /// Name, type and class, as they came.
    bytes: &'a [u8],
    /// Whether they are of the zone's SOA record.
    is_of_zone: bool,
}

impl<'a> Question<'a> {
    fn read(message: &'a [u8], zone: &Owner) -> Option<Self> {
        let (header, rest) = message.split_first_chunk::<HEADER>()?;
        let [a, b, c, d, 0, 1, ..] = *header else { return None };
        let (name, after) = Owner::read(rest)?;
        let (kind, after) = after.split_first_chunk::<4>()?;
        let bytes = rest.get(..rest.len().checked_sub(after.len())?)?;
        Some(Self { head: [a, b, c, d], bytes, is_of_zone: name == *zone && *kind == SOA_IN })
    }

    /// The answer, not signed.
    fn answer(&self, code: u8) -> Vec<u8> {
        let [a, b, flags, _] = self.head;
        let flags = RESPONSE | (flags & 0x78) | if code == GOOD { AUTHORITATIVE } else { 0 };
        [&[a, b, flags, code, 0, 1, 0, 0, 0, 0, 0, 0], self.bytes].concat()
    }
}

/// Looks at a message that somebody has sent, at a time in seconds since 1970. `None`: it is none that is answered, such as an answer.
pub(super) fn hear(message: &[u8], zone: &Owner, key: &Key, now: u64) -> Option<Said> {
    // Answers are not answered, so that two do not go on for ever.
    if message.get(2).is_none_or(|flags| flags & RESPONSE != 0) {
        return None;
    }
    let question = Question::read(message, zone)?;
    let [_, _, flags, _] = question.head;
    let no = |code, words: &str| Some(Said { answer: question.answer(code), objection: Some(words.to_owned()) });
    if flags & 0x78 != NOTIFY {
        return no(NOT_IMPLEMENTED, "it is no NOTIFY: an agent answers nothing else");
    }
    let mut sequence = Sequence::asked(key);
    if let Err(error) = sequence.answer(message, now) {
        return no(NOT_AUTHORISED, &error.to_string());
    }
    let code = if question.is_of_zone { GOOD } else { NOT_AUTHORISED };
    let mut answer = question.answer(code);
    sequence.reply(&mut answer, now);
    let objection = (!question.is_of_zone).then(|| format!("it is about something else than the SOA record of {zone}"));
    // What is signed has at least a question and a signature, as the answer has.
    if answer.len() > message.len() {
        return no(FORMAT, "it is shorter than what is signed can be");
    }
    Some(Said { answer, objection })
}
