//! Among more than forty parties, a few pass on what each of them says, and nobody depends on these.

use std::collections::{BTreeMap, BTreeSet};

use theta_ceremonies::{CeremonyPlan, ITEMS, Input, Kind, Memory, statements_of};
use theta_groups::Ristretto255;
use theta_rounds::simulator::{Conditions, Simulator};
use theta_rounds::{Channel, Effect, PartyId, Recipient};
use theta_schemes::coins::cks05::Cks05;

use crate::support::{Setting, patient};

type Coin = Cks05<Ristretto255>;

const N: u16 = 42;

fn relays(plan: &CeremonyPlan) -> BTreeSet<PartyId> {
    let parties: Vec<PartyId> = plan.parties().collect();
    let numbers = plan.id().as_bytes().chunks(2).take(4);
    numbers.map(|number| parties[usize::from(u16::from_be_bytes([number[0], number[1]])) % parties.len()]).collect()
}

#[test]
fn keys_go_to_relays_which_pass_on_many_together() {
    let setting = Setting::<Coin>::generate(3, N, 5);
    let relays = relays(&setting.plan);
    let mut machines: BTreeMap<PartyId, _> =
        setting.plan.parties().map(|party| (party, setting.machine(party, Memory::Kept, 0))).collect();
    let mut first = *relays.first().unwrap();
    let mut keys = Vec::new();
    for (party, machine) in &mut machines {
        let mut told = BTreeSet::new();
        for effect in machine.take(Input::Start) {
            let Effect::Send { to, slot: ITEMS, payload, .. } = effect else { continue };
            let all = to == Recipient::All;
            assert_eq!(all, relays.contains(party), "{party}");
            if let Recipient::Party(relay) = to {
                told.insert(relay);
                keys.push((*party, relay, payload));
            }
        }
        assert!(relays.contains(party) || told == relays, "{party}");
    }
    // A quarter of them together, and the rest with the next tick.
    for relay in relays {
        first = relay;
        let machine = machines.get_mut(&relay).unwrap();
        let mut passed = Vec::new();
        let own = keys.iter().filter(|(_, to, _)| *to == relay);
        for (from, _, payload) in own {
            let (slot, channel) = (ITEMS, Channel::Broadcast);
            passed.extend(machine.take(Input::Message { from: *from, slot, channel, payload: payload.clone() }));
        }
        let early = passed.len();
        passed.extend(
            machine
                .take(Input::Tick)
                .into_iter()
                .filter(|effect| matches!(effect, Effect::Send { slot: ITEMS, to: Recipient::All, .. })),
        );
        let mut authors = BTreeSet::new();
        for effect in &passed {
            let Effect::Send { payload, .. } = effect else { panic!("something else than messages") };
            let keys = statements_of(payload).filter(|statement| statement.slot().kind == Kind::EncryptionKey);
            authors.extend(keys.map(|statement| statement.author()));
        }
        assert!((3..=4).contains(&early) && passed.len() <= early + 1, "{early} and {}", passed.len());
        assert_eq!(authors.len(), keys.iter().filter(|(_, to, _)| *to == relay).count());
    }
    // What a relay passes on is news elsewhere; and what it hears from another relay it does not pass on.
    let sender = keys[0].0;
    let (slot, channel, payload) = (ITEMS, Channel::Broadcast, keys[0].2.clone());
    let other = *machines.keys().find(|party| **party != first && **party != sender).unwrap();
    let mut machine = setting.machine(first, Memory::Kept, 0);
    machine.take(Input::Start);
    machine.take(Input::Message { from: other, slot, channel, payload });
    let sent = machine.take(Input::Tick);
    assert!(!sent.iter().any(|effect| matches!(effect, Effect::Send { slot: ITEMS, to: Recipient::All, .. })));
}

#[test]
fn relays_may_be_silent() {
    for (silent, ticks) in [(false, 12), (true, 40)] {
        let setting = Setting::<Coin>::generate(5, N, 6);
        let relays = relays(&setting.plan);
        let mut simulator = Simulator::new(3, Conditions { ticks, ..patient() });
        for party in setting.plan.parties().filter(|party| !(silent && relays.contains(party))) {
            simulator.honest(party, setting.boxed(party));
        }
        setting.check(simulator.run()).unwrap_or_else(|why| panic!("silent: {silent}: {why}"));
    }
}

/// With loss on every link, and with all relays silent.
#[test]
fn relays_are_not_needed_under_loss() {
    let setting = Setting::<Coin>::generate(5, N, 7);
    let relays = relays(&setting.plan);
    let conditions = Conditions { loss_per_mille: 200, ticks: 60, ..patient() };
    let mut simulator = Simulator::new(4, conditions);
    for party in setting.plan.parties().filter(|party| !relays.contains(party)) {
        simulator.honest(party, setting.boxed(party));
        simulator.lossy(party);
    }
    setting.check(simulator.run()).unwrap();
}
