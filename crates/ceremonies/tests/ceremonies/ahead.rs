//! Signatures that are checked together before the messages are taken.

use bytes::Bytes;
use theta_ceremonies::{Ceremony, Effects, ITEMS, Input, Kind, Memory, Statement, StatementSlot, rewrite};
use theta_groups::Ristretto255;
use theta_rounds::{Channel, Effect, Offence, PartyId};
use theta_schemes::coins::cks05::Cks05;

use crate::support::{Setting, keys_of, parties, party};

type Coin = Cks05<Ristretto255>;
/// Senders and payloads.
type Messages = Vec<(PartyId, Bytes)>;

/// What the first party does with these messages, with or without looking at all of them first, and what it then knows.
fn takes(setting: &Setting<Coin>, messages: &[(PartyId, Bytes)], looks_ahead: bool) -> (Vec<Effects>, Vec<Vec<u8>>) {
    let mut machine = setting.machine(party(1), Memory::Kept, 0);
    let mut effects = vec![machine.take(Input::Start)];
    if looks_ahead {
        machine.look_ahead(messages.iter().map(|(from, payload)| (*from, payload.as_ref())));
    }
    let mut accepted = Vec::new();
    for (from, payload) in messages {
        let (from, slot, channel, payload) = (*from, ITEMS, Channel::Broadcast, payload.clone());
        effects.push(machine.take(Input::Message { from, slot, channel, payload }));
        accepted.push(machine.accepted().to_vec());
    }
    effects.push(machine.take(Input::Tick));
    (effects, accepted)
}

fn announcement(setting: &Setting<Coin>, who: PartyId) -> Bytes {
    let mut machine: Ceremony = setting.machine(who, Memory::Kept, 0);
    let sent = machine.take(Input::Start).into_iter().find_map(|effect| match effect {
        Effect::Send { payload, .. } => Some(payload),
        _ => None,
    });
    sent.unwrap()
}

fn blamed(effects: &[Effects]) -> Vec<PartyId> {
    let blame = |effect: &_| match effect {
        Effect::Blame(blame) => {
            assert!(matches!(blame.offence, Offence::Malformed(_)), "{blame}");
            Some(blame.party)
        }
        _ => None,
    };
    effects.iter().flatten().filter_map(blame).collect()
}

/// The same happens, whoever sends false signatures, repeats what others sent, or sends what nobody can read.
#[test]
fn looking_ahead_changes_nothing() {
    let setting = Setting::<Coin>::generate(3, 7, 1);
    let others = parties(2..=7);
    let true_ones: Messages = others.iter().map(|who| (*who, announcement(&setting, *who))).collect();
    // The signature is at the end of a statement.
    let falsified = |payload: &Bytes| {
        let mut bytes = payload.to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        Bytes::from(bytes)
    };
    let with = |place: usize, message: Bytes| {
        let mut messages = true_ones.clone();
        messages[place].1 = message;
        messages
    };
    let joined = Bytes::from(true_ones.iter().flat_map(|(_, payload)| payload.to_vec()).collect::<Vec<_>>());
    let second_word = rewrite(&true_ones[3].1, |statement| {
        let slot = StatementSlot::new(Kind::EncryptionKey, 0);
        let other = Statement::sign(setting.plan.id(), &keys_of(statement.author()), slot, vec![7; 32]);
        vec![statement, other]
    });
    let cases: [(Messages, Vec<PartyId>); 7] = [
        (true_ones.clone(), vec![]),
        (true_ones.iter().chain(&true_ones).cloned().collect(), vec![]),
        (with(2, falsified(&true_ones[2].1)), vec![others[2]]),
        // It passes on what somebody else signed, falsely, and hides it among what is true.
        (with(2, falsified(&joined)), vec![others[2]]),
        (with(1, Bytes::from_static(b"nothing")), vec![others[1]]),
        (with(5, joined.clone()), vec![]),
        (with(3, Bytes::from(second_word.unwrap())), vec![]),
    ];
    for (number, (messages, liars)) in cases.into_iter().enumerate() {
        let (effects, accepted) = takes(&setting, &messages, true);
        let (without, accepted_without) = takes(&setting, &messages, false);
        assert_eq!(accepted, accepted_without, "{number}");
        assert_eq!(format!("{effects:?}"), format!("{without:?}"), "{number}");
        assert_eq!(blamed(&effects), liars, "{number}");
    }
}

/// A message that was seen ahead is not the one that comes: what was checked counts for the same statement only.
#[test]
fn what_was_checked_is_not_believed_of_anything_else() {
    let setting = Setting::<Coin>::generate(3, 7, 2);
    let messages: Messages = parties(2..=7).into_iter().map(|who| (who, announcement(&setting, who))).collect();
    let mut machine = setting.machine(party(1), Memory::Kept, 0);
    machine.take(Input::Start);
    machine.look_ahead(messages.iter().map(|(from, payload)| (*from, payload.as_ref())));
    for (number, (from, payload)) in messages.into_iter().enumerate() {
        // Another signature, or another body under the same one.
        let place = payload.len() - [1, 65][number % 2];
        let mut other = payload.to_vec();
        other[place] ^= 1;
        let (slot, channel, revision) = (ITEMS, Channel::Broadcast, machine.revision());
        machine.take(Input::Message { from, slot, channel, payload: other.into() });
        assert_eq!(machine.revision(), revision, "{from} {place}");
    }
}
