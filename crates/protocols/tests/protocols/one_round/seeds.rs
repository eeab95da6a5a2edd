//! Thousands of groups by seed: random order, duplication, loss, late starts, restarts, and random liars.

use std::collections::BTreeMap;

use crate::one_round::support::{Delta, Setting, id, result_of, shifted, tamper};
use theta_rounds::simulator::{Adversary, Behaviour, Conditions, SimRng, Simulator, below, for_each_seed};
use theta_schemes::Suite;

/// Keys are dealt once for each shape of group.
#[derive(Default)]
struct Settings(BTreeMap<(Suite, u16, u16), Setting>);

impl Settings {
    fn get(&mut self, suite: Suite, k: u16, n: u16) -> &Setting {
        self.0.entry((suite, k, n)).or_insert_with(|| Setting::new(suite, k, n))
    }
}

fn number(rng: &mut SimRng, bound: u16) -> u16 {
    u16::try_from(below(rng, u64::from(bound))).unwrap()
}

/// A lie of some kind by party `of`.
fn any_lie(rng: &mut SimRng, setting: &Setting, of: u16) -> Box<dyn Adversary> {
    let suite = setting.suite;
    match below(rng, 15) {
        0 => Box::new(Behaviour::Silent),
        1 => Box::new(Behaviour::Garbage),
        2 => Box::new(Behaviour::BitFlip),
        3 => Box::new(Behaviour::Truncate),
        4 => Box::new(Behaviour::WrongChannel),
        5 => Box::new(Behaviour::UnknownSlot),
        6 => Box::new(Behaviour::TwoToSame),
        7 => Box::new(Behaviour::Equivocate),
        8 => Box::new(Behaviour::CopyOthers),
        9 => Box::new(Behaviour::Replay(vec![setting.share_of_other_instance(of)])),
        10 => Box::new(Behaviour::Flood),
        11 => Box::new(Behaviour::CrashAfter(usize::from(number(rng, setting.n)))),
        12 => Box::new(Behaviour::Overlong),
        _ => {
            let value = 1 + below(rng, 1000);
            tamper(move |_, payload| shifted(suite, &payload, &Delta::plus(value)))
        }
    }
}

/// One group: up to n - k parties lie or are badly heard, so that k honest ones hear each other.
fn check(seed: u64, suites: &[Suite], largest: u16, settings: &mut Settings) -> Result<(), String> {
    let conditions = Conditions { duplicates_per_mille: 100, loss_per_mille: 500, ..Conditions::default() };
    let mut simulator = Simulator::new(seed, conditions);
    let rng = simulator.rng();
    let n = 2 + number(rng, largest - 1);
    let k = 1 + number(rng, n);
    let suite = suites[usize::from(number(rng, u16::try_from(suites.len()).unwrap()))];
    let setting = settings.get(suite, k, n);

    let mut order: Vec<u16> = (1..=n).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, usize::from(number(rng, u16::try_from(last).unwrap() + 1)));
    }
    let unlucky = usize::from(number(rng, n - k + 1));
    let liars = usize::from(number(rng, u16::try_from(unlucky).unwrap() + 1));
    let mut restarted = false;
    for (position, party) in order.into_iter().enumerate() {
        if position < liars {
            let lie = any_lie(simulator.rng(), setting, party);
            simulator.byzantine(id(party), setting.machine(party), lie);
        } else {
            simulator.honest(id(party), setting.machine(party));
            if !restarted && below(simulator.rng(), 8) == 0 {
                restarted = true;
                let time = below(simulator.rng(), 200);
                simulator.restart(time, id(party), setting.machine(party));
            }
        }
        if (liars..unlucky).contains(&position) {
            simulator.lossy(id(party));
        }
    }

    let report = simulator.run();
    let context = |failure: String| format!("{suite}, {k} of {n}, {liars} liars: {failure}");
    report.check_blame().map_err(context)?;
    let result = report.agreed(result_of).map_err(context)?;
    if result == setting.result { Ok(()) } else { Err(context("the result is not that of an honest run".to_owned())) }
}

#[test]
fn on_ristretto255() {
    let mut settings = Settings::default();
    let suites = [Suite::Sg02Ristretto255, Suite::Cks05Ristretto255];
    for_each_seed(3000, |seed| check(seed, &suites, 6, &mut settings)).unwrap();
}

#[test]
fn on_bls12_381() {
    let mut settings = Settings::default();
    let suites = [Suite::Bls04MinPk, Suite::Bls04MinSig, Suite::Sg02Bls12381, Suite::Cks05Bls12381];
    for_each_seed(400, |seed| check(seed, &suites, 4, &mut settings)).unwrap();
}

/// The same seed makes the same run to the last byte.
#[test]
fn runs_replay_exactly() {
    let setting = Setting::new(Suite::Cks05Ristretto255, 2, 4);
    let trace = |seed| {
        let mut simulator = Simulator::new(seed, Conditions::default());
        for party in 1..=3 {
            simulator.honest(id(party), setting.machine(party));
        }
        simulator.byzantine(id(4), setting.machine(4), Behaviour::Garbage);
        simulator.run().trace
    };
    assert_eq!(trace(8), trace(8));
    assert_ne!(trace(8), trace(9));
}
