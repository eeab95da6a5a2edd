//! One party's view of the bulletin board: one signed statement for each author and slot, its own included, to be sent
//! to parties that lack it.

use std::collections::BTreeMap;

use theta_rounds::{Malformed, PartyId};

use crate::certificate::QuorumCertificate;
use crate::codec::{Reader, Writer};
use crate::statement::{Kind, Statement, StatementSlot};
use crate::summary::Summary;

/// Statements by author and slot, each with the tick at which it came.
#[derive(Default)]
pub(crate) struct BulletinBoard {
    statements: BTreeMap<(StatementSlot, PartyId), (u32, Statement)>,
    ticks: u32,
    /// Votes and proposals of earlier views are gone.
    oldest_view: u32,
}

/// What became of a statement.
pub(crate) enum Posted {
    New,
    Known,
    /// Its author said something else before.
    Conflict(Statement),
}

impl BulletinBoard {
    /// A tick has passed.
    pub(crate) const fn tick(&mut self) {
        self.ticks = self.ticks.saturating_add(1);
    }

    /// Puts a statement up, which is known to be its author's.
    pub(crate) fn post(&mut self, statement: &Statement) -> Posted {
        let key = (statement.slot(), statement.author());
        match self.statements.get(&key) {
            // Another signature on the same body is no contradiction.
            Some((_, first)) if first.body() == statement.body() => Posted::Known,
            Some((_, first)) => Posted::Conflict(first.clone()),
            None => {
                self.statements.insert(key, (self.ticks, statement.clone()));
                Posted::New
            }
        }
    }

    pub(crate) fn get(&self, author: PartyId, slot: StatementSlot) -> Option<&Statement> {
        self.statements.get(&(slot, author)).map(|(_, statement)| statement)
    }

    /// All statements of a kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Statement> {
        let from = (StatementSlot::new(kind, 0), PartyId::FIRST);
        let rest = self.statements.range(from..).take_while(move |((slot, _), _)| slot.kind == kind);
        rest.map(|(_, (_, statement))| statement)
    }

    /// All statements of a slot.
    pub(crate) fn of_slot(&self, slot: StatementSlot) -> impl Iterator<Item = &Statement> {
        let from = (slot, PartyId::FIRST);
        let rest = self.statements.range(from..).take_while(move |((other, _), _)| *other == slot);
        rest.map(|(_, (_, statement))| statement)
    }

    /// Removes votes and proposals of views before this one.
    pub(crate) fn forget_views_before(&mut self, view: u32) {
        if view > self.oldest_view {
            self.oldest_view = view;
            self.statements.retain(|(slot, _), _| !slot.is_of_view() || slot.number >= view);
        }
    }

    /// The slots that are filled, and by whom.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &(StatementSlot, PartyId)> {
        self.statements.keys()
    }

    /// The statements that are of use to a party that comes when all is over: all but votes and proposals.
    pub(crate) fn newcomers_lack(&self) -> impl Iterator<Item = &Statement> {
        self.statements.values().map(|(_, statement)| statement).filter(|statement| !statement.slot().is_of_view())
    }

    /// The statements that the author of a summary lacks and asks for; of dealings, those that have been here for `age`
    /// ticks.
    pub(crate) fn missing(&self, summary: &Summary, age: u32) -> impl Iterator<Item = &Statement> {
        let old = move |posted: &u32| posted.saturating_add(age) <= self.ticks;
        let of_use = self.statements.values();
        let of_use = of_use.filter(move |(posted, statement)| statement.slot().kind != Kind::Dealing || old(posted));
        of_use.map(|(_, statement)| statement).filter(|statement| summary.asks_for(statement))
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
