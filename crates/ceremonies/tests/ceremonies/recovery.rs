//! A holder recovers its share.

use std::sync::Arc;

use bytes::Bytes;
use theta_ceremonies::{
    Aim, Ceremony, CeremonyEvidence, CeremonyPlan, ITEMS, Kind, Memory, Outcome, PlanParts, Source, Statement, rewrite,
    statements_of,
};
use theta_groups::bls12_381::G1;
use theta_groups::{Ed448, Group, Ristretto255};
use theta_names::Epoch;
use theta_rounds::simulator::{Adversary, Behaviour, Conditions, SimRng, Simulator, Tamper, below, for_each_seed};
use theta_rounds::{PartyId, Slot};
use theta_schemes::coins::cks05::Cks05;
use theta_schemes::keys::{CurveScheme, Dealt, KeyShare, deal, proof_of_possession};
use theta_sharing::{ShareIndex, Threshold};

use crate::support::{found, keys_of, parties, party, patient, secret_of, test_rng};

type Coin = Cks05<Ristretto255>;

pub(crate) struct Setting<S: CurveScheme> {
    dealt: Dealt<S::KeyGroup>,
    pub(crate) shares: Vec<Arc<KeyShare<S::KeyGroup>>>,
    pub(crate) plan: Arc<CeremonyPlan>,
    pub(crate) lost: PartyId,
}

impl<S: CurveScheme> Setting<S> {
    pub(crate) fn new(k: u16, n: u16, lost: u16, nonce: u8) -> Self {
        let mut dealt = deal::<S>(Threshold::new(k, n).unwrap(), &mut test_rng(u64::from(nonce)));
        let shares: Vec<_> = dealt.shares.drain(..).map(Arc::new).collect();
        let members = parties(1..=n);
        let source = Source { public: Arc::new(dealt.public.encoded()), holders: members.clone() };
        let plan = CeremonyPlan::new(PlanParts {
            suite: S::SUITE.into(),
            group: S::KeyGroup::NAME,
            proof_of_possession: proof_of_possession::<S>(),
            nonce: [nonce; 32],
            epoch: Epoch::FIRST,
            aim: Aim::Recover(source, ShareIndex::try_from(lost).unwrap()),
            k,
            roster: members.iter().map(|party| keys_of(*party).member().clone()).collect(),
            members,
            patience: 0,
        });
        Self { dealt, shares, plan: Arc::new(plan.unwrap()), lost: party(lost) }
    }

    pub(crate) fn join(&self, who: PartyId, memory: Memory, life: u8) -> Ceremony {
        let share = (who != self.lost).then(|| self.shares[usize::from(who.get()) - 1].encoded());
        let (plan, keys, secret) = (Arc::clone(&self.plan), keys_of(who), secret_of(who, life));
        Ceremony::join(plan, keys, secret, share.as_ref(), memory).unwrap()
    }

    fn machine(&self, who: PartyId) -> Box<Ceremony> {
        Box::new(self.join(who, Memory::Kept, 0))
    }

    fn run(
        &self,
        seed: u64,
        conditions: Conditions,
        mut liars: Vec<(PartyId, Box<dyn Adversary>)>,
    ) -> Result<Vec<&'static str>, String> {
        let mut simulator = Simulator::<Outcome, CeremonyEvidence>::new(seed, conditions);
        let names: Vec<_> = liars.iter().map(|(liar, _)| *liar).collect();
        for who in self.plan.parties() {
            match liars.iter().position(|(liar, _)| *liar == who) {
                None => simulator.honest(who, self.machine(who)),
                Some(place) => simulator.byzantine(who, self.machine(who), liars.swap_remove(place).1),
            }
            simulator.lossy(who);
        }
        let report = simulator.run();
        report.check_blame()?;
        report.agreed(|_| ())?;
        let owner = &report.parties[&self.lost];
        if !owner.honest {
            return Ok(Vec::new());
        }
        let Some(Ok(outcome)) = &owner.result else { return Err("the owner waits".to_owned()) };
        let share = KeyShare::from_encoded(&self.dealt.public, found(outcome).ok_or("no share")?);
        let share = share.map_err(|error| error.to_string())?;
        let lost = &self.shares[usize::from(self.lost.get()) - 1];
        if share.secret().expose() != lost.secret().expose() || share.index() != lost.index() {
            return Err("another share".to_owned());
        }
        let outcomes = report.honest().filter_map(|(_, party)| party.result.as_ref()?.as_ref().ok());
        let told: Vec<_> = outcomes.flat_map(|outcome| &outcome.evidence).collect();
        for evidence in &told {
            if !names.contains(&evidence.culprit()) || !evidence.verify(&self.plan) {
                return Err(format!("evidence that does not hold: {evidence}"));
            }
            let read = theta_ceremonies::CeremonyEvidence::decode(&evidence.encode());
            assert_eq!(read.as_ref(), Ok(*evidence));
        }
        Ok(told.into_iter().map(theta_rounds::Evidence::name).collect())
    }
}

#[test]
fn any_holder_in_any_group_and_size() {
    fn in_group<S: CurveScheme>() {
        for (k, n, lost) in [(1, 2, 1), (2, 3, 2), (2, 4, 4), (3, 7, 1)] {
            Setting::<S>::new(k, n, lost, 1).run(1, patient(), Vec::new()).unwrap();
        }
    }
    in_group::<Coin>();
    in_group::<Cks05<Ed448>>();
    in_group::<Cks05<G1>>();
}

#[test]
fn with_loss_and_silent_helpers() {
    let checked = for_each_seed(60, |seed| {
        let setting = Setting::<Coin>::new(3, 7, 1 + u16::try_from(seed % 7).unwrap(), 2);
        let silent = parties(1..=7).into_iter().filter(|party| *party != setting.lost).take(2);
        let silent = silent.map(|party| (party, Box::new(Behaviour::Silent) as Box<dyn Adversary>)).collect();
        setting.run(seed, Conditions { loss_per_mille: seed * 5, ..patient() }, silent).map(drop)
    });
    checked.unwrap();
}

/// Changes one byte of every statement of a kind, counted from its end, and signs again.
pub(crate) fn falsify(
    setting: &Setting<Coin>,
    who: PartyId,
    kind: Kind,
    from_end: usize,
) -> impl Fn(&[u8]) -> Vec<u8> + use<> {
    let (id, keys) = (*setting.plan.id(), keys_of(who));
    move |payload| {
        let forged = rewrite(payload, |statement| {
            if statement.author() != who || statement.slot().kind != kind {
                return vec![statement];
            }
            let mut body = statement.body().to_vec();
            let at = body.len() - from_end;
            body[at] ^= 1;
            vec![Statement::sign(&id, &keys, statement.slot(), body)]
        });
        forged.unwrap()
    }
}

fn forge(setting: &Setting<Coin>, who: PartyId, kind: Kind, from_end: usize) -> Box<dyn Adversary> {
    let falsify = falsify(setting, who, kind, from_end);
    Box::new(Tamper(move |_: &mut SimRng, _: PartyId, slot: Slot, payload: Bytes| {
        let payload = if slot == ITEMS { Bytes::from(falsify(&payload)) } else { payload };
        vec![(slot, payload)]
    }))
}

#[test]
fn false_answers_and_false_masks_are_named() {
    let checked = for_each_seed(20, |seed| {
        let setting = Setting::<Coin>::new(2, 4, 3, u8::try_from(seed).unwrap());
        let conditions = Conditions { loss_per_mille: 0, ..patient() };
        let answers = setting.run(seed, conditions, vec![(party(1), forge(&setting, party(1), Kind::Answer, 5))])?;
        // Enough true answers may have come before the false one.
        if !answers.iter().all(|name| *name == "false_answer") {
            return Err(format!("a false answer is called {answers:?}"));
        }
        // What is for party 4, the last, and so an honest helper.
        let masks = setting.run(seed, conditions, vec![(party(1), forge(&setting, party(1), Kind::Dealing, 5))])?;
        if !masks.contains(&"false_dealing") {
            return Err(format!("a false mask is called {masks:?}"));
        }
        Ok(())
    });
    checked.unwrap();
}

/// A helper accepts one request towards some and another one towards others, which learn from the owner what it
/// accepted.
#[test]
fn who_accepts_two_requests_is_named() {
    let mut named = 0;
    let checked = for_each_seed(20, |seed| {
        let setting = Setting::<Coin>::new(2, 5, 3, u8::try_from(seed).unwrap());
        let (id, keys) = (*setting.plan.id(), keys_of(party(1)));
        let liar = Tamper(move |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
            let twofold = |statement: Statement| {
                let own = statement.slot().kind == Kind::Accepted && statement.author() == party(1);
                if !own || to.get() % 2 == 1 {
                    return vec![statement];
                }
                vec![Statement::sign(&id, &keys, statement.slot(), vec![9; 32])]
            };
            let forged = if slot == ITEMS { rewrite(&payload, twofold) } else { None };
            vec![(slot, forged.map_or(payload, Bytes::from))]
        });
        let conditions = Conditions { loss_per_mille: 0, ..patient() };
        let names = setting.run(seed, conditions, vec![(party(1), Box::new(liar))])?;
        named += usize::from(names.contains(&"equivocation"));
        if names.iter().all(|name| *name == "equivocation") { Ok(()) } else { Err(format!("{names:?}")) }
    });
    checked.unwrap();
    assert!(named > 10, "{named}");
}

/// An owner that shows an acceptance that nobody has signed is proven to lie.
#[test]
fn false_acceptances_are_named() {
    let setting = Setting::<Coin>::new(2, 4, 2, 9);
    let conditions = Conditions { loss_per_mille: 0, ticks: 20, ..patient() };
    let mut simulator = Simulator::<Outcome, CeremonyEvidence>::new(1, conditions);
    simulator.byzantine(party(2), setting.machine(party(2)), forge(&setting, party(2), Kind::Acceptances, 5));
    parties([1, 3, 4]).into_iter().for_each(|helper| simulator.honest(helper, setting.machine(helper)));
    let report = simulator.run();
    report.check_blame().unwrap();
    for (who, party) in report.honest() {
        assert!(party.blames.iter().any(|blame| blame.offence.to_string().contains("cannot be read")), "{who}");
    }
}

/// An owner asks different helpers for different lists, or all for a list that does not hide their shares. It gets
/// nothing that it can open: each helper answers one request, with its own mask in it.
#[test]
fn helpers_answer_once_and_never_unmasked() {
    let setting = Setting::<Coin>::new(2, 4, 2, 9);
    let (id, keys) = (*setting.plan.id(), keys_of(party(2)));
    let liar = Tamper(move |_: &mut SimRng, _: PartyId, slot: Slot, payload: Bytes| {
        let forged = (slot == ITEMS).then(|| {
            rewrite(&payload, |statement| {
                if statement.slot().kind == Kind::Request && statement.author() == party(2) {
                    // Without masks at all.
                    return vec![Statement::sign(&id, &keys, statement.slot(), Vec::new())];
                }
                vec![statement]
            })
        });
        vec![(slot, forged.flatten().map_or(payload, Bytes::from))]
    });
    let answered = Arc::new(std::sync::Mutex::new(0));
    let count = Arc::clone(&answered);
    let watch = Tamper(move |_: &mut SimRng, _: PartyId, slot: Slot, payload: Bytes| {
        if slot == ITEMS {
            let answers = statements_of(&payload).filter(|statement| statement.slot().kind == Kind::Answer);
            *count.lock().unwrap() += answers.count();
        }
        vec![(slot, payload)]
    });
    let mut simulator = Simulator::<Outcome, CeremonyEvidence>::new(1, Conditions { ticks: 10, ..patient() });
    simulator.byzantine(party(2), setting.machine(party(2)), liar);
    simulator.byzantine(party(1), setting.machine(party(1)), watch);
    parties([3, 4]).into_iter().for_each(|helper| simulator.honest(helper, setting.machine(helper)));
    let report = simulator.run();
    assert_eq!(*answered.lock().unwrap(), 0);
    assert!(report.honest().all(|(_, party)| party.result.is_none()));
}

#[test]
fn a_third_of_the_helpers_may_be_noise() {
    let checked = for_each_seed(40, |seed| {
        let setting = Setting::<Coin>::new(2, 4, 1, 7);
        let mut rng = test_rng(seed);
        let noises = [Behaviour::Garbage, Behaviour::BitFlip, Behaviour::Equivocate, Behaviour::CrashAfter(4)];
        let noise = noises[usize::try_from(below(&mut rng, 4)).unwrap()].clone();
        setting.run(seed, patient(), vec![(party(3), Box::new(noise) as Box<dyn Adversary>)]).map(drop)
    });
    checked.unwrap();
}
