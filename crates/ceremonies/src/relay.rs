//! Among many parties, a few pass on what each of them says.
//!
//! Keys, votes and signatures are short, and each party makes one of each: to all from all, they are n^2 messages. Among many they go to
//! a few relays, which pass them on to all, many in one message. Nobody depends on relays: at each tick a party asks others for what it
//! lacks, and each has what it has said itself. What is long, or rare, goes to everybody at once.

use std::collections::BTreeSet;

use theta_rounds::{PartyId, Recipient};

use super::bulletin_board::Item;
use super::machine::{Ceremony, Effects, send};
use super::plan::{Aim, CeremonyPlan};
use super::statement::Kind;

/// Up to so many parties each tells all others.
const FEW: usize = 40;
/// How many pass on.
const RELAYS: usize = 4;
/// Among so many that there are relays, a party to which something has come since its last tick asks others every so many ticks only.
const SELDOM: u32 = 4;
/// A relay passes on what has come from this part of all parties, and the rest with the next tick.
const PART: usize = 4;

/// Who passes on, and what waits here.
#[derive(Default)]
pub(super) struct Relay {
    /// Empty among few.
    relays: BTreeSet<PartyId>,
    is_own: bool,
    enough: usize,
    waiting: Vec<Item>,
    /// Whether something has come since the last tick.
    news: bool,
}

const fn is_passed_on(kind: Kind) -> bool {
    use Kind::{Activation, EncryptionKey, Key, Precommit, Prevote, ProofOfPossession};
    matches!(kind, EncryptionKey | Prevote | Precommit | Key | ProofOfPossession | Activation)
}

impl Relay {
    /// Those that the number of a ceremony draws; fewer if one is drawn twice.
    pub(super) fn of(plan: &CeremonyPlan, own: PartyId) -> Self {
        let parties: Vec<PartyId> = plan.parties().collect();
        if parties.len() <= FEW || matches!(plan.aim(), Aim::Recover(..)) {
            return Self::default();
        }
        let (numbers, _) = plan.id().as_bytes().as_chunks::<2>();
        let places = numbers.iter().take(RELAYS).map(|number| usize::from(u16::from_be_bytes(*number)));
        let drawn = places.filter_map(|place| parties.get(place.checked_rem(parties.len())?).copied());
        let relays: BTreeSet<PartyId> = drawn.collect();
        Self {
            is_own: relays.contains(&own),
            relays,
            enough: parties.len().div_ceil(PART),
            waiting: Vec::new(),
            news: false,
        }
    }

    /// Whether to ask others at this tick. While things come, what is lacking is most likely on its way; to ask would bring it twice.
    pub(super) fn asks(&mut self, own: PartyId, ticks: u32) -> bool {
        let news = core::mem::take(&mut self.news) && !self.relays.is_empty();
        !news || u32::from(own.get()).wrapping_add(ticks).is_multiple_of(SELDOM)
    }

    /// Keeps what is news, if it comes from its author and this party passes it on.
    pub(super) fn keep(&mut self, from: PartyId, item: Item) {
        self.news = true;
        if let Item::Statement(statement) = &item
            && self.is_own
            && statement.author() == from
            && is_passed_on(statement.slot().kind)
        {
            self.waiting.push(item);
        }
    }
}

impl Ceremony {
    /// Sends what this party has just said: to everybody, or to relays.
    pub(super) fn send_said(&self, said: Vec<Item>, out: &mut Effects) {
        let relayed = |item: &Item| match item {
            Item::Statement(statement) => is_passed_on(statement.slot().kind),
            Item::Certificate(_) | Item::Value(_) => false,
        };
        if self.relay.is_own || self.relay.relays.is_empty() {
            return send(Recipient::All, &said, out);
        }
        let (relayed, rest): (Vec<Item>, Vec<Item>) = said.into_iter().partition(relayed);
        send(Recipient::All, &rest, out);
        for relay in &self.relay.relays {
            send(Recipient::Party(*relay), &relayed, out);
        }
    }

    /// Passes on what waits: with a tick, when it is much, when it makes a slot full or a quorum's, and at this party's own end, since it gets
    /// no more ticks.
    pub(super) fn pass_on(&mut self, ticked: bool, out: &mut Effects) {
        let Some(Item::Statement(last)) = self.relay.waiting.last() else { return };
        let count = self.board.of_slot(last.slot()).count();
        let full = count == self.plan.members().len() || count == self.plan.quorum();
        if ticked || self.finished || full || self.relay.waiting.len() >= self.relay.enough {
            let items = core::mem::take(&mut self.relay.waiting);
            send(Recipient::All, &items, out);
        }
    }
}
