//! Many groups by seed: random order, duplication, late starts, restarts, and random liars.

use rand_core::SeedableRng;
use theta_protocols::ecdsa::{PREPARE, PROGRAM, SHARE, SIGNATURE};
use theta_rounds::simulator::{Adversary, SimRng, below, for_each_seed};
use theta_schemes::Suite;

use super::support::{Group, Liar, flip, id};
use crate::lies;

fn any_lie(rng: &mut SimRng) -> Box<dyn Adversary> {
    const KINDS: [u16; 4] = [SHARE, SIGNATURE, PREPARE, PROGRAM];
    lies::any_lie(rng, 90, KINDS.len(), |own| flip(KINDS[own]))
}

/// The classical bound: 2t + 1 honest of 3t + 1. From empty stocks and from full ones the honest get their signature.
#[test]
fn a_third_may_be_byzantine() {
    for t in 1..=2_u16 {
        for_each_seed(if t == 1 { 60 } else { 12 }, |seed| {
            let mut rng = SimRng::seed_from_u64(seed);
            let n = 3 * t + 1;
            let mut group = match below(&mut rng, 2) {
                0 => Group::cold(Suite::EcdsaP256, t + 1, n),
                _ => Group::warm(Suite::EcdsaSecp256k1, t + 1, n),
            };
            group.ticks = 60;
            let first = group.coordinator(b"m");
            // The first coordinators in turn are the liars: the worst place for them.
            let liars: Vec<Liar> = (0..t).map(|offset| ((first - 1 + offset) % n + 1, any_lie(&mut rng))).collect();
            group.check(b"m", &group.run(b"m", seed, liars)).map_err(|error| format!("t = {t}: {error}"))
        })
        .unwrap();
    }
}

/// With 2t + 1 holders a liar can stop the program, and nothing else: whatever comes out is a signature, and nobody honest is blamed, also when one
/// of them restarts.
#[test]
fn a_minority_falsifies_nothing() {
    for_each_seed(80, |seed| {
        let mut rng = SimRng::seed_from_u64(seed);
        let (k, n) = if below(&mut rng, 4) == 0 { (3, 5) } else { (2, 3) };
        let group = match below(&mut rng, 2) {
            0 => Group::cold(Suite::EcdsaP256, k, n),
            _ => Group::warm(Suite::EcdsaP256, k, n),
        };
        let liar = u16::try_from(below(&mut rng, n.into())).unwrap() + 1;
        let mut simulator = group.simulator(seed);
        for number in 1..=n {
            let machine = group.machine(number, b"m");
            if number == liar {
                simulator.byzantine(id(number), machine, any_lie(&mut rng));
            } else {
                simulator.honest(id(number), machine);
            }
        }
        if below(&mut rng, 3) == 0 {
            let other = liar % n + 1;
            simulator.restart(below(&mut rng, 2_000), id(other), group.restarted(other, b"m"));
        }
        group.check_safe(b"m", &simulator.run())
    })
    .unwrap();
}
