//! Used nonces are recorded before they sign.

use std::sync::Arc;

use bytes::Bytes;
use rand_core::SeedableRng;
use theta_names::Channel;
use theta_protocols::frost::{self, Options, REQUEST};
use theta_protocols::{AnyMachine, Ask, Supply, Used, start_with};
use theta_rounds::simulator::SimRng;
use theta_rounds::{Effect, Input, PartyId, Slot};
use theta_schemes::keys::{AnyKeyShare, AnyPublicKey, deal_any};
use theta_schemes::{Statement, Suite};
use theta_sharing::{ShareIndex, Threshold};

use crate::net::Net;

fn id(number: u16) -> PartyId {
    PartyId::of_share(ShareIndex::try_from(number).unwrap())
}

fn key() -> (AnyPublicKey, Arc<AnyKeyShare>) {
    let threshold = Threshold::new(2, 3).unwrap();
    let (public, shares) = deal_any(Suite::FrostEd25519, threshold, &mut SimRng::seed_from_u64(1));
    (public, Arc::new(shares.into_iter().next().unwrap()))
}

/// Two pairs of nonces that a signer makes on `day` for a coordinator that asks for them. The same seed makes the same
/// nonces, as two images of one memory would.
fn nonces(seed: u64, day: u32) -> Vec<Used> {
    let (public, share) = key();
    let options = theta_protocols::Options { frost: Options { per_peer: 8, day, seed: None }, ..Default::default() };
    let mut machine: AnyMachine = start_with(&public, &share, Statement::Sign(b"any"), options).unwrap();
    let mut rng = SimRng::seed_from_u64(seed);
    machine.handle(Input::Start, &mut rng);
    let (slot, payload) = (Slot { kind: REQUEST, number: 1 }, Bytes::from_static(&[2]));
    let request = Input::Message { from: id(2), slot, channel: Channel::Private, payload };
    let kept = machine.handle(request, &mut rng).into_iter().find_map(|effect| match effect {
        Effect::Ask(Ask::Nonces(frost::Ask::Keep { coordinator, nonces, day, .. })) => Some((coordinator, nonces, day)),
        _ => None,
    });
    let (coordinator, nonces, day) = kept.unwrap();
    let used = |(number, nonces)| Used::Nonces(frost::Used { coordinator, number, day, nonces, in_advance: true });
    nonces.into_iter().map(used).collect()
}

/// Which of them may sign.
fn may_sign(supplies: &[Supply]) -> Vec<bool> {
    let signs = |supply: &Supply| {
        matches!(supply, Supply::Nonces(frost::Supply::Nonces { nonces: Some(_), in_advance: true, .. }))
    };
    supplies.iter().map(signs).collect()
}

#[test]
fn nonces_of_a_memory_that_was_set_back_do_not_sign_again() {
    let mut net = Net::new(2, 4, 1);
    let key = *key().0.key_id();
    let used = |seed| nonces(seed, 100).into_iter().map(|used| (key, used)).collect::<Vec<_>>();
    let burner = net.custodian(1).burner();
    assert_eq!(may_sign(&burner.burn(used(1), 100).supplies), [true, true]);
    // The process has its memory from before; the disk has gone on.
    assert_eq!(may_sign(&burner.burn(used(1), 100).supplies), [false, false]);
    assert_eq!(may_sign(&burner.burn(used(2), 100).supplies), [true, true]);
    // After a loss of power the reopened store knows them, too.
    net.kill(1);
    net.start(1);
    assert_eq!(may_sign(&net.custodian(1).burner().burn(used(1), 101).supplies), [false, false]);
}

/// Nonces of a forgotten day never sign, whether they were used or not.
#[test]
fn old_nonces_are_refused_by_their_day() {
    let net = Net::new(2, 4, 2);
    let key = *key().0.key_id();
    let used = |seed, day| nonces(seed, day).into_iter().map(|used| (key, used)).collect::<Vec<_>>();
    let burner = net.custodian(1).burner();
    assert_eq!(may_sign(&burner.burn(used(1, 100), 101).supplies), [true, true], "of yesterday");
    assert_eq!(may_sign(&burner.burn(used(1, 100), 102).supplies), [false, false]);
    assert_eq!(may_sign(&burner.burn(used(3, 100), 102).supplies), [false, false]);
    assert_eq!(net.custodian(1).store().burn_watermark().unwrap(), 101);
    // Setting the clock back does not make them usable.
    assert_eq!(may_sign(&burner.burn(used(3, 100), 100).supplies), [false, false]);
    assert_eq!(may_sign(&burner.burn(used(4, 102), 102).supplies), [true, true]);
}

/// Whoever asked is answered at once, so that no machine waits for a tick to go on without them.
#[test]
fn a_store_that_fails_refuses_and_leaves_nobody_waiting() {
    let mut net = Net::new(2, 4, 3);
    let key = *key().0.key_id();
    let burner = net.custodian(1).burner();
    net.node(1).disk.fail_after(0);
    let burnt = burner.burn(nonces(1, 100).into_iter().map(|used| (key, used)).collect(), 100);
    assert_eq!(may_sign(&burnt.supplies), [false, false]);
    assert!(burnt.failure.is_some());
}
