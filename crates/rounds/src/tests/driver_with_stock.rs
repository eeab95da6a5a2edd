//! A protocol without rounds, which needs something that was made in advance and answers questions.

use core::fmt;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::{CryptoRng, SeedableRng};
use theta_names::ShareIndex;

use crate::{
    Abort, Action, Actions, Blame, Blames, Bug, Channel, Driver, Effect, Evidence, Input, Machine, Malformed, Offence,
    PartyId, Progress, Protocol, ProtocolMessage, Recipient, Replies, Slot,
};

const TICKET: Slot = Slot { kind: 1, number: 1 };
const QUESTION: Slot = Slot { kind: 2, number: 9 };
const ANSWER: Slot = Slot { kind: 3, number: 1 };
/// A ticket of a party that may have others after a restart.
const ANY_TICKET: Slot = Slot { kind: 4, number: 1 };

/// One byte in one of four slots.
struct Message(Slot, u8);

impl ProtocolMessage for Message {
    fn slot(&self) -> Slot {
        self.0
    }

    fn channel(slot: Slot) -> Option<Channel> {
        matches!(slot, TICKET | QUESTION | ANSWER | ANY_TICKET).then_some(Channel::Private)
    }

    fn is_question(slot: Slot) -> bool {
        slot == QUESTION
    }

    fn encode(&self) -> Bytes {
        vec![self.1].into()
    }

    fn decode(_from: PartyId, slot: Slot, payload: &[u8]) -> Result<Self, Malformed> {
        let [byte] = payload else { return Err(Malformed("not one byte")) };
        Ok(Self(slot, *byte))
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Worthless;

impl fmt::Display for Worthless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a ticket that the stock does not know")
    }
}

impl Evidence for Worthless {
    fn name(&self) -> &'static str {
        "worthless"
    }
}

/// Waits for a ticket, asks the stock for its worth, and outputs that.
#[derive(Default)]
struct Clerk {
    from: Option<PartyId>,
    ask: Option<u8>,
    worth: Option<u64>,
    lazy: bool,
}

struct Seven;

impl Replies<Message> for Seven {
    fn reply(&mut self, _from: PartyId, _slot: Slot) -> Option<Message> {
        Some(Message(ANSWER, 7))
    }
}

impl Protocol for Clerk {
    type Message = Message;
    type Output = u64;
    type Misbehaviour = Worthless;
    type Ask = u8;
    type Supply = Option<u64>;

    fn longest(&self, _slot: Slot) -> usize {
        1
    }

    fn is_unique(&self, slot: Slot) -> bool {
        slot != ANY_TICKET
    }

    fn due(&self) -> u16 {
        5
    }

    fn act(&mut self, _rng: &mut dyn CryptoRng) -> Result<Actions<Message, u8>, Bug> {
        Ok(if self.lazy { Vec::new() } else { self.ask.take().map(Action::Ask).into_iter().collect() })
    }

    fn update(&mut self, from: PartyId, Message(_, ticket): Message) -> Result<(), Blames<Worthless>> {
        (self.from, self.ask) = (Some(from), Some(ticket));
        Ok(())
    }

    fn supply(&mut self, supply: Option<u64>) -> Result<(), Blames<Worthless>> {
        self.worth = supply;
        match self.from {
            Some(from) if supply.is_none() => Err(vec![(from, Worthless)]),
            _ => Ok(()),
        }
    }

    fn exclude(&mut self, _party: PartyId) {}

    fn awaits(&self, _party: PartyId) -> bool {
        true
    }

    fn progress(&self) -> Progress {
        match (self.worth, self.ask) {
            (Some(_), _) => Progress::Finalize,
            (None, Some(_)) => Progress::Act,
            (None, None) => Progress::Waiting,
        }
    }

    fn contributions(&self) -> (usize, usize) {
        (0, 1)
    }

    fn replies(&self) -> Option<Box<dyn Replies<Message>>> {
        Some(Box::new(Seven))
    }

    fn finalize(self) -> Result<u64, Abort> {
        self.worth.ok_or(Abort::Bug(Bug("no worth")))
    }
}

fn id(number: u16) -> PartyId {
    PartyId::of_share(ShareIndex::try_from(number).unwrap())
}

/// Party 1 of 3, and its randomness.
struct One(Driver<Clerk>, ChaCha8Rng);

type Effects = crate::Effects<Driver<Clerk>>;

impl One {
    fn new(lazy: bool) -> Self {
        let clerk = Clerk { lazy, ..Clerk::default() };
        Self(Driver::new(id(1), (1..=3).map(id), clerk), ChaCha8Rng::seed_from_u64(7))
    }

    fn input(&mut self, input: Input<Option<u64>>) -> Effects {
        self.0.handle(input, &mut self.1)
    }

    fn message(&mut self, from: u16, slot: Slot, byte: u8) -> Effects {
        let payload = Bytes::from(vec![byte]);
        self.input(Input::Message { from: id(from), slot, channel: Channel::Private, payload })
    }
}

fn is_answer_to(effects: &Effects, party: u16) -> bool {
    matches!(effects.as_slice(), [Effect::Send { to: Recipient::Party(to), slot: ANSWER, .. }] if *to == id(party))
}

#[test]
fn what_was_made_in_advance_is_asked_for_and_comes_as_an_input() {
    let mut one = One::new(false);
    assert!(one.input(Input::Start).is_empty());
    assert!(matches!(one.message(2, TICKET, 4).as_slice(), [Effect::Ask(4)]));
    assert!(one.input(Input::Tick).is_empty(), "it waits for the stock");
    assert!(matches!(one.input(Input::Supply(Some(40))).as_slice(), [Effect::Finished(Ok(40))]));
    assert!(one.input(Input::Supply(Some(41))).is_empty(), "what comes too late is nothing");
}

#[test]
fn what_the_stock_shows_to_be_false_is_blamed() {
    let mut one = One::new(false);
    one.input(Input::Start);
    one.message(3, TICKET, 4);
    let effects = one.input(Input::Supply(None));
    let expected = Blame { party: id(3), slot: None, offence: Offence::Protocol(Worthless) };
    assert!(matches!(effects.as_slice(), [Effect::Blame(blame)] if *blame == expected));
    assert!(one.message(3, TICKET, 4).is_empty(), "the banned stay banned");
}

/// Questions are answered before their number is due, while the protocol waits, and after its end; not before the
/// start.
#[test]
fn questions_are_answered_whenever_they_come() {
    let mut one = One::new(false);
    assert!(one.message(2, QUESTION, 0).is_empty());
    assert!(is_answer_to(&one.input(Input::Start), 2));
    assert!(is_answer_to(&one.message(3, QUESTION, 0), 3));
    assert!(one.message(3, QUESTION, 0).is_empty(), "the same again");
    assert!(matches!(one.message(3, QUESTION, 1).as_slice(), [Effect::Blame(_)]));
    one.message(2, TICKET, 4);
    one.input(Input::Supply(Some(40)));
    assert!(one.0.is_finished() && one.0.lingers());
    assert!(is_answer_to(&one.message(2, QUESTION, 0), 2));
    assert!(one.message(3, QUESTION, 0).is_empty(), "the banned are not answered");
    assert!(one.message(2, ANSWER, 0).is_empty() && one.message(1, QUESTION, 0).is_empty());
    let open = Input::Message { from: id(2), slot: QUESTION, channel: Channel::Broadcast, payload: Bytes::new() };
    assert!(one.input(open).is_empty(), "a private question in the open");
}

/// Who sends something else after a restart, as it cannot repeat itself, is nobody who lies; what came first counts.
#[test]
fn what_honest_parties_do_not_repeat_is_no_contradiction() {
    let mut one = One::new(false);
    assert!(one.message(2, ANY_TICKET, 4).is_empty() && one.message(2, ANY_TICKET, 5).is_empty());
    assert!(matches!(one.input(Input::Start).as_slice(), [Effect::Ask(4)]));
    assert!(one.message(2, ANY_TICKET, 6).is_empty());
    assert_eq!(one.0.banned().count(), 0);
    assert!(one.message(2, TICKET, 7).len() == 1, "it is still heard");
    assert!(matches!(one.message(2, TICKET, 8).as_slice(), [Effect::Blame(_)]), "what honest parties repeat");
}

#[test]
fn work_that_is_never_done_ends_the_instance_as_our_bug() {
    let mut one = One::new(true);
    one.input(Input::Start);
    let effects = one.message(2, TICKET, 4);
    assert!(matches!(effects.as_slice(), [Effect::Finished(Err(Abort::Bug(Bug("work that is never done"))))]));
}
