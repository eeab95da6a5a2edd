//! Liars that show different things to different parties: what one party knows of them, the others do not.

use bytes::Bytes;
use theta_ceremonies::{ITEMS, Kind, Statement, rewrite};
use theta_groups::Ristretto255;
use theta_rounds::PartyId;
use theta_rounds::simulator::{Adversary, Conditions, HonestSend, SimRng, Simulator, for_each_seed};
use theta_schemes::coins::cks05::Cks05;

use crate::lies::{Liar, Lie, liar_to};
use crate::support::{Setting, patient};

type Coin = Cks05<Ristretto255>;

/// What a liar shows to its victim, and what to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Face {
    /// The victim gets another dealing before the one that all get. The liar says nothing after the decision.
    BothToOne,
}

struct TwoFaced {
    liar: Liar<Ristretto255>,
    own: PartyId,
    victim: PartyId,
    face: Face,
}

impl TwoFaced {
    fn tell(&self, to: PartyId, honest: Statement) -> Vec<Statement> {
        if honest.author() != self.own {
            return vec![honest];
        }
        match (self.face, honest.slot().kind) {
            (Face::BothToOne, Kind::Key | Kind::Activation | Kind::Release) => Vec::new(),
            (Face::BothToOne, Kind::Dealing) if to == self.victim => {
                let other = self.liar.spoil(honest.body(), &[self.victim]);
                vec![self.liar.sign(honest.slot(), other), honest]
            }
            _ => vec![honest],
        }
    }
}

impl Adversary for TwoFaced {
    fn on_send(&mut self, _rng: &mut SimRng, to: PartyId, honest: HonestSend) -> Vec<HonestSend> {
        if honest.slot != ITEMS {
            return vec![honest];
        }
        let payload = rewrite(&honest.payload, |statement| self.tell(to, statement)).unwrap();
        if payload.is_empty() { Vec::new() } else { vec![HonestSend { payload: Bytes::from(payload), ..honest }] }
    }
}

/// Runs with liars and their victims.
fn run(setting: &Setting<Coin>, seed: u64, liars: &[(PartyId, Face, PartyId)]) -> Result<(), String> {
    let conditions = Conditions { loss_per_mille: 0, ..patient() };
    let mut simulator = Simulator::new(seed, conditions);
    for id in setting.plan.parties() {
        match liars.iter().find(|(liar, ..)| *liar == id) {
            None => simulator.honest(id, setting.boxed(id)),
            Some((own, face, victim)) => {
                // The lie is of no importance: what it says goes through this one.
                let liar = liar_to(setting, *own, Lie::BadShareToOne, *victim);
                let adversary = TwoFaced { liar, own: *own, victim: *victim, face: *face };
                simulator.byzantine(id, setting.boxed(id), adversary);
            }
        }
    }
    setting.check(simulator.run()).map(drop).map_err(|failure| format!("{failure}, with {liars:?}"))
}

/// The members by their turns to lead, from view 0 on.
fn leaders(setting: &Setting<Coin>) -> Vec<PartyId> {
    let [a, b, ..] = *setting.plan.id().as_bytes();
    let mut members = setting.plan.members().to_vec();
    let first = usize::from(u16::from_be_bytes([a, b])) % members.len();
    members.rotate_left(first);
    members
}

/// Whoever has seen a dealing before it was wanted, beside another one of the same dealer's, takes it when it is decided on.
#[test]
fn a_dealing_that_came_too_early_is_taken_when_it_is_decided() {
    let checked = for_each_seed(12, |seed| {
        let setting = Setting::<Coin>::generate(2, 4, seed);
        let [_, victim, liar, _] = leaders(&setting)[..] else { return Err("not four members".to_owned()) };
        run(&setting, seed, &[(liar, Face::BothToOne, victim)])
    });
    checked.unwrap();
}
