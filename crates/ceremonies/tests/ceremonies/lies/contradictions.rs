//! Liars that show different things to different parties: what one party knows of them, the others do not.

use bytes::Bytes;
use theta_ceremonies::{ITEMS, Kind, Statement, rewrite};
use theta_groups::{Ristretto255, Transcript};
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
    Both,
    /// The victim gets another dealing beside the one that all get. The liar does not vote.
    Contradicts,
    /// The victim gets a dealing that is false for it, and that nobody else gets; the one that the others get is false for the victim, too. The
    /// liar does not vote.
    FalseTwice,
    /// The victim gets a dealing that is right for it, the others one that is false for the victim. The liar does not vote.
    RightOnce,
    /// The liar deals falsely to the other liar, and does not vote. It complains about the other one's dealing, which is false, before the victim alone;
    /// the others hear a complaint about a dealing that nobody has.
    ComplainsApart,
}

struct TwoFaced {
    liar: Liar<Ristretto255>,
    own: PartyId,
    victim: PartyId,
    /// The next liar, which may be itself.
    other: PartyId,
    face: Face,
}

impl TwoFaced {
    fn tell(&self, to: PartyId, honest: Statement) -> Vec<Statement> {
        if honest.author() != self.own {
            return vec![honest];
        }
        let is_vote = matches!(honest.slot().kind, Kind::Proposal | Kind::Prevote | Kind::Precommit);
        match (self.face, honest.slot().kind) {
            (Face::Both, _) if is_vote => vec![honest],
            _ if is_vote => Vec::new(),
            (Face::Contradicts, Kind::Dealing) if to == self.victim => {
                let other = self.liar.spoil(honest.body(), &[self.other]);
                vec![self.liar.sign(honest.slot(), other), honest]
            }
            (Face::FalseTwice, Kind::Dealing) => {
                let also = if to == self.victim { self.other } else { self.own };
                let other = self.liar.spoil(honest.body(), &[self.victim, also]);
                vec![self.liar.sign(honest.slot(), other)]
            }
            (Face::RightOnce, Kind::Dealing) if to != self.victim => {
                let other = self.liar.spoil(honest.body(), &[self.victim]);
                vec![self.liar.sign(honest.slot(), other)]
            }
            (Face::ComplainsApart, Kind::Dealing) => {
                let other = self.liar.spoil(honest.body(), &[self.other]);
                vec![self.liar.sign(honest.slot(), other)]
            }
            (Face::ComplainsApart, Kind::Complaint) if to != self.victim => {
                let mut body = honest.body().to_vec();
                body[0] ^= 1;
                vec![self.liar.sign(honest.slot(), body)]
            }
            (Face::Both, Kind::Key | Kind::Activation | Kind::Release) => Vec::new(),
            (Face::Both, Kind::Dealing) if to == self.victim => {
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
                let other = liars.iter().map(|(liar, ..)| *liar).cycle().skip_while(|liar| liar != own).nth(1).unwrap();
                let adversary = TwoFaced { liar, own: *own, victim: *victim, other, face: *face };
                simulator.byzantine(id, setting.boxed(id), adversary);
            }
        }
    }
    setting.check(simulator.run()).map(drop).map_err(|failure| format!("{failure}, with {liars:?}"))
}

/// The members by their turns to lead, from view 0 on.
fn leaders(setting: &Setting<Coin>) -> Vec<PartyId> {
    let mut members = setting.plan.members().to_vec();
    members.sort_by_cached_key(|member| {
        let turn = Transcript::new("theta/ceremony/turn/v1").with("ceremony", setting.plan.id().as_bytes());
        turn.with("member", &member.get().to_be_bytes()).finish32()
    });
    members
}

/// Whoever has seen a dealing before it was wanted, beside another one of the same dealer's, takes it when it is decided on.
#[test]
fn a_dealing_that_came_too_early_is_taken_when_it_is_decided() {
    let checked = for_each_seed(12, |seed| {
        let setting = Setting::<Coin>::generate(2, 4, seed);
        let [_, victim, liar, _] = leaders(&setting)[..] else { return Err("not four members".to_owned()) };
        run(&setting, seed, &[(liar, Face::Both, victim)])
    });
    checked.unwrap();
}

/// t liars of 3t + 1, each with a victim: what the victims know of them they know alone, so they must not wait for the others to know it, nor these for
/// them. All that are honest are needed for a quorum. Where there are more than nine, each asks some of the others at a time.
fn is_decided_without_the_liars(face: Face) {
    let checked = for_each_seed(8, |seed| {
        let t = if seed % 4 == 3 { 3 } else { 2 };
        let setting = Setting::<Coin>::impatient(t + 1, 3 * t + 1, seed, 55);
        let turns = leaders(&setting);
        let liars = [2, 4, 6].map(|turn| turns[turn]);
        // The victims lead after the liars, or before them.
        let victims = if seed % 2 == 0 { [5, 6, 3] } else { [0, 1, 3] }.map(|turn| turns[turn]);
        let all: Vec<_> = liars.into_iter().zip(victims).map(|(liar, victim)| (liar, face, victim)).collect();
        run(&setting, seed, &all[..usize::from(t)])
    });
    checked.unwrap();
}

#[test]
fn contradictions_that_one_member_knows_stop_nobody() {
    is_decided_without_the_liars(Face::Contradicts);
}

#[test]
fn a_complaint_about_what_nobody_else_has_convicts_all_the_same() {
    is_decided_without_the_liars(Face::FalseTwice);
}

#[test]
fn who_was_dealt_right_first_complains_about_what_is_decided() {
    is_decided_without_the_liars(Face::RightOnce);
}

#[test]
fn complaints_that_one_member_knows_stop_nobody() {
    is_decided_without_the_liars(Face::ComplainsApart);
}
