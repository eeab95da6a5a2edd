//! Requests for which only the makers that they draw make shares, and the misbehaviour of makers and combiners.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;

use bytes::Bytes;
use theta_protocols::one_round::{COMBINED, SHARE};
use theta_protocols::{Misbehaviour, Options, Outcome, start, start_with};
use theta_rounds::simulator::{Adversary, Behaviour, Conditions, Report, SimRng, Simulator, Tamper};
use theta_rounds::{Effect, Input, PartyId, Recipient, Slot};
use theta_schemes::{Delivery, Suite};

use crate::one_round::support::{Delta, Setting, id, result_of, shifted};
use crate::supplied::{SuppliedMachine, alone};

/// One suite with bare shares and one without; and one whose combined value is k shares, since nothing shorter proves it.
const SUITES: [Suite; 3] = [Suite::Sg02Ristretto255, Suite::Bls04MinSig, Suite::Cks05Ristretto255];

pub(super) fn machine(setting: &Setting, number: u16) -> SuppliedMachine {
    let share = &setting.shares[usize::from(number) - 1];
    let options = Options { delivery: Delivery::Quorum, ..Options::default() };
    alone(start_with(&setting.public, share, &setting.statement, options).unwrap())
}

/// What the parties do, as their first messages show.
#[derive(Debug, Default)]
pub(super) struct Duties {
    pub(super) combiners: Vec<u16>,
    pub(super) makers: Vec<u16>,
    pub(super) standing_by: Vec<u16>,
}

pub(super) fn duties(setting: &Setting) -> Duties {
    let mut duties = Duties::default();
    for number in 1..=setting.n {
        let mut rng = rand_core::SeedableRng::seed_from_u64(1);
        let rng: &mut SimRng = &mut rng;
        let mut to = Vec::new();
        for effect in machine(setting, number).handle(Input::Start, rng) {
            if let Effect::Send { to: Recipient::Party(party), .. } = effect {
                to.push(party);
            }
        }
        match to.len() {
            0 => duties.standing_by.push(number),
            1 => duties.combiners.push(number),
            _ => duties.makers.push(number),
        }
    }
    duties
}

/// Runs all parties for so many ticks, these of them corrupted.
pub(super) fn run(
    setting: &Setting,
    seed: u64,
    ticks: u32,
    corrupted: Vec<(u16, Box<dyn Adversary>)>,
) -> Report<Outcome, Misbehaviour> {
    let mut simulator = Simulator::new(seed, Conditions { ticks, ..Conditions::default() });
    let mut corrupted: BTreeMap<_, _> = corrupted.into_iter().collect();
    for number in 1..=setting.n {
        match corrupted.remove(&number) {
            None => simulator.honest(id(number), machine(setting, number)),
            Some(adversary) => simulator.byzantine(id(number), machine(setting, number), adversary),
        }
    }
    simulator.run()
}

pub(super) fn tamper(change: impl Fn(PartyId, Slot, Bytes) -> Option<Bytes> + Send + 'static) -> Box<dyn Adversary> {
    Box::new(Tamper(move |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
        change(to, slot, payload).map(|payload| (slot, payload)).into_iter().collect()
    }))
}

pub(super) fn silent() -> Box<dyn Adversary> {
    Box::new(Behaviour::Silent)
}

/// A false combined value: that of coins begins with the index of its first share.
fn false_value(suite: Suite, value: &Bytes) -> Bytes {
    let index = if suite == Suite::Cks05Ristretto255 { 2 } else { 0 };
    [&value[..index], &shifted(suite, &value[index..], &Delta::plus(1))].concat().into()
}

/// Checks groups of 3 of 7 and of 3 of 5, where t corrupted parties leave no honest one to spare.
fn each(check: impl Fn(&Setting, &Duties)) {
    for (suite, n) in SUITES.into_iter().flat_map(|suite| [(suite, 7), (suite, 5)]) {
        let setting = Setting::new(suite, 3, n);
        let duties = duties(&setting);
        assert_eq!((duties.combiners.len(), duties.makers.len()), (2, 2));
        assert_eq!(duties.standing_by.len(), usize::from(n) - 4);
        check(&setting, &duties);
    }
}

/// What a request costs when all are honest and messages arrive in the order in which they were sent.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cost {
    /// Shares that parties made.
    shares_made: usize,
    /// Combinations of k shares.
    combinations: usize,
    /// Messages over links, by kind: shares and combined values.
    shares_sent: usize,
    combined_sent: usize,
}

fn cost(setting: &Setting, quorum: bool) -> Cost {
    let rng: &mut SimRng = &mut rand_core::SeedableRng::seed_from_u64(5);
    let mut cost = Cost::default();
    let mut machines: BTreeMap<u16, SuppliedMachine> = (1..=setting.n)
        .map(|number| (number, if quorum { machine(setting, number) } else { setting.machine(number) }))
        .collect();
    let mut queue: VecDeque<(u16, Input<Infallible>)> = (1..=setting.n).map(|number| (number, Input::Start)).collect();
    let mut finished = 0;
    while let Some((number, input)) = queue.pop_front() {
        let (mut made, by_shares) = (false, !matches!(input, Input::Message { slot: COMBINED, .. }));
        for effect in machines.get_mut(&number).unwrap().handle(input, rng) {
            match effect {
                Effect::Send { to, slot, channel, payload } => {
                    made |= slot == SHARE;
                    let reached: Vec<u16> = match to {
                        Recipient::OnRequest => Vec::new(),
                        Recipient::Party(party) => vec![party.get()],
                        Recipient::All => (1..=setting.n).filter(|other| *other != number).collect(),
                    };
                    *(match slot {
                        SHARE => &mut cost.shares_sent,
                        COMBINED => &mut cost.combined_sent,
                        other => panic!("a message in slot {other}"),
                    }) += reached.len();
                    for to in reached {
                        let payload = payload.clone();
                        queue.push_back((to, Input::Message { from: id(number), slot, channel, payload }));
                    }
                }
                Effect::Finished(result) => {
                    let outcome = result.unwrap();
                    assert_eq!(result_of(&outcome), setting.result);
                    finished += 1;
                    cost.combinations += usize::from(by_shares);
                    // Who took a combined value knows whose shares are in it if these are the value.
                    let told = by_shares || setting.suite == Suite::Cks05Ristretto255;
                    let known = if told { usize::from(setting.public.threshold().k()) } else { 0 };
                    assert_eq!(outcome.contributors.len(), known);
                }
                Effect::Blame(blame) => panic!("{blame}"),
                Effect::Ask(nothing) => match nothing {},
            }
        }
        cost.shares_made += usize::from(made);
    }
    assert_eq!(finished, setting.n);
    cost
}

#[test]
fn without_a_fault_no_tick_is_needed() {
    each(|setting, _| {
        for seed in 0..50 {
            let report = run(setting, seed, 0, Vec::new());
            setting.expect_result(&report);
            assert!(report.honest().all(|(_, party)| party.blames.is_empty()));
        }
    });
}

#[test]
fn those_that_stand_by_make_no_share() {
    each(|setting, duties| {
        for number in &duties.standing_by {
            let rng: &mut SimRng = &mut rand_core::SeedableRng::seed_from_u64(1);
            assert!(machine(setting, *number).handle(Input::Start, rng).is_empty());
        }
    });
}

#[test]
fn costs_grow_with_n_and_not_with_its_square() {
    for suite in SUITES {
        for (k, n) in [(3, 7), (11, 31), (43, 127)] {
            let setting = Setting::new(suite, k, n);
            let (n, k) = (usize::from(n), usize::from(k));
            let all = Cost { shares_made: n, combinations: n, shares_sent: n * (n - 1), combined_sent: 0 };
            assert_eq!(cost(&setting, false), all);
            // Each of k + 1 makers sends its share to the combiners, which do not send to themselves; both combine.
            let quorum = Cost { shares_made: k + 1, combinations: 2, shares_sent: 2 * k, combined_sent: 2 * (n - 1) };
            assert_eq!(cost(&setting, true), quorum);
        }
    }
}

#[test]
fn one_silent_combiner_costs_no_tick() {
    each(|setting, duties| {
        for combiner in &duties.combiners {
            let report = run(setting, 1, 0, vec![(*combiner, silent())]);
            setting.expect_result(&report);
        }
    });
}

#[test]
fn two_silent_combiners_cost_ticks_and_not_the_result() {
    each(|setting, duties| {
        let corrupted = || duties.combiners.iter().map(|number| (*number, silent())).collect();
        assert!(run(setting, 1, 0, corrupted()).honest().all(|(_, party)| party.result.is_none()));
        setting.expect_result(&run(setting, 1, 2, corrupted()));
    });
}

#[test]
fn false_combined_values_name_their_senders() {
    each(|setting, duties| {
        let suite = setting.suite;
        let lie = || {
            tamper(move |_, slot, payload| Some(if slot == COMBINED { false_value(suite, &payload) } else { payload }))
        };
        let corrupted = duties.combiners.iter().map(|number| (*number, lie())).collect();
        let report = run(setting, 2, 2, corrupted);
        setting.expect_result(&report);
        for number in &duties.combiners {
            let blames: Vec<_> = report.blames_of(id(*number)).collect();
            assert!(!blames.is_empty());
            assert!(blames.iter().all(|(_, blame)| blame.offence.name() == "invalid_result"));
        }
    });
}

#[test]
fn garbage_as_combined_value_is_named() {
    each(|setting, duties| {
        for garbage in [Bytes::new(), Bytes::from_static(&[0xff; 96]), Bytes::from_static(&[0; 32])] {
            let corrupted = duties.combiners.iter().map(|number| {
                let garbage = garbage.clone();
                (
                    *number,
                    tamper(move |_, slot, payload| Some(if slot == COMBINED { garbage.clone() } else { payload })),
                )
            });
            setting.expect_result(&run(setting, 3, 2, corrupted.collect()));
        }
    });
}

#[test]
fn combiners_that_tell_only_some_keep_nobody_from_the_result() {
    each(|setting, duties| {
        let told = duties.standing_by[0];
        let corrupted = duties.combiners.iter().map(|number| {
            (*number, tamper(move |to, slot, payload| (slot != COMBINED || to == id(told)).then_some(payload)))
        });
        let corrupted: Vec<_> = corrupted.collect();
        setting.expect_result(&run(setting, 4, 2, corrupted));
    });
}

/// One combiner tells the other alone, which without it has too few shares: the first withholds its own, and one maker is silent. The other
/// combiner tells all what it was told, so that nobody waits for a tick.
#[test]
fn a_combiner_that_was_told_tells_all() {
    each(|setting, duties| {
        let (liar, other) = (duties.combiners[0], duties.combiners[1]);
        let selective = || {
            tamper(move |to, slot, payload| {
                let is_told = if to == id(other) { slot == COMBINED } else { slot != COMBINED };
                is_told.then_some(payload)
            })
        };
        // Its own share, a maker's, and that of the other combiner make k.
        for seed in 0..20 {
            let corrupted = vec![(liar, selective()), (duties.makers[0], silent())];
            setting.expect_result(&run(setting, seed, 0, corrupted));
        }
    });
}

#[test]
fn makers_that_lie_are_named() {
    each(|setting, duties| {
        let suite = setting.suite;
        let lies = duties.makers.iter().enumerate().map(|(place, number)| {
            let lie = Delta::plus(1 + 4 * place as u64);
            (
                *number,
                tamper(move |_, slot, payload| {
                    Some(if slot == COMBINED { payload } else { shifted(suite, &payload, &lie) })
                }),
            )
        });
        let report = run(setting, 5, 3, lies.collect());
        setting.expect_result(&report);
        let named: Vec<_> = duties.makers.iter().flat_map(|number| report.blames_of(id(*number))).collect();
        assert!(!named.is_empty());
        assert!(named.iter().all(|(_, blame)| blame.offence.name() == "invalid_share"));
    });
}

/// A combiner that doubts is given proven shares by those that stand by, too, and needs no others.
#[test]
fn makers_that_lie_cost_no_tick_where_shares_are_proven_on_demand() {
    each(|setting, duties| {
        if setting.suite != Suite::Sg02Ristretto255 {
            return;
        }
        let suite = setting.suite;
        let lies = (1..).zip(&duties.makers).map(|(by, number)| {
            let lie = Delta::plus(4 * by);
            (
                *number,
                tamper(move |_, slot, payload| {
                    Some(if slot == COMBINED { payload } else { shifted(suite, &payload, &lie) })
                }),
            )
        });
        setting.expect_result(&run(setting, 10, 0, lies.collect()));
    });
}

#[test]
fn silent_makers_cost_ticks_and_not_the_result() {
    each(|setting, duties| {
        let corrupted = duties.makers.iter().map(|number| (*number, silent())).collect();
        setting.expect_result(&run(setting, 6, 2, corrupted));
    });
}

/// Each pair of makers and combiners, with each pair of behaviours: as many faults as there may be, in the worst places.
#[test]
fn as_many_faults_as_may_be_among_those_drawn() {
    let behaviours = [Behaviour::Silent, Behaviour::BitFlip, Behaviour::Equivocate, Behaviour::CrashAfter(2)];
    each(|setting, duties| {
        let drawn: Vec<u16> = duties.combiners.iter().chain(&duties.makers).copied().collect();
        let pairs =
            drawn.iter().flat_map(|one| drawn.iter().filter(move |other| *other > one).map(move |other| (one, other)));
        let kinds = || behaviours.iter().flat_map(|one| behaviours.iter().map(move |other| (one, other)));
        let cases = pairs.flat_map(|parties| kinds().map(move |kinds| (parties, kinds)));
        for (seed, ((one, other), (first, second))) in (0..).zip(cases) {
            let corrupted: Vec<(u16, Box<dyn Adversary>)> =
                vec![(*one, Box::new(first.clone())), (*other, Box::new(second.clone()))];
            setting.expect_result(&run(setting, seed, 3, corrupted));
        }
    });
}

#[test]
fn who_is_asked_late_takes_what_the_others_kept() {
    each(|setting, duties| {
        let late = duties.standing_by[0];
        // It never hears the combiners unless it asks: whatever they send it at first is lost.
        let mut simulator = Simulator::new(7, Conditions { ticks: 2, ..Conditions::default() });
        for number in 1..=setting.n {
            let machine = machine(setting, number);
            if number == late || !duties.combiners.contains(&number) {
                simulator.honest(id(number), machine);
            } else {
                simulator.byzantine(
                    id(number),
                    machine,
                    Tamper(
                        move |_: &mut SimRng, to: PartyId, slot, payload| {
                            if to == id(late) { Vec::new() } else { vec![(slot, payload)] }
                        },
                    ),
                );
            }
        }
        setting.expect_result(&simulator.run());
    });
}

#[test]
fn a_combined_value_where_all_combine_is_an_offence() {
    let setting = Setting::new(Suite::Sg02Ristretto255, 2, 4);
    let mut machine = alone(start(&setting.public, &setting.shares[0], &setting.statement).unwrap());
    let rng: &mut SimRng = &mut rand_core::SeedableRng::seed_from_u64(1);
    drop(machine.handle(Input::Start, rng));
    let payload = Bytes::from_static(&[1; 32]);
    let channel = theta_rounds::Channel::Broadcast;
    let effects = machine.handle(Input::Message { from: id(2), slot: COMBINED, channel, payload }, rng);
    assert!(matches!(effects.as_slice(), [Effect::Blame(blame)] if blame.offence.name() == "malformed_message"));
}

/// Every kind of combined value: elements of both ciphers, signatures, and signatures behind coins.
#[test]
fn combined_values_of_every_kind_are_taken_if_true() {
    let suites = [
        Suite::Sg02Bls12381,
        Suite::Bz03Bls12381,
        Suite::Bls04MinPk,
        Suite::Sh00Pkcs1Sha256,
        Suite::Cks05Bls04MinSig,
        Suite::Cks05Sh00,
    ];
    for suite in suites {
        let setting = Setting::new(suite, 2, 4);
        let duties = duties(&setting);
        setting.expect_result(&run(&setting, 9, 0, Vec::new()));
        let bent = || {
            tamper(|_, slot, payload| {
                let mut bytes = payload.to_vec();
                if slot == COMBINED
                    && let Some(last) = bytes.last_mut()
                {
                    *last ^= 1;
                }
                Some(bytes.into())
            })
        };
        let liar = duties.combiners[0];
        let mut named = 0;
        for seed in 0..5 {
            let report = run(&setting, seed, 1, vec![(liar, bent())]);
            setting.expect_result(&report);
            assert!(report.blames_of(id(liar)).all(|(_, blame)| blame.offence.name() == "invalid_result"));
            named += report.blames_of(id(liar)).count();
        }
        assert!(named > 0, "{suite}: nobody got the false value in time");
    }
}
