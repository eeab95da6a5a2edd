//! What a liar says beside an honest coordinator holds nobody up.

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::ecdsa::{PREPARE, PROGRAM, SHARE};
use theta_rounds::{Channel, Effect, Input, Slot};
use theta_schemes::Suite;

use super::support::{Group, id, tamper};

/// The length of a presignature's name and R, which come before a share.
const NAMED: usize = 32 + 33;

/// A holder that has lost its presignatures does not know who signs with the one that the coordinator names, and a stranger sends a share of it as well.
/// That the two make no signature says nothing of the coordinator, whose turn goes on. (When it did, holders gave attempts up apart of each other, each took
/// the others' turns for silence and threw away what these owned: after a restart requests beside a liar took a quarter of a minute.)
#[test]
fn a_strangers_share_ends_no_turn() {
    let group = Group::warm(Suite::EcdsaP256, 2, 4);
    let ready = group.ready();
    let owners: Vec<u16> = (1..=4).filter(|number| ready[usize::from(*number) - 1] > 0).collect();
    assert_eq!(owners.len(), 3);
    for coordinator in owners {
        let message = group.message_of(coordinator);
        let (owner, signers, share) = Group::warm(Suite::EcdsaP256, 2, 4).first_share(&message);
        // The next coordinator.
        let restarted = owner % 4 + 1;
        let stranger = (1..=4).find(|number| *number != restarted && !signers.contains(number)).unwrap();
        let mut forged = share.to_vec();
        forged[NAMED + 1] ^= 1;
        let mut machine = group.restarted(restarted, &message);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert!(machine.handle(Input::Start, &mut rng).is_empty(), "it is another's turn");
        for (from, payload) in [(owner, share), (stranger, forged.into())] {
            let slot = Slot { kind: SHARE, number: 7 };
            let input = Input::Message { from: id(from), slot, channel: Channel::Broadcast, payload };
            let effects = machine.handle(input, &mut rng);
            assert!(effects.is_empty(), "coordinator {coordinator}: {effects:?}");
        }
        // When time passes its turn comes.
        let effects = machine.handle(Input::Tick, &mut rng);
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Send { slot, .. } if slot.kind == PREPARE)));
    }
}

/// A coordinator that finds a liar out in its program names another one at once: no tick has to pass.
#[test]
fn a_program_without_the_liar_follows_at_once() {
    for turn in 0..8_u8 {
        let mut group = Group::cold(Suite::EcdsaP256, 2, 4);
        group.ticks = 0;
        let first = group.coordinator(&[turn]);
        // The next of the others is taken into the program.
        let liar = first % 4 + 1;
        let nonsense = tamper(|slot, payload| {
            let payload = if slot.kind >= PROGRAM { [&payload[..4], b"nothing"].concat().into() } else { payload };
            if slot.kind == PREPARE { Vec::new() } else { vec![(slot, payload)] }
        });
        let report = group.run(&[turn], turn.into(), vec![(liar, nonsense)]);
        group.check(&[turn], &report).unwrap_or_else(|error| panic!("message {turn}: {error}"));
        assert!(!Group::offences(&report, liar).is_empty());
    }
}
