//! Tests of one driver whose inputs are made by hand.

use core::convert::Infallible;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_names::ShareIndex;

use super::sum::{COMMIT, FalseOpening, MASK, MaskedSum, OPEN};
use crate::mailbox::Stored;
use crate::{
    Abort, Blame, Channel, Driver, EARLY_BYTES, EARLY_MESSAGES, Effect, Input, KEPT_BYTES, LockStep, Machine, Offence,
    PartyId, Recipient, SLOT_BYTES, SMALL_BYTES, Slot,
};

type Sum = Driver<LockStep<MaskedSum>>;
type Effects = crate::Effects<Sum>;

fn id(number: u16) -> PartyId {
    PartyId::of_share(ShareIndex::try_from(number).unwrap())
}

/// Party 1 of 3, and its randomness.
struct One(Sum, ChaCha8Rng);

impl One {
    fn new() -> Self {
        let protocol = LockStep::new(MaskedSum::new(id(1), 3, 1000));
        Self(Driver::new(id(1), (1..=3).map(id), protocol), ChaCha8Rng::seed_from_u64(7))
    }

    fn started() -> Self {
        let mut one = Self::new();
        assert_eq!(one.input(Input::Start).len(), 2, "a mask for each of the two others");
        one
    }

    fn input(&mut self, input: Input<Infallible>) -> Effects {
        self.0.handle(input, &mut self.1)
    }

    fn message(&mut self, from: u16, slot: Slot, channel: Channel, payload: &[u8]) -> Effects {
        self.input(Input::Message { from: id(from), slot, channel, payload: Bytes::copy_from_slice(payload) })
    }

    fn mask(&mut self, from: u16, payload: &[u8]) -> Effects {
        self.message(from, MASK, Channel::Private, payload)
    }
}

fn only_blame(effects: &Effects) -> &Blame<FalseOpening> {
    match effects.as_slice() {
        // The sum takes all three parties, so a ban also ends it.
        [Effect::Blame(blame), Effect::Finished(Err(Abort::TooFewHonest { remaining: 2, needed: 3 }))] => blame,
        other => panic!("expected blame and the end, got {other:?}"),
    }
}

#[test]
fn strangers_and_echoes_of_oneself_are_refused_in_silence() {
    let mut one = One::started();
    assert!(one.mask(1, &[0; 8]).is_empty());
    assert!(one.mask(4, &[0; 8]).is_empty());
    assert!(one.message(9, COMMIT, Channel::Private, b"junk").is_empty());
    assert_eq!(one.0.banned().count(), 0);
}

#[test]
fn garbage_is_blamed() {
    let effects = One::started().mask(2, &[0; 7]);
    let blame = only_blame(&effects);
    assert_eq!((blame.party, blame.slot), (id(2), Some(MASK)));
    assert_eq!(blame.offence.name(), "malformed_message");
    assert_eq!(blame.to_string(), "party 2: malformed message: not 8 bytes");
}

/// Overlong messages are blamed before the start as after it, whatever they contain, and nothing of them is kept.
#[test]
fn what_is_longer_than_its_slot_allows_is_blamed_unread() {
    let effects = One::started().mask(2, &[0; 65]);
    assert_eq!(only_blame(&effects).offence, Offence::TooLong { len: 65, most: 64 });
    let mut one = One::new();
    let effects = one.mask(2, &vec![0; 16 << 20]);
    assert!(matches!(effects.as_slice(), [Effect::Blame(Blame { offence: Offence::TooLong { .. }, .. })]));
    assert!(one.mask(2, &[0; 8]).is_empty(), "the banned stay banned");
}

#[test]
fn a_slot_that_does_not_exist_is_blamed() {
    let slot = Slot { kind: 9, number: 1 };
    let effects = One::started().message(3, slot, Channel::Private, &[0; 8]);
    assert_eq!(only_blame(&effects).offence, Offence::UnknownSlot);
}

#[test]
fn the_wrong_channel_is_blamed() {
    let effects = One::started().message(3, MASK, Channel::Broadcast, &[0; 8]);
    let expected = Offence::WrongChannel { expected: Channel::Private, got: Channel::Broadcast };
    assert_eq!(only_blame(&effects).offence, expected);
}

#[test]
fn an_exact_duplicate_is_ignored_and_a_conflict_is_equivocation_with_both_payloads() {
    let mut one = One::started();
    assert!(one.mask(2, &[5; 8]).is_empty());
    assert!(one.mask(2, &[5; 8]).is_empty());
    let effects = one.mask(2, &[6; 8]);
    let expected = Offence::Equivocation { first: vec![5; 8].into(), second: vec![6; 8].into() };
    assert_eq!(only_blame(&effects).offence, expected);
    assert_eq!(one.0.banned().collect::<Vec<_>>(), [id(2)]);
}

#[test]
fn early_messages_wait_for_the_start_and_for_their_round() {
    let mut one = One::new();
    assert!(one.mask(2, &[1; 8]).is_empty());
    assert!(one.mask(3, &[2; 8]).is_empty());
    assert!(one.message(2, COMMIT, Channel::Broadcast, &[1; 32]).is_empty());
    let started = one.input(Input::Start);
    let sent: Vec<_> = started.iter().map(|effect| matches!(effect, Effect::Send { slot: COMMIT, .. })).collect();
    assert_eq!(sent, [false, false, true], "both rounds at once: nothing waits that needs not wait");
    let third = one.message(3, COMMIT, Channel::Broadcast, &[2; 32]);
    assert!(matches!(third.as_slice(), [Effect::Send { slot: OPEN, to: Recipient::All, .. }]));
}

#[test]
fn an_early_conflict_is_caught_before_the_start() {
    let mut one = One::new();
    assert!(one.mask(2, &[1; 8]).is_empty());
    let effects = one.mask(2, &[2; 8]);
    assert!(matches!(effects.as_slice(), [Effect::Blame(Blame { offence: Offence::Equivocation { .. }, .. })]));
    assert!(one.mask(2, &[1; 8]).is_empty(), "the banned stay banned");
}

#[test]
fn early_garbage_is_blamed_when_its_round_comes() {
    let mut one = One::new();
    assert!(one.mask(3, b"junk").is_empty());
    let effects = one.input(Input::Start);
    let blamed = effects.iter().filter(|effect| matches!(effect, Effect::Blame(blame) if blame.party == id(3)));
    assert_eq!(blamed.count(), 1);
}

#[test]
fn a_false_opening_names_its_author() {
    let mut one = One::started();
    for party in [2, 3] {
        one.mask(party, &[0; 8]);
    }
    for party in [2, 3] {
        one.message(party, COMMIT, Channel::Broadcast, &[7; 32]);
    }
    let effects = one.message(3, OPEN, Channel::Broadcast, &[0; 16]);
    let blame = only_blame(&effects);
    assert_eq!((blame.party, blame.slot, blame.offence.name()), (id(3), Some(OPEN), "false_opening"));
    assert_eq!(blame.to_string(), "party 3: opening does not match the commitment");
    assert!(one.0.is_finished());
    assert!(one.mask(2, b"anything").is_empty(), "after the end nothing is looked at");
}

#[test]
fn ticks_reach_a_running_protocol_only() {
    let mut one = One::new();
    assert!(one.input(Input::Tick).is_empty());
    assert_eq!(one.input(Input::Start).len(), 2);
    assert!(one.input(Input::Start).is_empty(), "a second start is nothing");
    assert!(matches!(one.input(Input::Tick).as_slice(), [Effect::Finished(Err(Abort::TooFewHonest { .. }))]));
    assert!(one.input(Input::Tick).is_empty());
}

/// A mailbox is bounded by number and by size, and one party's flood takes nothing from another.
#[test]
fn early_junk_does_not_fill_memory() {
    let mut mailboxes = crate::mailbox::Mailboxes::default();
    let slot = |kind| Slot { kind, number: 2 };
    let mut kept = 0;
    for kind in 0..10_000 {
        let stored = mailboxes.store(id(2), slot(kind), Bytes::from_static(b"junk"), true);
        kept += usize::from(matches!(stored, Stored::Early));
    }
    assert_eq!(kept, EARLY_MESSAGES);
    let large = Bytes::from(vec![0; EARLY_BYTES + 1]);
    assert!(matches!(mailboxes.store(id(3), slot(0), large, true), Stored::NoRoom));
    let honest = mailboxes.store(id(3), slot(0), Bytes::from_static(b"real"), true);
    assert!(matches!(honest, Stored::Early));
    // A message that is processed at once is kept to tell duplicates from contradictions, within a bound of its own.
    let kept = (0..1_000).filter(|kind| {
        let stored = mailboxes.store(id(4), slot(*kind), Bytes::from(vec![7; 10_000]), false);
        matches!(stored, Stored::Due(_))
    });
    assert_eq!(kept.count(), KEPT_BYTES / (10_000 + SLOT_BYTES));
    mailboxes.remove(id(2));
    assert_eq!(mailboxes.next_due(1, |_| false), None);
    assert_eq!(mailboxes.next_due(2, |_| false), Some((id(3), slot(0), Bytes::from_static(b"real"))));
    assert_eq!(mailboxes.next_due(2, |_| false), None);
}

/// Messages without content have a bound, too.
#[test]
fn slots_take_room() {
    let mut mailboxes = crate::mailbox::Mailboxes::default();
    let mut store = |number: u32| {
        let slot = Slot { kind: u16::try_from(number >> 16).unwrap(), number: u16::try_from(number & 0xffff).unwrap() };
        mailboxes.store(id(2), slot, Bytes::new(), false)
    };
    let kept = (0..100_000).filter(|number| matches!(store(*number), Stored::Due(_))).count();
    assert_eq!(kept, KEPT_BYTES / SLOT_BYTES);
    assert_eq!(mailboxes.bytes(), KEPT_BYTES);
    // However often a liar fills them, they are gone after two rests.
    mailboxes.empty(|_| true);
    assert!(mailboxes.bytes() <= KEPT_BYTES / 32, "{}", mailboxes.bytes());
    mailboxes.empty(|_| true);
    assert_eq!(mailboxes.bytes(), 0);
}

/// Whoever has sent little is not forgotten, and whoever has sent much has its room back round after round.
#[test]
fn rounds_that_are_over_make_room() {
    let mut mailboxes = crate::mailbox::Mailboxes::default();
    let slot = |number| Slot { kind: 1, number };
    let large = |byte| Bytes::from(vec![byte; KEPT_BYTES / 3]);
    for number in 1..=20_u8 {
        let round = 2 * u16::from(number);
        assert!(matches!(mailboxes.store(id(2), slot(round), large(number), false), Stored::Due(_)));
        assert!(matches!(mailboxes.store(id(2), slot(round + 1), Bytes::new(), true), Stored::Early));
        assert!(matches!(mailboxes.store(id(3), slot(round), Bytes::from(vec![number]), false), Stored::Due(_)));
        let (from, next, _) = mailboxes.next_due(round + 1, |_| false).unwrap();
        assert_eq!((from, next), (id(2), slot(round + 1)));
        mailboxes.empty_large(|slot| slot.number <= round + 1);
        assert!(mailboxes.bytes() <= SMALL_BYTES);
    }
    assert!(matches!(mailboxes.store(id(3), slot(2), Bytes::from(vec![9]), false), Stored::Conflict { .. }));
    assert!(matches!(mailboxes.store(id(2), slot(40), large(0), false), Stored::Duplicate));
}

/// A slot that has been emptied gives its room back, and says nothing more: neither does anything else in it count as a first message, nor as a contradiction.
#[test]
fn emptied_slots_make_room_and_stay_filled() {
    let mut mailboxes = crate::mailbox::Mailboxes::default();
    let slot = |kind| Slot { kind, number: 1 };
    let large = |byte| Bytes::from(vec![byte; KEPT_BYTES / 2 - SLOT_BYTES]);
    let mut store = |kind, payload| mailboxes.store(id(2), slot(kind), payload, false);
    assert!(matches!(store(0, large(1)), Stored::Due(_)));
    assert!(matches!(store(1, large(1)), Stored::Due(_)));
    assert!(matches!(store(2, large(1)), Stored::NoRoom));
    let waits = Slot { kind: 1, number: 2 };
    assert!(matches!(mailboxes.store(id(3), waits, Bytes::from_static(b"early"), true), Stored::Early));
    mailboxes.empty(|slot| slot.kind == 1);
    let mut store = |kind, payload| mailboxes.store(id(2), slot(kind), payload, false);
    assert!(matches!(store(1, large(1)), Stored::Duplicate));
    assert!(matches!(store(1, large(2)), Stored::Duplicate));
    assert!(matches!(store(0, large(2)), Stored::Conflict { .. }), "this one was kept");
    assert!(matches!(store(2, Bytes::from(vec![3; KEPT_BYTES / 2 - 3 * SLOT_BYTES])), Stored::Due(_)));
    // Once more, and nothing is kept of it.
    mailboxes.empty(|slot| slot.kind == 1);
    assert!(matches!(mailboxes.store(id(2), slot(1), Bytes::from_static(b"new"), false), Stored::Due(_)));
    // What waits is not touched.
    assert_eq!(mailboxes.next_due(2, |_| false), Some((id(3), waits, Bytes::from_static(b"early"))));
}
