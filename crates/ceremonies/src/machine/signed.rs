//! Checking the signatures of many statements together, before the statements are taken one after another.

use std::collections::BTreeMap;

use theta_rounds::PartyId;

use super::Ceremony;
use crate::bulletin_board::Item;
use crate::longest_items;
use crate::statement::{Statement, StatementSlot};

/// Statements whose signatures are true, by slot and author. It only saves time: a statement that is not among them is
/// checked by itself.
#[derive(Default)]
pub(super) struct Signed(BTreeMap<(StatementSlot, PartyId), Statement>);

impl Signed {
    /// Whether it is known that the author of this statement signed it.
    pub(super) fn has(&self, statement: &Statement) -> bool {
        self.0.get(&(statement.slot(), statement.author())).is_some_and(|known| known == statement)
    }
}

impl Ceremony {
    /// Checks the statements together in messages of [`ITEMS`](crate::ITEMS) that will be taken next: their senders and payloads. This
    /// takes about a fifth of the time of checking each by itself. Nothing else follows from it: neither what the party does nor
    /// whom it blames.
    pub fn look_ahead<'a>(&mut self, messages: impl IntoIterator<Item = (PartyId, &'a [u8])>) {
        let longest = longest_items(&self.plan);
        let readable = |(from, payload): &(PartyId, &[u8])| self.listens_to(*from) && payload.len() <= longest;
        let items = messages.into_iter().filter(readable).filter_map(|(_, payload)| Item::decode_all(payload).ok());
        let items: Vec<Item> = items.flatten().collect();
        self.ahead = self.signed_among(&items);
    }

    /// The statements among the items that are of use and signed, if all of them are; none if one of them is not, so that
    /// whoever sent that one is found.
    pub(super) fn signed_among(&self, items: &[Item]) -> Signed {
        let mut all = BTreeMap::new();
        for item in items {
            if let Item::Statement(statement) = item
                && self.is_of_use(statement)
                && !self.ahead.has(statement)
            {
                all.entry((statement.slot(), statement.author())).or_insert_with(|| statement.clone());
            }
        }
        let together = all.len() > 1 && Statement::are_signed(all.values(), &self.plan);
        if together { Signed(all) } else { Signed::default() }
    }
}
