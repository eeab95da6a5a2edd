//! Keys with passive security: they sign, their holders refuse whoever believes in another security, and what they have made serves no other key.

use std::sync::{Arc, Mutex};

use theta_protocols::ecdsa::{PROGRAM, SHARE};
use theta_rounds::simulator::Behaviour;
use theta_schemes::{Delivery, Suite};

use super::support::{Group, LEVEL, Liar, id, tamper};

/// The kinds of all messages in a run.
fn kinds(group: &Group, message: &[u8], seed: u64) -> Vec<u16> {
    let kinds: Arc<Mutex<Vec<u16>>> = Arc::default();
    let spy = |number: u16| -> Liar {
        let kinds = Arc::clone(&kinds);
        let spy = tamper(move |slot, payload| {
            kinds.lock().unwrap().push(slot.kind);
            vec![(slot, payload)]
        });
        (number, spy)
    };
    drop(group.run(message, seed, (1..=group.n).map(spy).collect()));
    let kinds = kinds.lock().unwrap();
    kinds.clone()
}

#[test]
fn a_group_signs_on_demand_and_from_stock() {
    for suite in [Suite::EcdsaP256, Suite::EcdsaSecp256k1] {
        for (k, n) in [(2, 3), (2, 4), (3, 5)] {
            let group = Group::passive(suite, k, n);
            group.check(b"m", &group.run(b"m", 1, Vec::new())).unwrap();
            assert!(group.ready().iter().filter(|ready| **ready == LEVEL).count() >= 2 * usize::from(k) - 1);
        }
        let group = Group::passive(suite, 2, 3);
        assert!(Group::filled_by(&group.fill((1, 5), &[], Vec::new())).iter().all(|holders| holders.len() == 3));
        assert_eq!(group.ready(), [LEVEL; 3]);
        assert!(kinds(&group, b"m", 1).iter().all(|kind| *kind < PROGRAM), "no program runs");
        group.check(b"n", &group.run(b"n", 2, Vec::new())).unwrap();
        assert_eq!(group.ready(), [LEVEL - 2; 3]);
    }
}

#[test]
fn exactly_k_holders_sign_by_oblivious_transfer() {
    for suite in [Suite::EcdsaP256, Suite::EcdsaSecp256k1] {
        for (k, n) in [(2, 2), (2, 3), (3, 3), (3, 5)] {
            let group = Group::passive_dishonest(suite, k, n);
            let report = group.run(b"m", 1, Vec::new());
            group.check(b"m", &report).unwrap();
            for (_, party) in report.honest() {
                let Some(Ok(outcome)) = &party.result else { panic!("no result") };
                assert_eq!(outcome.contributors.len(), usize::from(k), "{k} of {n}");
            }
        }
    }
}

#[test]
fn others_sign_without_a_silent_holder() {
    for silent in 1..=3 {
        for mut group in [Group::passive(Suite::EcdsaP256, 2, 4), Group::passive_dishonest(Suite::EcdsaP256, 2, 3)] {
            group.ticks = 40;
            let report = group.run(b"m", silent.into(), vec![(silent, Box::new(Behaviour::Silent))]);
            group.check(b"m", &report).unwrap();
        }
    }
}

/// Without checks a holder that begins anew in the middle would spoil values unseen: nothing of its second life is heard in a program of the first.
#[test]
fn a_restart_in_the_middle_spoils_nothing() {
    for seed in 0..20 {
        for mut group in [Group::passive(Suite::EcdsaP256, 2, 4), Group::passive_dishonest(Suite::EcdsaP256, 2, 3)] {
            group.ticks = 60;
            let mut simulator = group.simulator(seed);
            for number in 1..=group.n {
                simulator.honest(id(number), group.machine(number, b"m"));
            }
            simulator.restart(30 * seed, id(2), group.restarted(2, b"m"));
            group.check(b"m", &simulator.run()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(group.stocks.iter().all(|stock| stock.quarantined().is_empty()), "seed {seed}");
        }
    }
}

/// A liar that flips a bit of what it sends in one round of each program.
fn lie_in(round: u16) -> Box<dyn theta_rounds::simulator::Adversary> {
    tamper(move |slot, payload| {
        let mut payload = payload.to_vec();
        let is_meant = slot.kind >= PROGRAM && payload.len() > 4 && payload[2..4] == round.to_be_bytes();
        if let Some(last) = payload.last_mut().filter(|_| is_meant) {
            *last ^= 1;
        }
        vec![(slot, payload.into())]
    })
}

/// Where nothing is verified, a liar can make an honest share look false; so nobody is named for one, and no false signature comes out.
#[test]
fn a_liar_gets_nobody_blamed() {
    for round in 1..=20 {
        for liar in 1..=3 {
            let group = Group::passive(Suite::EcdsaP256, 2, 3);
            group.check_safe(b"m", &group.run(b"m", round.into(), vec![(liar, lie_in(round))])).unwrap();
        }
    }
}

/// All holders must agree on the security. Whoever believes in another one makes nothing with the others, and is not blamed for that.
#[test]
fn a_holder_that_believes_in_another_security_is_refused() {
    for (delivery, other) in [(Delivery::All, Delivery::Passive), (Delivery::Passive, Delivery::All)] {
        for number in 1..=3 {
            let mut group = Group::cold(Suite::EcdsaP256, 2, 3);
            (group.delivery, group.mistaken) = (delivery, Some((number, other)));
            let report = group.run(b"m", 1, Vec::new());
            group.check_safe(b"m", &report).unwrap();
            assert!(report.honest().all(|(_, party)| !matches!(party.result, Some(Ok(_)))));
            assert_eq!(group.ready(), [0; 3]);
        }
    }
    let mut group = Group::passive_dishonest(Suite::EcdsaP256, 2, 2);
    group.mistaken = Some((2, Delivery::DishonestMajority));
    let report = group.run(b"m", 1, Vec::new());
    group.check_safe(b"m", &report).unwrap();
    assert!(report.honest().all(|(_, party)| !matches!(party.result, Some(Ok(_)))));
    assert!(
        group.stocks.iter().all(|stock| stock.quarantined().is_empty()),
        "whoever only means something else is no cheat"
    );
}

/// Presignatures that were made with one security sign for no key of the other, if by a mistake of ours one comes to it.
#[test]
fn presignatures_of_another_security_are_thrown_away() {
    for (made, asked) in [(Delivery::Passive, Delivery::All), (Delivery::All, Delivery::Passive)] {
        let mut group = Group::cold(Suite::EcdsaP256, 2, 3);
        group.delivery = made;
        group.check(b"first", &group.run(b"first", 99, Vec::new())).unwrap();
        assert_eq!(group.ready(), [LEVEL; 3]);
        group.delivery = asked;
        assert!(!kinds(&group, b"m", 1).contains(&SHARE), "no share leaves");
    }
}

/// Whoever coordinates and finds one of those begins a program at once: no tick has to pass first.
#[test]
fn where_a_presignature_is_thrown_away_a_program_signs_at_once() {
    for (made, asked) in [(Delivery::Passive, Delivery::All), (Delivery::All, Delivery::Passive)] {
        let mut group = Group::cold(Suite::EcdsaP256, 2, 3);
        group.delivery = made;
        group.check(b"first", &group.run(b"first", 99, Vec::new())).unwrap();
        (group.delivery, group.ticks) = (asked, 0);
        let thrown_away = group.ready();
        group.check(b"m", &group.run(b"m", 1, Vec::new())).unwrap();
        assert_ne!(group.ready(), thrown_away, "one was drawn, and the program has made others");
    }
}
