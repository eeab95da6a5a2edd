//! Many groups by seed: random order, duplication, loss, late starts, restarts, and random liars.

use std::collections::BTreeMap;

use rand_core::SeedableRng;

use crate::frost::support::{Setting, flip, id};
use crate::lies;
use theta_rounds::simulator::{Adversary, SimRng, below, for_each_seed};
use theta_schemes::Suite;

fn number(rng: &mut SimRng, bound: u16) -> u16 {
    u16::try_from(below(rng, u64::from(bound))).unwrap()
}

fn any_lie(rng: &mut SimRng) -> Box<dyn Adversary> {
    // Of messages of the first five kinds.
    lies::any_lie(rng, 6, 5, |own| flip(u16::try_from(own).unwrap() + 1, 9))
}

/// One group: up to n - k parties lie or are badly heard, so that k honest ones hear each other.
fn check(seed: u64, settings: &mut BTreeMap<(u16, u16), Setting>) -> Result<(), String> {
    let mut rng = SimRng::seed_from_u64(seed);
    let n = 2 + number(&mut rng, 6);
    let k = 1 + number(&mut rng, n);
    let setting = settings.entry((k, n)).or_insert_with(|| Setting::new(Suite::FrostEd25519, k, n));
    let mut simulator = setting.simulator(seed);

    let mut order: Vec<u16> = (1..=n).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, usize::from(number(&mut rng, u16::try_from(last).unwrap() + 1)));
    }
    let unlucky = usize::from(number(&mut rng, n - k + 1));
    let liars = usize::from(number(&mut rng, u16::try_from(unlucky).unwrap() + 1));
    let mut restarted = false;
    for (position, party) in order.into_iter().enumerate() {
        if position < liars {
            simulator.byzantine(id(party), setting.machine(party), any_lie(&mut rng));
        } else {
            simulator.honest(id(party), setting.machine(party));
            if !restarted && below(&mut rng, 8) == 0 {
                restarted = true;
                simulator.restart(below(&mut rng, 300), id(party), setting.machine(party));
            }
        }
        if (liars..unlucky).contains(&position) {
            simulator.lossy(id(party));
        }
    }
    setting.check(&simulator.run()).map_err(|failure| format!("{k} of {n}, {liars} liars: {failure}"))
}

#[test]
fn k_honest_parties_that_hear_each_other_get_a_signature() {
    let mut settings = BTreeMap::new();
    for_each_seed(600, |seed| check(seed, &mut settings)).unwrap();
}

/// The classical bound: 2t + 1 honest of 3t + 1, and signatures take t + 1.
#[test]
fn a_third_may_be_byzantine() {
    for t in 1..=3_u16 {
        let setting = Setting::new(Suite::FrostRistretto255, t + 1, 3 * t + 1);
        for_each_seed(40, |seed| {
            let mut rng = SimRng::seed_from_u64(seed);
            let first = setting.coordinator();
            let n = 3 * t + 1;
            // The first coordinators in turn are the liars: the worst place for them.
            let liars = (0..t).map(|offset| ((first - 1 + offset) % n + 1, any_lie(&mut rng))).collect();
            setting.check(&setting.run(seed, liars))
        })
        .unwrap();
    }
}
