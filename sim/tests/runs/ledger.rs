//! The group's ledger: nobody honest disagrees about it, everything in it ends, and clients believe nothing that was not certified.

use std::collections::BTreeMap;

use theta_schemes::Suite;
use theta_sim::{
    Aim, Behaviour, Fault, Invariant, LedgerLie, Observation, Observations, Planned, Sabotage, Scenario, run,
};

use crate::seeds;
use crate::setting::{invariant, quiet};

/// One of so many seeds of [`crate::all_holds_in_thousands_of_runs`] is run as a scenario about the ledger.
const SHARE: u64 = 8;

/// Four members, a ceremony, and one of them lies all the time.
fn with_liar(seed: u64, lie: LedgerLie) -> Scenario {
    let mut scenario = quiet(seed, Suite::Cks05Ristretto255);
    scenario.kept = true;
    scenario.requests.clear();
    scenario.ceremonies = vec![Planned { at: 1_500, aim: Aim::Refresh(0) }];
    scenario.liars.insert(1 + u16::try_from(seed % 4).unwrap(), Behaviour::Ledger(lie));
    scenario
}

#[test]
fn all_holds_in_many_ledgers() {
    let mut observations = Observations::default();
    for seed in 0..(seeds() / SHARE).max(1) {
        let outcome = run(&Scenario::of_ledger(seed), false);
        assert_eq!(outcome.violation, None, "replay with: cargo run -p theta-sim -- --ledger --trace --seed {seed}");
        observations.absorb(&outcome.observations);
    }
    assert!(observations.count(Observation::Begun) > 0 && observations.count(Observation::Followed) > 0);
}

#[test]
fn every_lie_in_the_ledger_is_told_and_changes_nothing() {
    let mut told: BTreeMap<&str, u64> = BTreeMap::new();
    for lie in LedgerLie::ALL {
        for seed in 0..4 {
            let outcome = run(&with_liar(seed, lie), false);
            assert_eq!(outcome.violation, None, "{lie:?}, seed {seed}");
            assert_eq!(outcome.observations.count(Observation::Activated), 1, "{lie:?}, seed {seed}");
            outcome.observations.lies().for_each(|(kind, times)| *told.entry(kind).or_default() += times);
        }
    }
    for lie in LedgerLie::ALL {
        assert!(told.contains_key(lie.name()), "{lie:?} was never told: {told:?}");
    }
}

#[test]
fn clients_are_told_false_entries_and_believe_none() {
    let mut refused = 0;
    for seed in 0..6 {
        let outcome = run(&with_liar(seed, LedgerLie::FalseCertificates), false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert!(outcome.observations.count(Observation::Followed) > 0, "seed {seed}: no client followed");
        refused += outcome.observations.count(Observation::FalseAnswer);
    }
    assert!(refused > 0);
}

#[test]
fn a_client_that_looks_at_no_votes_is_caught() {
    let caught = (0..20).any(|seed| {
        let sound = with_liar(seed, LedgerLie::FalseCertificates);
        let broken = run(&Scenario { sabotage: Some(Sabotage::Credulous), ..sound }, false);
        // Either it believes something else than the others, or something for which nobody has voted.
        matches!(invariant(&broken), Some(Invariant::Certified | Invariant::Ledger))
    });
    assert!(caught);
}

/// It was away while keys and ceremonies were decided, and comes back when nobody asks for anything any more.
#[test]
fn a_member_that_was_away_learns_everything() {
    for seed in 0..4 {
        let mut scenario = with_liar(seed, LedgerLie::Repeats);
        scenario.liars.clear();
        scenario.faults = vec![Fault::Crash { at: 50, until: 12_000, node: 3, writes: u64::MAX }];
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        // It has no share of the new epoch, and all that is public.
        assert_eq!((outcome.observations.count(Observation::Activated), outcome.shares), (1, 3), "seed {seed}");
    }
}

/// The owner of a lost share goes away in the middle: the others decide that nothing comes of it, and it learns so.
#[test]
fn a_ceremony_that_cannot_go_on_ends_when_a_quorum_is_connected() {
    let mut aborted = 0;
    for seed in 0..4 {
        let mut scenario = with_liar(seed, LedgerLie::Repeats);
        scenario.liars.clear();
        scenario.keys[0].lost_by = Some(3);
        scenario.ceremonies = vec![Planned { at: 1_500, aim: Aim::Recover(0, 3) }];
        let at = 2_050 + 30 * seed;
        scenario.faults = vec![Fault::Crash { at, until: 60_000, node: 3, writes: u64::MAX }];
        scenario.end = 100_000;
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        assert_eq!(outcome.observations.count(Observation::Begun), 1, "seed {seed}");
        aborted += outcome.observations.count(Observation::Aborted);
    }
    assert!(aborted > 0);
}

/// While nobody has a quorum nothing is decided; everything is when there is one again.
#[test]
fn after_a_long_parting_everything_ends() {
    for seed in 0..3 {
        let mut scenario = with_liar(seed, LedgerLie::Repeats);
        scenario.liars.clear();
        scenario.weather.delay = 100;
        scenario.faults = vec![Fault::Partition { at: 2_000 + 150 * seed, until: 30_000, side: [1, 2].into() }];
        (scenario.calm, scenario.end) = (30_000, 120_000);
        let outcome = run(&scenario, false);
        assert_eq!(outcome.violation, None, "seed {seed}");
        // What was asked for has begun and ended, or was given up by all, since too few agreed to it in time.
        let (begun, over) =
            (outcome.observations.count(Observation::Begun), outcome.observations.count(Observation::Activated));
        assert_eq!((outcome.observations.count(Observation::Adopted), begun), (1, over), "seed {seed}");
    }
}

/// Under a warrant, with leaders that show their proposals to some alone, and with operators who replace the machine for which a share is being
/// recovered: in these runs something was not decided in five minutes, until votes that do not count let time pass and such recoveries ended.
#[test]
fn what_waited_for_ever_is_decided() {
    for seed in [2_937, 5_553, 9_092, 17_939, 19_620] {
        let outcome = run(&Scenario::of_ledger(seed), false);
        assert_eq!(outcome.violation, None, "replay with: cargo run -p theta-sim -- --ledger --trace --seed {seed}");
    }
}

/// A node whose store was emptied is sent the second version of a key before the first: its store takes both. Disks that fail for two reasons
/// have failed (15,193), and where honest nodes are no quorum a run may end before all have heard of new shares (15,737, 17,840 and 35,301).
/// Members whose clocks are 55 hours apart decide nothing where all are needed (56,062). A node whose vote is the last that an entry lacks has the
/// entry before anybody has heard of that vote (63,534).
#[test]
fn what_is_no_fault_raises_no_alarm() {
    for seed in [4_935, 15_193, 15_737, 17_840, 35_301, 56_062, 63_534] {
        let outcome = run(&Scenario::of_ledger(seed), false);
        assert_eq!(outcome.violation, None, "replay with: cargo run -p theta-sim -- --ledger --trace --seed {seed}");
    }
}

/// A node's disk is put back to a copy from the middle of a recovery. What it says in that ceremony when it is back was another thing than
/// what it had said after the copy was made, until it waited for its peers to confirm its store, and they knew how far it had been.
#[test]
fn a_store_put_back_in_the_middle_of_a_ceremony_contradicts_nothing() {
    for seed in [46_900, 87_759] {
        let outcome = run(&Scenario::of_ledger(seed), false);
        assert_eq!(outcome.violation, None, "replay with: cargo run -p theta-sim -- --ledger --trace --seed {seed}");
    }
}

/// A node goes down while it helps to make a key's next version, and finds when it is back that the group has made one more: its share of the first
/// is of use all the same.
#[test]
fn a_version_that_a_node_finishes_late_is_used_there() {
    let outcome = run(&Scenario::of_ledger(68_108), false);
    assert_eq!(outcome.violation, None, "replay with: cargo run -p theta-sim -- --ledger --trace --seed 68108");
}
