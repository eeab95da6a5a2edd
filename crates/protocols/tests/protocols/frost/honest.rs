//! What happens when nobody lies.

use crate::frost::support::{MESSAGE, Setting, id};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_rounds::simulator::{Behaviour, Conditions, Simulator};
use theta_rounds::{Effect, Input};
use theta_schemes::Suite;

#[test]
fn every_suite_signs() {
    let suites: Vec<Suite> = Suite::ALL.into_iter().filter(|suite| suite.scheme() == "FROST").collect();
    assert!(suites.len() >= 3);
    for suite in suites {
        for (k, n) in [(1, 1), (1, 3), (2, 3), (3, 3), (3, 5)] {
            let setting = Setting::new(suite, k, n);
            let report = setting.run(u64::from(n), Vec::new());
            setting.check(&report).unwrap_or_else(|error| panic!("{suite}, {k} of {n}: {error}"));
            assert!(report.agreed(|outcome| outcome.result.expose().clone()).is_ok(), "{suite}, {k} of {n}");
        }
    }
}

/// One message from each of the others (commitments), k - 1 packages, k - 1 shares, and the signature to all; no clock.
#[test]
fn four_delays_and_few_messages() {
    let setting = Setting::new(Suite::FrostEd25519, 3, 5);
    let coordinator = setting.coordinator();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut machines: Vec<_> = (1..=5).map(|number| setting.machine(number)).collect();
    let mut sent = [0_usize; 5];
    let mut finished = 0;
    let mut events: Vec<_> = (1..=5).map(|number| (number, Input::Start)).collect();
    while !events.is_empty() {
        let mut next = Vec::new();
        for (at, input) in events {
            for effect in machines[usize::from(at) - 1].handle(input, &mut rng) {
                match effect {
                    Effect::Send { to, slot, channel, payload } => {
                        let reached = (1..=5_u16).filter(|to_one| match to {
                            theta_rounds::Recipient::Party(party) => party == id(*to_one),
                            theta_rounds::Recipient::All => *to_one != at,
                            theta_rounds::Recipient::OnRequest => false,
                        });
                        for one in reached {
                            sent[usize::from(slot.kind)] += 1;
                            let from = id(at);
                            next.push((one, Input::Message { from, slot, channel, payload: payload.clone() }));
                        }
                    }
                    Effect::Finished(result) => {
                        setting.check_outcome(&result.unwrap()).unwrap();
                        finished += 1;
                    }
                    Effect::Blame(blame) => panic!("{blame}"),
                }
            }
        }
        events = next;
    }
    assert_eq!((finished, sent), (5, [0, 4, 2, 2, 4]), "coordinator {coordinator}");
}

#[test]
fn two_runs_have_two_signatures() {
    let setting = Setting::new(Suite::FrostRistretto255, 2, 3);
    let signature = |seed| setting.run(seed, Vec::new()).agreed(|outcome| outcome.result.expose().clone()).unwrap();
    assert_ne!(signature(1), signature(2));
    assert!(setting.public.verify(MESSAGE, &signature(3), &[]).is_ok());
}

#[test]
fn runs_replay_exactly() {
    let setting = Setting::new(Suite::FrostEd25519, 2, 4);
    let trace = |seed| setting.run(seed, vec![(2, Box::new(Behaviour::Garbage))]).trace;
    assert_eq!(trace(8), trace(8));
    assert_ne!(trace(8), trace(9));
}

#[test]
fn a_signer_that_restarts_in_the_middle_is_not_an_equivocator() {
    for seed in 0..60 {
        let setting = Setting::new(Suite::FrostEd25519, 3, 3);
        let mut simulator = setting.simulator(seed);
        setting.populate(&mut simulator, Vec::new());
        let victim = setting.others()[0];
        for time in [60, 120, 180] {
            simulator.restart(time, id(victim), setting.machine(victim));
        }
        let report = simulator.run();
        setting.check(&report).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn a_coordinator_that_restarts_is_not_an_equivocator() {
    for seed in 0..60 {
        let setting = Setting::new(Suite::FrostEd25519, 3, 4);
        let mut simulator = setting.simulator(seed);
        setting.populate(&mut simulator, Vec::new());
        let victim = setting.coordinator();
        for time in [100, 200, 300] {
            simulator.restart(time, id(victim), setting.machine(victim));
        }
        let report = simulator.run();
        setting.check(&report).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn a_group_too_small_waits_and_accuses_nobody() {
    let setting = Setting::new(Suite::FrostEd25519, 3, 4);
    let mut simulator = Simulator::new(1, Conditions { ticks: 9, ..Conditions::default() });
    for number in [1, 2] {
        simulator.honest(id(number), setting.machine(number));
    }
    let report = simulator.run();
    report.check_blame().unwrap();
    assert!(report.honest().all(|(_, party)| party.result.is_none() && party.blames.is_empty()));
}
