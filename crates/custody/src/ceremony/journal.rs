//! The entries of a ceremony in the journal.
//!
//! Of a message, only the items that changed the machine's state are recorded; of a run of ticks, their number. Both
//! are bounded by the plan, whatever others send, so the bounds of the journal should never be reached.

use bytes::Bytes;
use theta_ceremonies::ITEMS;
use theta_ceremonies::Input;
use theta_names::NodeId;
use theta_rounds::{Channel, Malformed, PartyId};
use theta_store::{JOURNAL_BYTES, JOURNAL_INPUT_BYTES, JOURNAL_INPUTS};

use crate::codec::{Reader, Writer};

/// The kind of an entry; the accepted items are added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Start,
    Tick,
    Items(NodeId),
}

impl Entry {
    pub(crate) fn of(input: &Input) -> Self {
        match input {
            Input::Start => Self::Start,
            Input::Tick => Self::Tick,
            Input::Supply(nothing) => match *nothing {},
            Input::Message { from, .. } => Self::Items(from.node()),
        }
    }
}

/// An input to write, and its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) index: u32,
    pub(crate) input: Vec<u8>,
    /// Whether it replaces the last one.
    pub(crate) amends: bool,
}

/// What a ceremony has in the journal so far.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    entries: u32,
    bytes: u64,
    /// The number of ticks in the last entry, if that is a run of ticks.
    ticks: u32,
}

impl Pages {
    /// There is room for so many bytes more.
    #[cfg(test)]
    pub(crate) fn almost_full(room: u64) -> Self {
        Self { bytes: JOURNAL_BYTES / 2 - room, ..Self::default() }
    }

    /// The page of an entry; `None` if there is no room for it. A node that has signed for the outcome has twice as
    /// much room, since it must not give up.
    pub(crate) fn write(&mut self, entry: Entry, accepted: &[u8], signed: bool) -> Option<Page> {
        let input = match entry {
            Entry::Start => vec![0],
            Entry::Tick => Writer::new(1).u32(self.ticks.checked_add(1)?).finish(),
            Entry::Items(from) => Writer::new(2).node_id(from).raw(accepted).finish(),
        };
        if entry == Entry::Tick && self.ticks > 0 {
            self.ticks += 1;
            return Some(Page { index: self.entries.checked_sub(1)?, input, amends: true });
        }
        let share = if signed { 1 } else { 2 };
        let bytes = self.bytes.saturating_add(input.len() as u64);
        let room = self.entries < JOURNAL_INPUTS / share && bytes <= JOURNAL_BYTES / u64::from(share);
        if !room || input.len() > JOURNAL_INPUT_BYTES {
            return None;
        }
        let index = self.entries;
        (self.entries, self.bytes, self.ticks) = (index + 1, bytes, u32::from(entry == Entry::Tick));
        Some(Page { index, input, amends: false })
    }

    /// The input of an entry, the next one of the journal, and how often it is repeated.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(Input, u32), Malformed> {
        let mut reader = Reader::new(bytes);
        let (input, times) = match reader.u8()? {
            0 => (Input::Start, 1),
            1 => (Input::Tick, reader.u32()?),
            2 => {
                let from = PartyId::of_node(reader.node_id()?);
                let payload = Bytes::copy_from_slice(reader.rest());
                (Input::Message { from, slot: ITEMS, channel: Channel::Broadcast, payload }, 1)
            }
            _ => return Err(Malformed("no such input")),
        };
        self.entries = self.entries.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        self.ticks = if matches!(input, Input::Tick) { times } else { 0 };
        Ok(reader.end((input, times))?)
    }
}

/// Whether the epilogue of a ceremony fits into the journal. If it does not, this node cannot help others with it;
/// nothing else fails.
pub(crate) fn fit(parts: &[Bytes]) -> bool {
    let sum: usize = parts.iter().map(Bytes::len).sum();
    parts.iter().all(|part| part.len() <= JOURNAL_INPUT_BYTES)
        && sum as u64 <= JOURNAL_BYTES
        && u32::try_from(parts.len()).is_ok_and(|count| count <= JOURNAL_INPUTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(number: u16) -> Entry {
        Entry::Items(NodeId::try_from(number).unwrap())
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let (mut pages, mut again) = (Pages::default(), Pages::default());
        let mut journal: Vec<Vec<u8>> = Vec::new();
        let entries = [Entry::Start, from(3), Entry::Tick, Entry::Tick, Entry::Tick, from(2), Entry::Tick];
        for entry in entries {
            let page = pages.write(entry, b"items", false).unwrap();
            if page.amends {
                journal.pop();
            }
            assert_eq!(usize::try_from(page.index).unwrap(), journal.len());
            journal.push(page.input);
        }
        let read: Vec<_> = journal.iter().map(|bytes| again.read(bytes).unwrap()).collect();
        let shown: Vec<_> = read.iter().map(|(input, times)| (Entry::of(input), *times)).collect();
        assert_eq!(shown, [(Entry::Start, 1), (from(3), 1), (Entry::Tick, 3), (from(2), 1), (Entry::Tick, 1)]);
        assert_eq!((again.entries, again.bytes, again.ticks), (pages.entries, pages.bytes, pages.ticks));
        // The next entry is the same for both.
        let next = [&mut pages, &mut again].map(|pages| pages.write(Entry::Tick, b"", false).unwrap().input);
        assert_eq!(next, [[1, 0, 0, 0, 2], [1, 0, 0, 0, 2]]);
        for wrong in [&[][..], &[3], &[1, 0], &[2, 0, 0], &[0, 0]] {
            assert!(again.read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_week_of_ticks_is_one_entry() {
        let mut pages = Pages::default();
        for _ in 0..2_500_000 {
            assert!(pages.write(Entry::Tick, b"", true).is_some());
        }
        assert_eq!((pages.entries, pages.bytes), (1, 5));
    }

    #[test]
    fn what_is_full_takes_no_more_and_who_has_signed_has_more_room() {
        let mut pages = Pages { entries: JOURNAL_INPUTS / 2, ..Pages::default() };
        assert!(pages.write(from(1), b"x", false).is_none());
        assert!(pages.write(from(1), b"x", true).is_some());
        pages = Pages { entries: JOURNAL_INPUTS, ..Pages::default() };
        assert!(pages.write(from(1), b"x", true).is_none());
        pages = Pages { bytes: JOURNAL_BYTES / 2, ..Pages::default() };
        assert!(pages.write(from(1), b"x", false).is_none());
        assert!(pages.write(from(1), b"x", true).is_some());
        let mut pages = Pages::default();
        assert!(pages.write(from(1), &vec![0; JOURNAL_INPUT_BYTES], true).is_none());
        assert!(pages.write(from(1), &vec![0; JOURNAL_INPUT_BYTES - 3], true).is_some());
        assert!(fit(&[vec![0; JOURNAL_INPUT_BYTES].into()]) && !fit(&[vec![0; JOURNAL_INPUT_BYTES + 1].into()]));
    }
}
