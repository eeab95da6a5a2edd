//! What is left to say when a ceremony has ended: public messages, of which nothing follows once everybody has ended.

use super::agreement::value_digest;
use super::bulletin_board::{Item, rewrite};
use super::machine::{Ceremony, messages};
use super::plan::Aim;
use super::statement::Kind;
use super::summary::Summary;
use bytes::Bytes;

impl Ceremony {
    /// What one who comes late needs to end alike.
    #[must_use]
    pub fn epilogue(&self) -> Vec<Bytes> {
        let parts = self.what_newcomers_need();
        if !matches!(self.plan.aim(), Aim::Recover(..)) {
            return parts;
        }
        // That the owner is done is all that helpers need to hear.
        let done = |part: &Bytes| {
            rewrite(part, |statement| if statement.slot().kind == Kind::Done { vec![statement] } else { Vec::new() })
        };
        parts.iter().filter_map(done).filter(|part| !part.is_empty()).map(Bytes::from).collect()
    }

    /// All that a party that knows nothing needs to end as this one did, in the order in which it can take it: what was certified, the
    /// value that was decided, the statements, and those that stand in the place of others.
    fn what_newcomers_need(&self) -> Vec<Bytes> {
        let certificates = self.certificates().into_iter().flatten().cloned().map(Item::Certificate);
        let (values, decided): (Vec<_>, Vec<_>) =
            self.decided().into_iter().partition(|item| !matches!(item, Item::Statement(_)));
        let statements = self.board().newcomers_lack().cloned().map(Item::Statement);
        let other = |item: &Item| match item {
            Item::Statement(statement) => {
                let first = self.board().get(statement.author(), statement.slot());
                first.is_none_or(|first| first.body() != statement.body())
            }
            Item::Certificate(_) | Item::Value(_) => true,
        };
        let items = certificates.chain(values).chain(statements).chain(decided.into_iter().filter(other));
        messages(&items.collect::<Vec<_>>())
    }
}

/// What the author of a summary lacks of an epilogue; nothing for bytes that are no summary.
#[must_use]
pub fn remains_for(epilogue: &[Bytes], summary: &[u8]) -> Vec<Bytes> {
    let Ok(summary) = Summary::decode(summary) else { return Vec::new() };
    let lacks = |item: &Item| match item {
        Item::Statement(statement) if summary.has(statement) => summary.wants.contains(&statement.digest()),
        Item::Statement(statement) => summary.asks_for(statement),
        Item::Certificate(certificate) => match certificate.kind() {
            Kind::Precommit => !summary.decided,
            _ => !summary.activated,
        },
        Item::Value(value) => !summary.decided || summary.wants.contains(&value_digest(value)),
    };
    let items = epilogue.iter().flat_map(|part| Item::decode_all(part).unwrap_or_default());
    messages(&items.filter(lacks).collect::<Vec<_>>())
}
