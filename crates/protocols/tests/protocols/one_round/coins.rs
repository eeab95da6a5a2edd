//! Coins in quorum mode, whose combined value is the k shares that prove them: lies about it, and what is no lie although it differs.

use std::collections::BTreeSet;

use bytes::Bytes;
use rand_core::SeedableRng;
use theta_protocols::one_round::COMBINED;
use theta_protocols::{AnyMachine, Ask, Options, Outcome, Supply, start_with};
use theta_rounds::simulator::{Conditions, SimRng, Simulator, below, for_each_seed};
use theta_rounds::{Abort, Channel, Effect, Input};
use theta_schemes::{Claim, Delivery, StatementBytes, Suite, check_together};
use theta_sharing::ShareIndex;

use super::quorum::{Duties, duties, machine, run, tamper};
use crate::one_round::support::{Delta, Setting, id, result_of, shifted};

/// One whose coins are checked together with others, and one whose proofs are checked one by one.
const SUITES: [Suite; 2] = [Suite::Cks05Ristretto255, Suite::Cks05Ed25519];

/// Checks groups of 3 of 7 and of 3 of 5, where t corrupted parties leave no honest one to spare.
fn each(check: impl Fn(&Setting, &Duties)) {
    for (suite, n) in SUITES.into_iter().flat_map(|suite| [(suite, 7), (suite, 5)]) {
        let setting = Setting::new(suite, 3, n);
        check(&setting, &duties(&setting));
    }
}

/// The combined value of these parties' shares.
fn value(setting: &Setting, statement: &StatementBytes, parties: [u16; 3]) -> Bytes {
    let rng = &mut SimRng::seed_from_u64(3);
    let shares = parties.map(|party| {
        let share = &setting.shares[usize::from(party) - 1];
        (share.index(), setting.public.create_share(share, statement, rng).unwrap())
    });
    let shares: Vec<_> = shares.iter().map(|(index, share)| (*index, &share[..])).collect();
    let combined = setting.public.combine(statement, &shares, rng).unwrap();
    let answer = setting.public.answer(&setting.shares[0], statement).unwrap();
    answer.combined_value(&combined).unwrap().expose().clone().into()
}

/// The same for the setting's statement.
fn right(setting: &Setting, parties: [u16; 3]) -> Bytes {
    value(setting, &setting.statement, parties)
}

/// A machine by hand, and what it has done.
struct Party {
    machine: AnyMachine,
    rng: SimRng,
    claims: Vec<Claim>,
    blamed: Vec<(u16, &'static str)>,
    sent: Vec<Bytes>,
    result: Option<Result<Outcome, Abort>>,
}

impl Party {
    fn new(setting: &Setting, number: u16) -> Self {
        let options = Options { delivery: Delivery::Quorum, ..Options::default() };
        let share = &setting.shares[usize::from(number) - 1];
        let machine = start_with(&setting.public, share, &setting.statement, options).unwrap();
        let rng = SimRng::seed_from_u64(1);
        Self { machine, rng, claims: Vec::new(), blamed: Vec::new(), sent: Vec::new(), result: None }
    }

    fn handle(&mut self, input: Input<Supply>) {
        for effect in self.machine.handle(input, &mut self.rng) {
            match effect {
                Effect::Ask(Ask::Check(claim)) => self.claims.push(claim),
                Effect::Ask(_) => panic!("coins have no stock"),
                Effect::Send { slot, payload, .. } if slot == COMBINED => self.sent.push(payload),
                Effect::Send { .. } => {}
                Effect::Blame(blame) => self.blamed.push((blame.party.get(), blame.offence.name())),
                Effect::Finished(result) => self.result = Some(result),
            }
        }
    }

    fn told(&mut self, from: u16, payload: &Bytes) {
        let payload = payload.clone();
        self.handle(Input::Message { from: id(from), slot: COMBINED, channel: Channel::Broadcast, payload });
    }

    /// Gives the verdict about the one result that waits for it, if the suite checks results together.
    fn learns(&mut self) {
        let claims = core::mem::take(&mut self.claims);
        assert!(claims.len() <= 1, "it asks about one result at a time");
        if !claims.is_empty() {
            let verdict = check_together(&claims, &mut self.rng)[0];
            self.handle(Input::Supply(Supply::Checked(verdict)));
        }
    }

    fn contributors(&self, setting: &Setting) -> Vec<u16> {
        let outcome = self.result.as_ref().unwrap().as_ref().unwrap();
        checked(setting, outcome).into_iter().collect()
    }
}

/// The parties whose shares prove a coin, which are those that its holder names.
fn checked(setting: &Setting, outcome: &Outcome) -> BTreeSet<u16> {
    assert_eq!(outcome.result.expose(), &setting.result);
    let StatementBytes::FlipCoin(name) = &setting.statement else { panic!("no coin") };
    setting.public.verify(name, outcome.result.expose(), &outcome.proof).unwrap();
    let entry = outcome.proof.len() / 3;
    let proven: BTreeSet<u16> =
        outcome.proof.chunks(entry).map(|share| u16::from_be_bytes([share[0], share[1]])).collect();
    let named: BTreeSet<u16> = outcome.contributors.iter().map(|index| ShareIndex::get(*index)).collect();
    assert_eq!((&proven, outcome.contributors.len()), (&named, 3));
    proven
}

#[test]
fn all_have_the_proof_and_name_those_who_made_it() {
    each(|setting, duties| {
        for seed in 0..20 {
            let report = run(setting, seed, 0, Vec::new());
            setting.expect_result(&report);
            for (_, party) in report.honest() {
                let proven = checked(setting, party.result.as_ref().unwrap().as_ref().unwrap());
                assert!(proven.iter().all(|number| !duties.standing_by.contains(number)), "{proven:?}");
            }
        }
    });
}

/// Where one share is the result, where there is nobody to spare, and where a value is longer than any share of another scheme.
#[test]
fn groups_of_every_shape_have_their_coins_without_a_tick() {
    for (k, n) in [(1, 1), (1, 2), (1, 4), (2, 2), (2, 3), (5, 5), (40, 44)] {
        for suite in SUITES.into_iter().chain([Suite::Cks05Ed448]).filter(|suite| n < 40 || *suite == SUITES[0]) {
            let setting = Setting::new(suite, k, n);
            let report = run(&setting, 1, 0, Vec::new());
            setting.expect_result(&report);
            for (_, party) in report.honest() {
                let outcome = party.result.as_ref().unwrap().as_ref().unwrap();
                assert_eq!(outcome.contributors.len(), usize::from(k), "{suite}, {k} of {n}");
            }
        }
    }
}

/// What a lying combiner makes of a value, by name.
fn lies(setting: &Setting, parties: [u16; 3]) -> Vec<(&'static str, Bytes, &'static str)> {
    let right = right(setting, parties);
    let entry = right.len() / 3;
    let at = |place: usize| &right[place * entry..(place + 1) * entry];
    let mut proof = right.to_vec();
    proof[3 * entry - 20] ^= 1;
    let element = match setting.suite {
        Suite::Cks05Ristretto255 => shifted(setting.suite, &at(1)[2..], &Delta::plus(1)),
        // Another's share under this party's number.
        _ => Bytes::copy_from_slice(&at(0)[2..]),
    };
    let stranger = [at(0), at(1), &(setting.n + 1).to_be_bytes(), &at(2)[2..]].concat();
    let other: Vec<u8> = value(setting, &setting.other_statement, parties).to_vec();
    let lies: [(&str, Vec<u8>, &str); 11] = [
        ("a false share", [at(0), &at(1)[..2], &element[..], at(2)].concat(), "invalid_result"),
        ("a false proof", proof, "invalid_result"),
        ("too few", right[..2 * entry].to_vec(), "invalid_result"),
        ("too many", [&right[..], at(2)].concat(), "too_long"),
        ("the wrong order", [at(1), at(0), at(2)].concat(), "invalid_result"),
        ("one party twice", [at(0), at(0), at(2)].concat(), "invalid_result"),
        ("numbers exchanged", [&at(0)[..2], &at(1)[2..], &at(1)[..2], &at(0)[2..], at(2)].concat(), "invalid_result"),
        ("a stranger", stranger, "invalid_result"),
        ("another coin's proof", other, "invalid_result"),
        ("nothing", Vec::new(), "invalid_result"),
        ("the coin itself", setting.result.clone(), "invalid_result"),
    ];
    lies.into_iter().map(|(name, lie, offence)| (name, lie.into(), offence)).collect()
}

/// Whoever gets a lie first names its sender, and takes what the other combiner says.
#[test]
fn each_lie_about_a_value_names_its_sender_and_costs_nothing_else() {
    each(|setting, duties| {
        let (liar, honest) = (duties.combiners[0], duties.combiners[1]);
        let parties = [liar, honest, duties.makers[0]];
        for (name, lie, offence) in lies(setting, parties) {
            for number in duties.standing_by.iter().chain(&duties.makers) {
                let mut party = Party::new(setting, *number);
                party.handle(Input::Start);
                party.told(liar, &lie);
                party.learns();
                assert_eq!(party.blamed, [(liar, offence)], "{}: {name}", setting.suite);
                assert!(party.result.is_none(), "{name}");
                party.told(honest, &right(setting, parties));
                party.learns();
                assert_eq!(party.contributors(setting), BTreeSet::from(parties).into_iter().collect::<Vec<_>>());
            }
        }
    });
}

/// The same in whole groups, where one combiner lies and no tick is needed, and where both do.
#[test]
fn lying_combiners_keep_nobody_from_a_coin() {
    each(|setting, duties| {
        let [one, other] = [duties.combiners[0], duties.combiners[1]];
        for (seed, (_, lie, _)) in (0..).zip(lies(setting, [one, other, duties.makers[0]])) {
            let lying = |lie: &Bytes| {
                let lie = lie.clone();
                tamper(move |_, slot, payload| Some(if slot == COMBINED { lie.clone() } else { payload }))
            };
            setting.expect_result(&run(setting, seed, 0, vec![(one, lying(&lie))]));
            let report = run(setting, seed, 2, vec![(one, lying(&lie)), (other, lying(&lie))]);
            setting.expect_result(&report);
            assert!([one, other].into_iter().all(|liar| report.blames_of(id(liar)).next().is_some()));
        }
    });
}

/// One check for each sender, whatever else it sends in the meantime and afterwards.
#[test]
fn who_sends_many_values_costs_one_check() {
    let setting = Setting::new(Suite::Cks05Ristretto255, 3, 7);
    let duties = duties(&setting);
    let (liar, standing_by) = (duties.combiners[0], duties.standing_by[0]);
    let parties = [liar, duties.combiners[1], duties.makers[0]];
    let false_ones: Vec<Bytes> = (1..6)
        .map(|by| {
            let right = right(&setting, parties);
            [&right[..2], &shifted(setting.suite, &right[2..], &Delta::plus(by))].concat().into()
        })
        .collect();
    let mut party = Party::new(&setting, standing_by);
    party.handle(Input::Start);
    for lie in &false_ones {
        party.told(liar, lie);
        assert_eq!(party.claims.len(), 1);
    }
    party.learns();
    assert_eq!(party.blamed, [(liar, "invalid_result")]);
    for lie in false_ones.iter().chain([&right(&setting, parties)]) {
        party.told(liar, lie);
        assert!(party.claims.is_empty() && party.result.is_none(), "the banned stay banned");
    }
}

/// Whoever tells a value and is no combiner is not looked at before a tick, when honest parties that were asked tell theirs; and then few are, so that many
/// liars cost no more checks than that.
#[test]
fn who_tells_a_value_unasked_waits_for_a_tick() {
    let setting = Setting::new(Suite::Cks05Ristretto255, 3, 11);
    let duties = duties(&setting);
    let (combiner, standing_by) = (duties.combiners[0], duties.standing_by[0]);
    let others: Vec<u16> = (1..=11).filter(|it| *it != standing_by && !duties.combiners.contains(it)).collect();
    let right = right(&setting, [combiner, duties.combiners[1], duties.makers[0]]);
    let lie: Bytes = [&right[..2], &shifted(setting.suite, &right[2..], &Delta::plus(1))].concat().into();
    let told_by_others = |party: &mut Party| {
        party.handle(Input::Start);
        others.iter().for_each(|liar| party.told(*liar, &lie));
        assert!(party.claims.is_empty() && party.blamed.is_empty() && party.result.is_none());
    };
    let mut party = Party::new(&setting, standing_by);
    told_by_others(&mut party);
    // A combiner is heard all the same.
    party.told(combiner, &right);
    party.learns();
    assert_eq!(party.contributors(&setting).len(), 3);

    // Nobody combines: two of those that wait are looked at after each tick, one after the other, and are named.
    let mut party = Party::new(&setting, standing_by);
    told_by_others(&mut party);
    for (tick, combiner) in (1..).zip(&duties.combiners) {
        party.handle(Input::Tick);
        // Whatever comes next; a party asks all at its ticks.
        party.told(*combiner, &lie);
        (0..3).for_each(|_| party.learns());
        assert_eq!(party.blamed.len(), 3 * tick, "{:?}", party.blamed);
    }
    assert!(party.blamed.iter().all(|(_, name)| *name == "invalid_result"));
}

/// A combiner that is restarted has forgotten whose shares it combined, and may combine others: nobody takes it for a liar, whether the first value waits for
/// the start, for its check, or has been checked.
#[test]
fn a_combiner_that_combines_others_after_a_restart_is_not_blamed() {
    each(|setting, duties| {
        let combiner = duties.combiners[0];
        let first = right(setting, [combiner, duties.combiners[1], duties.makers[0]]);
        let second = right(setting, [combiner, duties.makers[0], duties.makers[1]]);
        assert_ne!(first, second);
        let mut late = Party::new(setting, duties.standing_by[0]);
        late.told(combiner, &first);
        late.told(combiner, &second);
        late.handle(Input::Start);
        late.told(combiner, &second);
        late.learns();
        assert_eq!(late.blamed, []);
        assert!(late.contributors(setting).contains(&duties.combiners[1]), "the first counts");
        // It keeps what it was told for those that ask, and so does another that was told the other value.
        let mut other = Party::new(setting, duties.makers[0]);
        other.handle(Input::Start);
        other.told(combiner, &second);
        other.learns();
        assert_eq!((late.sent, other.sent), (vec![first], vec![second]));
    });
}

/// The values of other schemes are unique: two of them from one party are still one too many.
#[test]
fn where_values_are_unique_a_second_one_is_a_contradiction() {
    let setting = Setting::new(Suite::Bls04MinSig, 3, 7);
    let duties = duties(&setting);
    let mut party = Party::new(&setting, duties.standing_by[0]);
    party.told(duties.combiners[0], &setting.result.into());
    party.told(duties.combiners[0], &Bytes::from_static(&[7; 48]));
    assert_eq!(party.blamed, [(duties.combiners[0], "equivocation")]);
}

/// Drawn parties restart at any moment, and nobody is blamed for it.
#[test]
fn restarts_by_seed_blame_nobody() {
    let settings = SUITES.map(|suite| Setting::new(suite, 3, 6));
    let all = settings.map(|setting| (duties(&setting), setting));
    for_each_seed(600, |seed| {
        // Some start when others have been told, and restarted combiners tell them again.
        let conditions = Conditions { ticks: 2, max_start: 1_000, duplicates_per_mille: 200, ..Conditions::default() };
        let mut simulator = Simulator::new(seed, conditions);
        let (duties, setting) = &all[usize::from(below(simulator.rng(), 5) == 0)];
        for number in 1..=setting.n {
            simulator.honest(id(number), machine(setting, number));
        }
        for number in duties.combiners.iter().chain(&duties.makers) {
            for _ in 0..below(simulator.rng(), 3) {
                let time = below(simulator.rng(), 1_000);
                simulator.restart(time, id(*number), machine(setting, *number));
            }
        }
        let report = simulator.run();
        report.check_blame()?;
        let agreed = report.agreed(result_of)?;
        if agreed == setting.result { Ok(()) } else { Err(format!("{}: another coin", setting.suite)) }
    })
    .unwrap();
}
