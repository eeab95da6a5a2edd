//! A signature that comes while holders compute one of their own: their program has its end first. Otherwise whoever has a signature could have what
//! honest holders have set up thrown away, request by request.

use std::collections::VecDeque;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::Outcome;
use theta_protocols::ecdsa::{PROGRAM, SIGNATURE};
use theta_rounds::{Abort, Channel, Effect, Input, Recipient, Slot};
use theta_schemes::{Delivery, Suite};

use super::support::{Group, id};
use crate::supplied::SuppliedMachine;

/// The round in which the third holder says that it has a signature.
const ROUND: u16 = 10;

/// Two holders of three in a program that the first coordinates, on a set-up that they have from before.
struct Pair {
    group: Group,
    machines: [SuppliedMachine; 2],
    results: [Option<Result<Outcome, Abort>>; 2],
    message: [u8; 1],
    rng: ChaCha8Rng,
}

impl Pair {
    fn new(delivery: Delivery) -> Self {
        let group = group(delivery);
        let message = group.message_of(1);
        group.check(&message, &group.run(&message, 1, Vec::new())).unwrap();
        assert_eq!(ready(&group), [1, 1, 0]);
        let machines = [group.machine(1, &message), group.machine(2, &message)];
        Self { group, machines, results: [None, None], message, rng: ChaCha8Rng::seed_from_u64(2) }
    }

    /// The two run it. When the first has sent something in [`ROUND`], both hear of a signature from the third; the second sends nothing in or after
    /// this round.
    fn play(&mut self, silent_from: u16) {
        let mut waiting: VecDeque<(usize, Input<_>)> = [(0, Input::Start), (1, Input::Start)].into();
        let mut early = Some(signature(self.group.delivery, &self.message));
        while let Some((place, input)) = waiting.pop_front() {
            for effect in self.machines[place].handle(input, &mut self.rng) {
                let (to, slot, channel, payload) = match effect {
                    Effect::Send { to, slot, channel, payload } => (to, slot, channel, payload),
                    Effect::Finished(result) => {
                        self.results[place] = Some(result);
                        continue;
                    }
                    _ => continue,
                };
                let round = if slot.kind < PROGRAM { 0 } else { u16::from_be_bytes([payload[2], payload[3]]) };
                let number = if place == 0 { 1 } else { 2 };
                let is_meant = match to {
                    Recipient::All => true,
                    Recipient::Party(party) => party == id(3 - number),
                    Recipient::OnRequest => false,
                };
                if is_meant && (place == 0 || round < silent_from) {
                    waiting.push_back((1 - place, Input::Message { from: id(number), slot, channel, payload }));
                }
                if round == ROUND
                    && let Some(payload) = early.take()
                {
                    let slot = Slot { kind: SIGNATURE, number: 1 };
                    let said =
                        || Input::Message { from: id(3), slot, channel: Channel::Broadcast, payload: payload.clone() };
                    waiting.extend([(0, said()), (1, said())]);
                }
            }
        }
        assert!(early.is_none(), "it has come");
    }

    /// Lets time pass at the first until it ends; returns how many ticks that took.
    fn ticks(&mut self) -> usize {
        let ticks = (1..60).find(|_| {
            let effects = self.machines[0].handle(Input::Tick, &mut self.rng);
            let finished = |effect| if let Effect::Finished(result) = effect { Some(result) } else { None };
            self.results[0] = effects.into_iter().find_map(finished);
            self.results[0].is_some()
        });
        ticks.unwrap()
    }

    fn check(&self, place: usize) {
        let Some(Ok(outcome)) = &self.results[place] else { panic!("no result at {place}") };
        self.group.public.verify(&self.message, outcome.result.expose(), &outcome.proof).unwrap();
    }
}

fn group(delivery: Delivery) -> Group {
    let mut group = Group::new(Suite::EcdsaP256, 2, 3);
    group.delivery = delivery;
    group
}

fn ready(group: &Group) -> Vec<usize> {
    group.stocks.iter().map(|stock| stock.set_ups().ready()).collect()
}

/// A signature that others have made of this message, as a holder tells it.
fn signature(delivery: Delivery, message: &[u8]) -> Bytes {
    let others = group(delivery);
    let report = others.run(message, 7, Vec::new());
    let Some(Ok(outcome)) = &report.parties[&id(3)].result else { panic!("no signature") };
    let mut payload = outcome.result.expose().clone();
    payload.extend(u16::try_from(outcome.contributors.len()).unwrap().to_be_bytes());
    outcome.contributors.iter().for_each(|index| payload.extend(index.get().to_be_bytes()));
    payload.into()
}

const BOTH: [Delivery; 2] = [Delivery::DishonestMajority, Delivery::PassiveDishonestMajority];

#[test]
fn who_has_a_signature_first_takes_no_set_up_of_others_away() {
    for delivery in BOTH {
        let mut pair = Pair::new(delivery);
        pair.play(u16::MAX);
        [0, 1].into_iter().for_each(|place| pair.check(place));
        assert_eq!(ready(&pair.group), [1, 1, 0], "{delivery:?}");
    }
}

/// A cheat may see before the others that it will be found out. That a signature comes just then gives it no further guess.
#[test]
fn a_signature_excuses_no_silence() {
    for delivery in BOTH {
        let mut pair = Pair::new(delivery);
        pair.play(ROUND + 2);
        assert!(pair.results[0].is_none(), "the program could go on");
        let ticks = pair.ticks();
        assert!((1..=2).contains(&ticks), "{ticks} ticks");
        pair.check(0);
        assert_eq!(ready(&pair.group)[0], 0, "{delivery:?}");
        assert!(pair.group.stocks[0].quarantined().is_empty());
    }
}

/// The end of a request is no reason to say that there is no signature.
#[test]
fn a_request_whose_time_is_over_has_its_signature() {
    let mut pair = Pair::new(Delivery::DishonestMajority);
    pair.play(ROUND + 2);
    let finished = |effect| if let Effect::Finished(result) = effect { Some(result) } else { None };
    pair.results[0] = pair.machines[0].rest().into_iter().find_map(finished);
    pair.check(0);
    assert_eq!(ready(&pair.group)[0], 0);
}
