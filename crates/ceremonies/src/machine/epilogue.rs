//! The public messages that remain of a ceremony that has ended. They reveal nothing once all parties have ended.

use bytes::Bytes;

use super::Ceremony;
use super::sending::messages;
use crate::bulletin_board::{Item, rewrite};
use crate::electorate::value_digest;
use crate::plan::Aim;
use crate::statement::{Digest, Kind};
use crate::summary::Summary;

impl Ceremony {
    /// The messages with which a late party ends with the same result.
    #[must_use]
    pub fn epilogue(&self) -> Vec<Bytes> {
        let parts = self.what_newcomers_need();
        if !matches!(self.plan.aim(), Aim::Recover(..)) {
            return parts;
        }
        // All that helpers need is the owner's statement that it is done.
        let done = |part: &Bytes| {
            rewrite(part, |statement| if statement.slot().kind == Kind::Done { vec![statement] } else { Vec::new() })
        };
        parts.iter().filter_map(done).filter(|part| !part.is_empty()).map(Bytes::from).collect()
    }

    /// All items that a party without any knowledge needs to end as this one did, in an order in which it can take them:
    /// certificates, the decided value, the statements, and then the decided statements whose slots hold others.
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

/// An epilogue that was read, to answer many parties from it.
pub struct Remains(Vec<(Item, Option<Digest>)>);

impl Remains {
    /// Reads the parts of an epilogue; what cannot be read is left out.
    #[must_use]
    pub fn read(epilogue: &[Bytes]) -> Self {
        let items = epilogue.iter().flat_map(|part| Item::decode_all(part).unwrap_or_default());
        let digest = |item: &Item| match item {
            Item::Statement(statement) => Some(statement.digest()),
            Item::Certificate(_) => None,
            Item::Value(value) => Some(value_digest(value)),
        };
        let with_digest = |item| {
            let digest = digest(&item);
            (item, digest)
        };
        Self(items.map(with_digest).collect())
    }

    /// The messages that the author of a summary lacks; none for bytes that are no summary.
    #[must_use]
    pub fn for_author_of(&self, summary: &[u8]) -> Vec<Bytes> {
        let Ok(summary) = Summary::decode(summary) else { return Vec::new() };
        let is_wanted = |digest: &Option<Digest>| digest.is_some_and(|digest| summary.wants.contains(&digest));
        let lacks = |(item, digest): &&(Item, Option<Digest>)| match item {
            Item::Statement(statement) if summary.has(statement) => is_wanted(digest),
            Item::Statement(statement) => summary.asks_for(statement),
            Item::Certificate(certificate) => match certificate.kind() {
                Kind::Precommit => !summary.decided,
                _ => !summary.activated,
            },
            Item::Value(_) => !summary.decided || is_wanted(digest),
        };
        messages(&self.0.iter().filter(lacks).map(|(item, _)| item.clone()).collect::<Vec<_>>())
    }
}
