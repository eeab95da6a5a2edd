//! What a party tells others that it has, and for what it asks.

use std::collections::BTreeMap;

use theta_names::NodeId;
use theta_rounds::{Malformed, PartyId};

use crate::bulletin_board::BulletinBoard;
use crate::codec::{Reader, Sink, Writer};
use crate::statement::{Digest, Kind, Statement, StatementSlot};

/// For whose dealings a summary asks: those of dealers whose number leaves this remainder.
///
/// A party that asks many others at once asks them for different dealings, so that the same dealing does not come from all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) remainder: u16,
    pub(crate) modulus: u16,
}

impl Part {
    /// All dealers.
    pub(crate) const WHOLE: Self = Self { remainder: 0, modulus: 1 };

    pub(crate) const fn is_whole(self) -> bool {
        self.modulus <= 1
    }

    fn has(self, dealer: PartyId) -> bool {
        dealer.get().checked_rem(self.modulus).is_none_or(|rest| rest == self.remainder)
    }
}

/// What a party has and wants; it sends this to others when it has waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) decided: bool,
    pub(crate) activated: bool,
    pub(crate) view: u32,
    pub(crate) part: Part,
    pub(crate) wants: Vec<Digest>,
    has: BTreeMap<StatementSlot, Authors>,
}

impl Summary {
    pub(crate) fn of(board: &BulletinBoard, [decided, activated]: [bool; 2], view: u32, wants: Vec<Digest>) -> Self {
        let mut has: BTreeMap<StatementSlot, Authors> = BTreeMap::new();
        for (slot, author) in board.keys() {
            has.entry(*slot).or_default().insert(*author);
        }
        Self { decided, activated, view, part: Part::WHOLE, wants, has }
    }

    /// Whether its author has a statement in the slot of this one.
    pub(crate) fn has(&self, statement: &Statement) -> bool {
        self.has.get(&statement.slot()).is_some_and(|authors| authors.contains(statement.author()))
    }

    /// Whether its author lacks a statement, needs it and asks for it here.
    pub(crate) fn asks_for(&self, statement: &Statement) -> bool {
        let asked = statement.slot().kind != Kind::Dealing || self.part.has(statement.author());
        asked && !self.is_past(statement.slot()) && !self.has(statement)
    }

    /// Whether its author no longer needs the slot.
    const fn is_past(&self, slot: StatementSlot) -> bool {
        slot.is_of_view() && (self.decided || slot.number.saturating_add(1) < self.view)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let writer = Writer::default().flag(self.decided).flag(self.activated).u32(self.view);
        let writer = writer.u16(self.part.remainder).u16(self.part.modulus).bytes(self.wants.as_flattened());
        let has = self.has.iter();
        has.fold(writer, |writer, (slot, authors)| authors.write(slot.write(writer))).finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (decided, activated) = (reader.flag()?, reader.flag()?);
        let (view, remainder, modulus) = (reader.u32()?, reader.u16()?, reader.u16()?);
        let (wants, []) = reader.bytes()?.as_chunks::<32>() else {
            return Err(Malformed("not a list of digests"));
        };
        if remainder >= modulus {
            return Err(Malformed("a remainder that no number leaves"));
        }
        let has = reader.all(|reader| Ok::<_, Malformed>((StatementSlot::read(reader)?, Authors::read(reader)?)))?;
        if !has.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(Malformed("slots are listed by rising slot"));
        }
        let part = Part { remainder, modulus };
        Ok(Self { decided, activated, view, part, wants: wants.to_vec(), has: has.into_iter().collect() })
    }
}

/// A set of parties: the least of them, and a bit for each number from there on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Authors {
    first: u16,
    bits: Vec<u8>,
}

impl Authors {
    /// Adds a party that is greater than all that are in it.
    fn insert(&mut self, party: PartyId) {
        if self.bits.is_empty() {
            self.first = party.get();
        }
        let Some((byte, bit)) = self.place(party) else { return };
        if self.bits.len() <= byte {
            self.bits.resize(byte + 1, 0);
        }
        if let Some(bits) = self.bits.get_mut(byte) {
            *bits |= bit;
        }
    }

    fn place(&self, party: PartyId) -> Option<(usize, u8)> {
        let offset = party.get().checked_sub(self.first)?;
        Some((usize::from(offset / 8), 1 << (offset % 8)))
    }

    fn contains(&self, party: PartyId) -> bool {
        self.place(party).is_some_and(|(byte, bit)| self.bits.get(byte).is_some_and(|bits| bits & bit != 0))
    }

    /// The least number, the number of bytes, the bytes.
    fn write<S: Sink>(&self, writer: Writer<S>) -> Writer<S> {
        // 65,535 parties take 8,192 bytes.
        let len = u16::try_from(self.bits.len()).unwrap_or(u16::MAX);
        writer.u16(self.first).u16(len).raw(&self.bits)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let first = reader.u16()?;
        let len = reader.u16()?;
        let bits = reader.take(usize::from(len))?.to_vec();
        let tight = bits.first().is_some_and(|bits| bits & 1 == 1) && bits.last().is_some_and(|bits| *bits != 0);
        let last = u32::from(first) + 8 * u32::from(len);
        if !tight || NodeId::try_from(first).is_err() || last > u32::from(u16::MAX) + 8 {
            return Err(Malformed("not a set of parties"));
        }
        Ok(Self { first, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Kind;

    fn party(number: u16) -> PartyId {
        PartyId::of_node(NodeId::try_from(number).unwrap())
    }

    fn summary(numbers: &[u16]) -> Summary {
        let mut authors = Authors::default();
        numbers.iter().for_each(|number| authors.insert(party(*number)));
        let has = [0, 3].map(|number| (StatementSlot::new(Kind::Prevote, number), authors.clone()));
        let part = Part { remainder: 2, modulus: 3 };
        Summary { decided: true, activated: false, view: 2, part, wants: vec![[3; 32]], has: has.into() }
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        for numbers in [&[1][..], &[65_535], &[1, 65_535], &[3, 4, 5, 10, 11, 12, 127]] {
            let summary = summary(numbers);
            assert_eq!(Summary::decode(&summary.encode()).as_ref(), Ok(&summary));
            for number in (1..300).chain([65_534, 65_535]) {
                let has = summary.has.values().all(|authors| authors.contains(party(number)));
                assert_eq!(has, numbers.contains(&number), "{number}");
            }
        }
    }

    #[test]
    fn garbage_is_refused() {
        let bytes = summary(&[3, 10, 20]).encode();
        for len in 0..bytes.len() {
            if let Ok(other) = Summary::decode(&bytes[..len]) {
                assert_eq!(other.encode(), bytes[..len]);
            }
        }
        for (at, wrong) in [(6, 9), (9, 0), (bytes.len() - 1, 0), (bytes.len() - 3, 2), (bytes.len() - 7, 0xff)] {
            let mut changed = bytes.clone();
            changed[at] = wrong;
            if let Ok(other) = Summary::decode(&changed) {
                assert_eq!(other.encode(), changed);
            }
        }
        let mut twice = summary(&[3]).encode();
        let again = twice[twice.len() - 10..].to_vec();
        twice.extend_from_slice(&again);
        assert!(Summary::decode(&twice).is_err(), "a slot that is listed twice");
    }

    #[test]
    fn a_part_of_the_dealings_is_asked_for_and_all_else() {
        let keys = crate::CeremonyKeys::new(NodeId::try_from(5).unwrap(), theta_groups::Secret::new([1; 32]));
        let ceremony = crate::CeremonyId::from_bytes([2; 32]);
        let statement = |kind| Statement::sign(&ceremony, &keys, StatementSlot::new(kind, 0), vec![1]);
        let (dealing, key) = (statement(Kind::Dealing), statement(Kind::Key));
        let asked = summary(&[3, 4]);
        assert!(asked.asks_for(&dealing), "5 leaves 2");
        let other = Summary { part: Part { remainder: 1, modulus: 3 }, ..asked.clone() };
        assert!(!other.asks_for(&dealing) && other.asks_for(&key));
        let whole = Summary { part: Part::WHOLE, ..asked };
        assert!(whole.asks_for(&dealing) && whole.asks_for(&key));
    }
}
