//! What a liar says beside an honest coordinator holds nobody up.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_groups::{Group as _, P256};
use theta_protocols::ecdsa::{PREPARE, PROGRAM, SHARE};
use theta_rounds::simulator::{Adversary, HonestSend, SimRng};
use theta_rounds::{Channel, Effect, Input, PartyId, Slot};
use theta_schemes::Suite;

use super::support::{Group, Liar, id, tamper};
use crate::supplied::SuppliedMachine;

/// The length of a presignature's name and R, which come before a share.
const NAMED: usize = 32 + 33;

/// A restarted holder, the next coordinator, and what it may hear of a presignature that it does not know: the owner's share, the other signer's, and one
/// that a stranger makes up. One for each coordinator that owns one.
fn restarted() -> Vec<(SuppliedMachine, [(u16, Bytes); 3])> {
    let group = Group::warm(Suite::EcdsaP256, 2, 4);
    let ready = group.ready();
    let owners: Vec<u16> = (1..=4).filter(|number| ready[usize::from(*number) - 1] > 0).collect();
    assert_eq!(owners.len(), 3);
    let case = |coordinator: u16| {
        let message = group.message_of(coordinator);
        let shares = Group::warm(Suite::EcdsaP256, 2, 4).shares(&message);
        let [(owner, first), (signer, second)] = &shares[..] else { panic!("{} shares", shares.len()) };
        assert_eq!(*owner, coordinator);
        let restarted = coordinator % 4 + 1;
        let stranger = (1..=4).find(|number| ![*owner, *signer, restarted].contains(number))?;
        let mut forged = first.to_vec();
        forged[NAMED + 1] ^= 1;
        let mut machine = group.restarted(restarted, &message);
        assert!(input(&mut machine, Input::Start).is_empty(), "it is another's turn");
        let shares = [(*owner, first.clone()), (*signer, second.clone()), (stranger, forged.into())];
        (*signer != restarted).then_some((machine, shares))
    };
    let cases: Vec<_> = owners.into_iter().filter_map(case).collect();
    assert!(!cases.is_empty());
    cases
}

type Effects = Vec<Effect<theta_protocols::Outcome, theta_protocols::Misbehaviour, core::convert::Infallible>>;

fn input(machine: &mut SuppliedMachine, input: Input<core::convert::Infallible>) -> Effects {
    machine.handle(input, &mut ChaCha8Rng::seed_from_u64(1))
}

fn tell(machine: &mut SuppliedMachine, from: u16, payload: &Bytes) -> Effects {
    let slot = Slot { kind: SHARE, number: 7 };
    input(machine, Input::Message { from: id(from), slot, channel: Channel::Broadcast, payload: payload.clone() })
}

/// A holder that has lost its presignatures does not know who signs with the one that the coordinator names, and a stranger sends a share of it as well.
/// That the two make no signature says nothing of the coordinator, whose turn goes on. (When it did, holders gave attempts up apart of each other, each took
/// the others' turns for silence and threw away what these owned: after a restart requests beside a liar took a quarter of a minute.)
#[test]
fn a_strangers_share_ends_no_turn() {
    for (mut machine, [owner, _, stranger]) in restarted() {
        for (from, share) in [owner, stranger] {
            let effects = tell(&mut machine, from, &share);
            assert!(effects.is_empty(), "{effects:?}");
        }
        // When time passes its turn comes.
        let effects = input(&mut machine, Input::Tick);
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Send { slot, .. } if slot.kind == PREPARE)));
    }
}

/// Nor does it keep that holder from the signature: whoever does not know the signers tries which shares make one. It tries a stranger's share once.
#[test]
fn whoever_knows_no_signers_finds_them() {
    let is_signed = |effects: Effects| effects.iter().any(|effect| matches!(effect, Effect::Finished(Ok(_))));
    for (mut machine, [owner, signer, (stranger, forged)]) in restarted() {
        // First of all it has heard the stranger name it, and with another R.
        let mut other = forged.to_vec();
        other[32..NAMED].copy_from_slice(P256::encode(&P256::generator()).as_ref());
        assert!(tell(&mut machine, stranger, &other.into()).is_empty());
        assert!(tell(&mut machine, owner.0, &owner.1).is_empty());
        for _ in 0..100 {
            assert!(!is_signed(tell(&mut machine, stranger, &forged)));
        }
        assert!(is_signed(tell(&mut machine, signer.0, &signer.1)));
    }
}

/// Says nonsense in programs, and names none; notes what programs others name.
struct Nonsense {
    named: Arc<Mutex<BTreeSet<(PartyId, Slot)>>>,
}

impl Adversary for Nonsense {
    fn on_send(&mut self, _rng: &mut SimRng, _to: PartyId, honest: HonestSend) -> Vec<HonestSend> {
        match honest.slot.kind {
            PREPARE => Vec::new(),
            PROGRAM.. => {
                let payload = [&honest.payload[..4], b"nothing"].concat().into();
                vec![HonestSend { payload, ..honest }]
            }
            _ => vec![honest],
        }
    }

    fn on_receive(&mut self, _rng: &mut SimRng, from: PartyId, seen: &HonestSend) -> Vec<HonestSend> {
        if seen.slot.kind == PREPARE {
            self.named.lock().unwrap().insert((from, seen.slot));
        }
        Vec::new()
    }
}

/// A coordinator that finds a liar out in its program names another one at once: no tick has to pass. Nobody else does so beside it, so that all honest
/// holders keep the same presignatures.
#[test]
fn a_program_without_the_liar_follows_at_once() {
    for turn in 0..12_u8 {
        let mut group = Group::cold(Suite::EcdsaP256, 2, 4);
        group.ticks = 0;
        let first = group.coordinator(&[turn]);
        // One of the next two of the others, both of whom are taken into the program.
        let liar = (first + u16::from(turn % 2)) % 4 + 1;
        let named = Arc::default();
        let report = group.run(&[turn], turn.into(), vec![(liar, Box::new(Nonsense { named: Arc::clone(&named) }))]);
        group.check(&[turn], &report).unwrap_or_else(|error| panic!("message {turn}: {error}"));
        assert!(!Group::offences(&report, liar).is_empty());
        assert_eq!(named.lock().unwrap().len(), 2, "message {turn}");
        let ready = group.ready();
        let honest: BTreeSet<usize> =
            (1..=4).filter(|number| *number != liar).map(|number| ready[number as usize - 1]).collect();
        assert!(honest.len() == 1 && !honest.contains(&0), "message {turn}: {ready:?}");
    }
}

/// The holders that were in a program with a liar are as good as before: the next program takes no stranger in their place who may be a liar, too.
#[test]
fn a_second_liar_is_not_taken_for_the_first() {
    for turn in 0..4_u8 {
        let mut group = Group::cold(Suite::EcdsaSecp256k1, 3, 7);
        group.ticks = 0;
        let first = group.coordinator(&[turn]);
        let at = |offset: u16| (first - 1 + offset) % 7 + 1;
        let liars: Vec<Liar> =
            vec![(at(4), Box::new(Nonsense { named: Arc::default() })), (at(6), tamper(|_, _| Vec::new()))];
        let report = group.run(&[turn], turn.into(), liars);
        group.check(&[turn], &report).unwrap_or_else(|error| panic!("message {turn}: {error}"));
    }
}
