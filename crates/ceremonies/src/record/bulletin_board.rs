//! One party's view of the bulletin board: one signed statement for each author and slot, its own included, to be sent
//! to parties that lack it.

use std::collections::{BTreeMap, BTreeSet};

use theta_rounds::{Malformed, PartyId};

use crate::certificate::QuorumCertificate;
use crate::codec::{Reader, Writer, read_party};
use crate::statement::{Digest, Kind, Statement, StatementSlot};

/// Statements by author and slot.
pub(crate) struct BulletinBoard(BTreeMap<(StatementSlot, PartyId), Statement>);

/// What became of a statement.
pub(crate) enum Posted {
    New,
    Known,
    /// Its author said something else before.
    Conflict(Statement),
}

impl BulletinBoard {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Puts a statement up, which is known to be its author's.
    pub(crate) fn post(&mut self, statement: &Statement) -> Posted {
        let key = (statement.slot(), statement.author());
        match self.0.get(&key) {
            // Another signature on the same body is no contradiction.
            Some(first) if first.body() == statement.body() => Posted::Known,
            Some(first) => Posted::Conflict(first.clone()),
            None => {
                self.0.insert(key, statement.clone());
                Posted::New
            }
        }
    }

    pub(crate) fn get(&self, author: PartyId, slot: StatementSlot) -> Option<&Statement> {
        self.0.get(&(slot, author))
    }

    /// All statements of a kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Statement> {
        let from = (StatementSlot::new(kind, 0), PartyId::FIRST);
        self.0.range(from..).take_while(move |((slot, _), _)| slot.kind == kind).map(|(_, statement)| statement)
    }

    /// All statements of a slot.
    pub(crate) fn of_slot(&self, slot: StatementSlot) -> impl Iterator<Item = &Statement> {
        let from = (slot, PartyId::FIRST);
        self.0.range(from..).take_while(move |((other, _), _)| *other == slot).map(|(_, statement)| statement)
    }

    /// The slots that an author has filled.
    pub(crate) fn slots_of(&self, author: PartyId) -> impl Iterator<Item = StatementSlot> {
        self.0.keys().filter(move |(_, other)| *other == author).map(|(slot, _)| *slot)
    }

    /// Removes votes and proposals of views before this one.
    pub(crate) fn forget_views_before(&mut self, view: u32) {
        self.0.retain(|(slot, _), _| !is_of_view(slot.kind) || slot.number >= view);
    }

    fn keys(&self) -> impl Iterator<Item = &(StatementSlot, PartyId)> {
        self.0.keys()
    }

    /// What the author of a summary lacks.
    pub(crate) fn missing(&self, summary: &Summary) -> impl Iterator<Item = &Statement> {
        self.0.iter().filter(|(key, _)| !summary.has.contains(*key) && !summary.is_past(key.0)).map(|(_, s)| s)
    }
}

const fn is_of_view(kind: Kind) -> bool {
    matches!(kind, Kind::Proposal | Kind::Prevote | Kind::Precommit)
}

/// What a party has and wants; it sends this to all when it has waited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) decided: bool,
    pub(crate) activated: bool,
    pub(crate) view: u32,
    pub(crate) wants: Vec<Digest>,
    has: BTreeSet<(StatementSlot, PartyId)>,
}

impl Summary {
    pub(crate) fn of(board: &BulletinBoard, decided: bool, activated: bool, view: u32, wants: Vec<Digest>) -> Self {
        Self { decided, activated, view, wants, has: board.keys().copied().collect() }
    }

    /// Whether its author no longer needs the slot.
    const fn is_past(&self, slot: StatementSlot) -> bool {
        is_of_view(slot.kind) && (self.decided || slot.number.saturating_add(1) < self.view)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let writer = Writer::default().flag(self.decided).flag(self.activated).u32(self.view);
        let writer = writer.bytes(self.wants.as_flattened());
        let has = self.has.iter();
        has.fold(writer, |writer, (slot, party)| slot.write(writer).node_id(party.node())).finish()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (decided, activated) = (reader.flag()?, reader.flag()?);
        let (view, (wants, [])) = (reader.u32()?, reader.bytes()?.as_chunks::<32>()) else {
            return Err(Malformed("not a list of digests"));
        };
        let has = reader.all(|reader| Ok::<_, Malformed>((StatementSlot::read(reader)?, read_party(reader)?)))?;
        Ok(Self { decided, activated, view, wants: wants.to_vec(), has: has.into_iter().collect() })
    }
}

/// What travels between parties, several in one message.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Statement(Statement),
    Certificate(QuorumCertificate),
    /// The value behind a digest, for parties that know only the digest.
    Value(Vec<u8>),
}

impl Item {
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Self::Statement(statement) => {
                out.push(1);
                statement.encode_into(out);
            }
            Self::Certificate(certificate) => Writer::onto(out).u8(2).bytes(&certificate.encode()).finish(),
            Self::Value(value) => Writer::onto(out).u8(3).bytes(value).finish(),
        }
    }

    pub(crate) fn decode_all(bytes: &[u8]) -> Result<Vec<Self>, Malformed> {
        Reader::new(bytes).all(|reader| match reader.u8()? {
            1 => Statement::read(reader).map(Self::Statement),
            2 => QuorumCertificate::decode(reader.bytes()?).map(Self::Certificate),
            3 => Ok(Self::Value(reader.bytes()?.to_vec())),
            _ => Err(Malformed("no such item")),
        })
    }
}

/// The statements in a message of [`ITEMS`](crate::ITEMS), in order; none for bytes that are no such message.
pub fn statements_of(payload: &[u8]) -> impl Iterator<Item = Statement> + use<> {
    let items = Item::decode_all(payload).unwrap_or_default().into_iter();
    items.filter_map(|item| match item {
        Item::Statement(statement) => Some(statement),
        Item::Certificate(_) | Item::Value(_) => None,
    })
}

/// A message of [`ITEMS`](crate::ITEMS) with each statement in it replaced by others, or left out. `None` for bytes that are no such message.
pub fn rewrite(payload: &[u8], mut replace: impl FnMut(Statement) -> Vec<Statement>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for item in Item::decode_all(payload).ok()? {
        match item {
            Item::Statement(statement) => {
                replace(statement).into_iter().for_each(|other| Item::Statement(other).encode_into(&mut out));
            }
            other => other.encode_into(&mut out),
        }
    }
    Some(out)
}
