//! Results whose check takes its time, and what comes meanwhile.

use bytes::Bytes;
use rand_core::SeedableRng;
use theta_protocols::one_round::{COMBINED, SHARE};
use theta_protocols::{AnyMachine, Ask, Misbehaviour, Options, Outcome, Supply, start, start_with};
use theta_rounds::simulator::SimRng;
use theta_rounds::{Abort, Channel, Effect, Input, Offence, Slot};
use theta_schemes::{Claim, Delivery, Suite, check_together};

use super::quorum::{Duties, duties};
use crate::one_round::support::{Setting, id};

const SUITE: Suite = Suite::Bls04MinSig;

/// A party's machine, and what it has done.
struct Party {
    machine: AnyMachine,
    rng: SimRng,
    claims: Vec<Claim>,
    blamed: Vec<u16>,
    result: Option<Result<Outcome, Abort>>,
}

impl Party {
    fn new(machine: AnyMachine) -> Self {
        let rng = SimRng::seed_from_u64(1);
        Self { machine, rng, claims: Vec::new(), blamed: Vec::new(), result: None }
    }

    fn handle(&mut self, input: Input<Supply>) {
        for effect in self.machine.handle(input, &mut self.rng) {
            match effect {
                Effect::Ask(Ask::Check(claim)) => self.claims.push(claim),
                Effect::Ask(_) => panic!("one-round protocols have no stock, and nothing follows on them"),
                Effect::Send { .. } => {}
                Effect::Blame(blame) => {
                    let expected = [Misbehaviour::InvalidShare, Misbehaviour::InvalidResult].map(Offence::Protocol);
                    assert!(expected.contains(&blame.offence), "{:?}", blame.offence);
                    self.blamed.push(blame.party.share().get());
                }
                Effect::Finished(result) => self.result = Some(result),
            }
        }
    }

    fn hears(&mut self, from: u16, slot: Slot, payload: &Bytes) {
        let payload = payload.clone();
        self.handle(Input::Message { from: id(from), slot, channel: Channel::Broadcast, payload });
    }

    /// Gives the verdict about the one result that waits for it.
    fn learns(&mut self) -> bool {
        let claims = core::mem::take(&mut self.claims);
        assert_eq!(claims.len(), 1, "it asks about one result at a time");
        let verdict = check_together(&claims, &mut self.rng)[0];
        self.handle(Input::Supply(Supply::Checked(verdict)));
        verdict
    }

    /// The contributors, if the result is the one of the setting.
    fn contributors(&self, setting: &Setting) -> Vec<u16> {
        let outcome = self.result.as_ref().unwrap().as_ref().unwrap();
        assert_eq!(outcome.result.expose(), &setting.result);
        outcome.contributors.iter().map(|index| index.get()).collect()
    }
}

/// Party 1 of four, any two, and the shares of the others, that of party 4 for another statement.
fn among_liars() -> (Setting, Party, [Bytes; 3]) {
    let setting = Setting::new(SUITE, 2, 4);
    let party = Party::new(start(&setting.public, &setting.shares[0], &setting.statement).unwrap());
    let share = |number: u16| {
        let statement = if number == 4 { &setting.other_statement } else { &setting.statement };
        let share = &setting.shares[usize::from(number) - 1];
        Bytes::from(setting.public.create_share(share, statement, &mut SimRng::seed_from_u64(2)).unwrap())
    };
    let shares = [share(2), share(3), share(4)];
    (setting, party, shares)
}

#[test]
fn shares_that_come_during_the_check_replace_a_false_one() {
    let (setting, mut party, [second, third, wrong]) = among_liars();
    party.handle(Input::Start);
    party.hears(4, SHARE, &wrong);
    assert_eq!(party.claims.len(), 1);
    party.hears(2, SHARE, &second);
    party.hears(3, SHARE, &third);
    assert!(party.result.is_none() && party.blamed.is_empty(), "nothing is known yet");
    assert!(!party.learns());
    // Whoever has seen a false result verifies shares, and asks nobody any more.
    assert!(party.claims.is_empty());
    assert_eq!(party.blamed, [4]);
    assert_eq!(party.contributors(&setting), [1, 2]);
}

#[test]
fn a_right_result_ends_it_whatever_came_meanwhile() {
    let (setting, mut party, [second, third, wrong]) = among_liars();
    party.handle(Input::Start);
    party.hears(2, SHARE, &second);
    party.hears(4, SHARE, &wrong);
    party.hears(3, SHARE, &third);
    party.handle(Input::Tick);
    assert!(party.learns());
    assert_eq!(party.contributors(&setting), [1, 2]);
    assert_eq!(party.blamed, [0; 0], "nobody looked at the wrong share");
}

#[test]
fn verdicts_that_nobody_asked_for_change_nothing() {
    let (setting, mut party, [second, ..]) = among_liars();
    for verdict in [true, false] {
        party.handle(Input::Supply(Supply::Checked(verdict)));
    }
    party.handle(Input::Start);
    for verdict in [true, false] {
        party.handle(Input::Supply(Supply::Checked(verdict)));
    }
    assert!(party.result.is_none());
    party.hears(2, SHARE, &second);
    assert!(party.learns());
    assert_eq!(party.contributors(&setting), [1, 2]);
}

#[test]
fn a_party_banned_during_the_check_is_out_of_the_next_attempt() {
    let (setting, mut party, [second, third, wrong]) = among_liars();
    party.handle(Input::Start);
    party.hears(4, SHARE, &wrong);
    party.hears(2, SHARE, &second);
    // Party 2 says something else in the same slot.
    let blames = {
        let payload = third.clone();
        party
            .machine
            .handle(Input::Message { from: id(2), slot: SHARE, channel: Channel::Broadcast, payload }, &mut party.rng)
    };
    assert!(matches!(blames.as_slice(), [Effect::Blame(blame)] if blame.party == id(2)), "{blames:?}");
    assert!(!party.learns());
    assert!(party.result.is_none());
    party.hears(3, SHARE, &third);
    assert_eq!(party.contributors(&setting), [1, 3]);
}

#[test]
fn of_two_combined_values_the_right_one_is_taken() {
    let setting = Setting::new(SUITE, 2, 6);
    let machine = |number: usize| {
        let share = &setting.shares[number - 1];
        Party::new(
            start_with(
                &setting.public,
                share,
                &setting.statement,
                Options { delivery: Delivery::Quorum, ..Options::default() },
            )
            .unwrap(),
        )
    };
    let other = Setting { result: Vec::new(), ..Setting::new(SUITE, 2, 6) };
    let share = |number: usize| {
        let share = &other.shares[number - 1];
        other.public.create_share(share, &other.other_statement, &mut SimRng::seed_from_u64(3)).unwrap()
    };
    let shares = [share(1), share(2)];
    let of = |number: usize| (other.shares[number - 1].index(), &shares[number - 1][..]);
    let combined =
        other.public.combine(&other.other_statement, &[of(1), of(2)], &mut SimRng::seed_from_u64(3)).unwrap();
    let (wrong, right) = (Bytes::copy_from_slice(combined.result.expose()), Bytes::from(setting.result.clone()));
    let Duties { combiners, standing_by, .. } = duties(&setting);
    let [liar, combiner] = combiners[..] else { panic!("two combine") };
    for number in standing_by {
        let mut party = machine(number.into());
        party.handle(Input::Start);
        party.hears(liar, COMBINED, &wrong);
        party.hears(combiner, COMBINED, &right);
        assert!(!party.learns());
        assert_eq!(party.blamed, [liar]);
        assert!(party.learns(), "the other value is looked at then");
        assert_eq!(party.contributors(&setting), [0; 0]);
    }
}
