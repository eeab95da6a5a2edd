//! Lies that have an effect only if something else goes wrong as well: the liars are named all the same.

use std::collections::BTreeSet;

use theta_ceremonies::CeremonyEvidence;
use theta_groups::Ristretto255;
use theta_rounds::PartyId;
use theta_rounds::simulator::{Conditions, Simulator};
use theta_schemes::coins::cks05::Cks05;
use theta_schemes::coins::cks05_bls::{BeaconMinSig, Cks05Bls};
use theta_schemes::keys::CurveScheme;
use theta_schemes::signatures::bls04::{Bls04, Bn254MinSig, MinPk, MinSig};

use crate::lies::{Lie, liar_to};
use crate::support::{Setting, parties, party, patient};

type Coin = Cks05<Ristretto255>;
type Names = BTreeSet<(PartyId, PartyId, &'static str)>;

/// A message that comes after everything that does not wait for it.
const LATE: u64 = 5_000;

fn sound() -> Conditions {
    Conditions { loss_per_mille: 0, duplicates_per_mille: 0, ..patient() }
}

/// Runs it; returns who named whom for what. Checks all evidence with the plan and the bytes alone.
fn names<S: CurveScheme>(
    setting: &Setting<S>,
    seed: u64,
    liars: &[(PartyId, Lie, PartyId)],
    slow: &[(PartyId, PartyId, u64)],
) -> Names {
    let mut simulator = Simulator::new(seed, sound());
    for id in setting.plan.parties() {
        match liars.iter().find(|(liar, ..)| *liar == id) {
            None => simulator.honest(id, setting.boxed(id)),
            Some((_, lie, victim)) => {
                simulator.byzantine(id, setting.boxed(id), liar_to(setting, id, *lie, *victim));
            }
        }
    }
    slow.iter().for_each(|(from, to, delay)| simulator.hold_back(*from, *to, *delay));
    let report = simulator.run();
    let mut names = Names::new();
    for (by, party) in report.honest() {
        let Some(Ok(outcome)) = &party.result else { panic!("{by} waits") };
        for evidence in &outcome.evidence {
            let read = CeremonyEvidence::decode(&evidence.encode()).unwrap();
            assert!(read.verify(&setting.plan));
            let name = theta_rounds::Evidence::name(&read);
            assert!(party.blames.iter().any(|blame| blame.party == read.culprit() && blame.offence.name() == name));
        }
        // Some liars are caught after it has finished.
        names.extend(party.blames.iter().map(|blame| (by, blame.party, blame.offence.name())));
    }
    setting.check(report).unwrap();
    names
}

/// Dealer 1 deals falsely to member 7, which notices when the dealings are decided. The others release their values,
/// and 2 releases false ones. Only 7 needs them, so only 7 checks them.
#[test]
fn who_releases_what_was_not_dealt_is_named() {
    let mut named = 0;
    for seed in 0..6 {
        let setting = Setting::<Coin>::generate(3, 7, seed);
        let (dealer, releaser, victim) = (party(1), party(2), party(7));
        let mut slow = vec![(dealer, victim, 4 * LATE)];
        slow.extend(parties(3..=6).into_iter().map(|other| (other, victim, LATE)));
        let liars = [(dealer, Lie::BadShareToOne, victim), (releaser, Lie::FalseRelease, victim)];
        let names = names(&setting, seed, &liars, &slow);
        named += u32::from(names.contains(&(victim, releaser, "false_release")));
        assert!(names.contains(&(party(3), dealer, "false_dealing")), "{names:?}");
        assert!(names.iter().all(|(_, culprit, _)| [dealer, releaser].contains(culprit)), "{names:?}");
    }
    // Nothing is released if the false dealing is not in the decided set, as when 7 leads the view.
    assert!(named >= 2, "{named}");
}

/// A party may receive a false share of the proof of possession before it has enough true ones, or after.
fn who_proves_possession_falsely_is_named<S: CurveScheme>() {
    for (seed, late) in [(0, false), (1, true)] {
        let setting = Setting::<S>::generate(2, 4, seed);
        let (liar, witness) = (party(2), party(4));
        let slow = [1, 3].map(|other| (if late { liar } else { party(other) }, witness, LATE));
        let names = names(&setting, seed, &[(liar, Lie::FalseProofOfPossession, witness)], &slow);
        assert!(names.contains(&(witness, liar, "false_proof_of_possession")), "late {late}: {names:?}");
        assert!(names.iter().all(|(_, culprit, _)| *culprit == liar), "{names:?}");
    }
}

#[test]
fn who_proves_possession_falsely_is_named_in_every_scheme_that_needs_it() {
    who_proves_possession_falsely_is_named::<Bls04<MinPk>>();
    who_proves_possession_falsely_is_named::<Bls04<MinSig>>();
    who_proves_possession_falsely_is_named::<Bls04<Bn254MinSig>>();
    who_proves_possession_falsely_is_named::<Cks05Bls<BeaconMinSig>>();
}

/// A false verification key is named even by those that have enough true ones already.
#[test]
fn a_false_key_that_comes_late_is_named() {
    let setting = Setting::<Coin>::generate(2, 4, 1);
    let slow = [(party(2), party(4), LATE)];
    let names = names(&setting, 1, &[(party(2), Lie::FalseKey, party(4))], &slow);
    assert!(names.contains(&(party(4), party(2), "false_key")), "{names:?}");
}
