//! Recoveries whose parties are killed at any step, with silent and lying helpers.

use std::collections::{BTreeMap, BTreeSet};

use theta_ceremonies::Input;
use theta_ceremonies::{Ceremony, CeremonyEvidence, Kind, Memory, Outcome, Statement, rewrite};
use theta_groups::Ristretto255;
use theta_rounds::PartyId;
use theta_schemes::coins::cks05::Cks05;

use crate::net::{Lie, Net, Subject, die_at_every_step, die_at_random, replay};
use crate::recovery::{Setting, falsify};
use crate::support::{found, party};

type Coin = Cks05<Ristretto255>;

impl Subject for std::sync::Arc<Setting<Coin>> {
    type Machine = Ceremony;
    type Outcome = Outcome;

    fn parties(&self) -> Vec<PartyId> {
        self.plan.parties().collect()
    }

    fn machine(&self, party: PartyId, memory: Memory, life: u8) -> Self::Machine {
        self.join(party, memory, life)
    }

    fn revision(machine: &Self::Machine) -> u64 {
        machine.revision()
    }

    fn check(&self, outcomes: &BTreeMap<PartyId, Self::Outcome>, _forgot: &BTreeSet<PartyId>) {
        for (party, outcome) in outcomes {
            assert_eq!(found(outcome).is_some(), *party == self.lost);
            for evidence in &outcome.evidence {
                assert!(!outcomes.contains_key(&evidence.culprit()), "{evidence} of an honest party");
                assert_eq!(CeremonyEvidence::decode(&evidence.encode()).as_ref(), Ok(evidence));
                assert!(evidence.verify(&self.plan));
            }
        }
        let lost = &self.shares[usize::from(self.lost.get()) - 1];
        let found = found(&outcomes[&self.lost]).unwrap();
        assert_eq!(found.secret.expose(), lost.encoded().secret.expose());
    }
}

/// Sends no statement of a kind.
fn without(kind: Kind) -> Lie {
    Box::new(move |payload| {
        let kept = |statement: Statement| if statement.slot().kind == kind { Vec::new() } else { vec![statement] };
        rewrite(payload, kept).unwrap()
    })
}

fn silent() -> Lie {
    Box::new(|_| Vec::new())
}

/// Party 2 of 7 has lost its share; 3 helpers are enough.
fn start(seed: u64, liars: impl Fn(&Setting<Coin>) -> Vec<(PartyId, Lie)>) -> Net<std::sync::Arc<Setting<Coin>>> {
    let setting = Setting::new(3, 7, 2, u8::try_from(seed % 256).unwrap());
    let liars = liars(&setting);
    Net::with_liars(std::sync::Arc::new(setting), seed, liars)
}

/// One helper is silent; one gives false answers, or false masks to the last of the members.
fn silent_and_lying(kind: Kind) -> impl Fn(&Setting<Coin>) -> Vec<(PartyId, Lie)> {
    move |setting| vec![(party(1), silent()), (party(4), Box::new(falsify(setting, party(4), kind, 5)))]
}

#[test]
fn owner_and_helper_may_die_at_every_step() {
    for unlucky in [2, 5] {
        die_at_every_step(party(unlucky), || start(1, |_| Vec::new()));
    }
}

#[test]
fn they_may_die_at_every_step_among_silent_and_lying_helpers() {
    for unlucky in [2, 5] {
        for kind in [Kind::Answer, Kind::Dealing] {
            die_at_every_step(party(unlucky), || start(2, silent_and_lying(kind)));
        }
    }
}

#[test]
fn everybody_may_die_many_times() {
    let mut deaths = 0;
    for seed in 0..10 {
        deaths += die_at_random(start(seed, |_| Vec::new()));
        let kind = if seed % 2 == 0 { Kind::Answer } else { Kind::Dealing };
        deaths += die_at_random(start(100 + seed, silent_and_lying(kind)));
    }
    assert!(deaths > 60, "{deaths}");
}

#[test]
fn liars_are_named_by_their_owner_after_it_died() {
    let mut named = std::collections::BTreeSet::new();
    for seed in 0..8 {
        for kind in [Kind::Answer, Kind::Dealing] {
            let mut net = start(seed, silent_and_lying(kind));
            while net.node(party(2)).steps < 20 && net.turn() {}
            net.revive(party(2));
            net.finish();
            let outcome = net.node(party(2)).outcome.as_ref().unwrap();
            assert!(outcome.silent.contains(&party(1)));
            assert!(outcome.evidence.iter().all(|evidence| evidence.culprit() == party(4)));
            named.extend(outcome.evidence.iter().map(theta_rounds::Evidence::name));
        }
    }
    assert_eq!(Vec::from_iter(named), ["false_answer", "false_dealing"]);
}

/// Helpers that accept and do not answer, or do not even accept, are left out of the next attempt and listed as silent.
#[test]
fn helpers_that_hold_a_recovery_up_are_left_out() {
    for seed in 0..8 {
        // Of six helpers three have to answer, and one accepts nothing.
        let mut net = start(seed, |_| vec![(party(1), without(Kind::Accepted)), (party(4), without(Kind::Answer))]);
        net.finish();
        let outcome = net.node(party(2)).outcome.as_ref().unwrap();
        assert_eq!(outcome.silent, [party(1)]);
        assert!(outcome.evidence.is_empty());
    }
    for seed in 0..8 {
        // Of four helpers three have to answer.
        let setting = Setting::<Coin>::new(3, 5, 2, 40 + u8::try_from(seed).unwrap());
        let liars = vec![(party(4), without(Kind::Answer))];
        let mut net = Net::with_liars(std::sync::Arc::new(setting), seed, liars);
        net.finish();
        assert!(net.node(party(2)).outcome.as_ref().unwrap().evidence.is_empty());
    }
}

#[test]
fn a_replay_is_exact() {
    let mut net = start(7, silent_and_lying(Kind::Answer));
    net.finish();
    for id in [2, 5].map(party) {
        let journal = net.node(id).journal.clone();
        assert_eq!(replay(&net.subject, id, &journal), replay(&net.subject, id, &journal));
    }
}

/// A helper that lost its journal only listens, since it might contradict itself; the others are enough.
#[test]
fn a_helper_that_forgot_looks_on() {
    for when in [1, 4, 9, 16, 25] {
        let mut net = start(when, |_| vec![(party(1), silent())]);
        let steps = usize::try_from(when).unwrap();
        while net.node(party(3)).steps < steps && net.turn() {}
        net.forget(party(3), Memory::Lost);
        net.step(party(3), Input::Start);
        net.finish();
    }
}

/// An owner that lost its journal asks anew, and recovers its share.
#[test]
fn an_owner_that_forgot_asks_anew() {
    for when in 1..40 {
        let mut net = start(u64::try_from(when).unwrap(), |_| Vec::new());
        while net.node(party(2)).steps < when && net.turn() {}
        net.forget(party(2), Memory::Lost);
        net.step(party(2), Input::Start);
        net.finish();
    }
}
