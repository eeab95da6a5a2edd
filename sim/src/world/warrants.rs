//! Operators who sign that another machine votes in the place of a lost one, where the others are too few to decide.

use theta_ledger::{LONGEST_WARRANT, LedgerState, SignedWarrant, SigningRefusal, Warrant};

use super::exchange::Proof;
use super::{Event, ROUND, World};
use crate::chance::below;
use crate::founded::{operator, stand_in};
use crate::group::{EPOCH, Failed, party};
use crate::scenario::Word;
use crate::watch::{Invariant, Observation, Violation};

impl World<'_> {
    /// The operators sign for all machines that are lost, by the newest ledger that somebody can show them.
    pub(super) fn sign(&mut self, place: usize) -> Result<(), Violation> {
        let Some(state) = self.newest_ledger() else {
            self.at(self.now + ROUND, Event::Sign(place));
            return Ok(());
        };
        let signed = match self.unsigned(&state) {
            Ok(None) => return Ok(()),
            Ok(Some(warrant)) => self.with_signatures(warrant, &state),
            Err(text) => Err(text),
        };
        match signed {
            Ok(Some(warrant)) => {
                self.give_out(place, &warrant);
                Ok(())
            }
            Ok(None) => {
                self.at(self.now + ROUND, Event::Sign(place));
                Ok(())
            }
            Err(text) => self.watch.violated(Invariant::Works, text),
        }
    }

    fn newest_ledger(&self) -> Option<LedgerState> {
        let honest = self.scenario.honest().filter_map(|node| self.nodes.get(&node)?.life.as_ref());
        let ledgers = honest.filter_map(|life| life.engine.custodian()?.ledger());
        ledgers.max_by_key(|ledger| ledger.height()).cloned()
    }

    /// A warrant for all machines that are lost by now and not replaced in this ledger; `None` if there is none.
    fn unsigned(&self, state: &LedgerState) -> Result<Option<Warrant>, Failed> {
        let lost = self.scenario.exchanges.iter().filter(|it| it.by == Word::Warrant && it.at <= self.now);
        let mut stand_ins = Vec::new();
        for exchange in lost {
            let stand_in = stand_in(exchange.node)?;
            let card = state.seats().get(&stand_in.node).and_then(|seat| seat.card());
            if card.is_some_and(|card| card.content().ceremony_key == stand_in.gone) {
                stand_ins.push(stand_in);
            }
        }
        if stand_ins.is_empty() {
            return Ok(None);
        }
        let (from, until) = (state.height().saturating_add(1), self.seconds() + LONGEST_WARRANT);
        Warrant::new(*state.id(), from, until, stand_ins).map(Some).map_err(|error| error.to_string())
    }

    fn seconds(&self) -> u64 {
        EPOCH + self.now / 1_000
    }

    /// The same with the signatures of a quorum of the operators, or of more; `None` if one of them has seen a newer ledger, and asks for
    /// that.
    fn with_signatures(&mut self, mut warrant: Warrant, state: &LedgerState) -> Result<Option<Warrant>, Failed> {
        let members = state.members().len();
        let spare = members.saturating_sub(state.quorum());
        let count = members - usize::try_from(below(&mut self.rng, spare as u64 + 1)).unwrap_or(0);
        let first = usize::try_from(below(&mut self.rng, members as u64)).unwrap_or(0);
        let numbers: Vec<u16> = state.members().iter().map(|member| member.node().get()).collect();
        warrant.check_end(self.seconds()).map_err(|refusal| refusal.to_string())?;
        let signers: Vec<u16> = numbers.iter().copied().cycle().skip(first).take(count).collect();
        for number in &signers {
            let id = operator(*number).id().map_err(|error| error.to_string())?;
            match state.check_signing(&id, &warrant, self.signed.get(number).map_or(&[][..], Vec::as_slice)) {
                Ok(_) => {}
                Err(SigningRefusal::OldLedger { .. }) => return Ok(None),
                Err(refusal) => return Err(format!("the operator of node {number} does not sign: {refusal}")),
            }
        }
        for number in signers {
            warrant = warrant.with_signature(party(number)?, &operator(number));
            let signed = SignedWarrant { height: state.height(), warrant: warrant.clone() };
            self.signed.entry(number).or_default().push(signed);
        }
        Ok(Some(warrant))
    }

    /// From now on somebody brings the warrant to all nodes.
    fn give_out(&mut self, place: usize, warrant: &Warrant) {
        self.watch.observations.note(Observation::Warranted);
        for stand_in in warrant.stand_ins() {
            self.watch.ledger.warranted(stand_in.node.get(), warrant.from_height());
        }
        let node = self.scenario.exchanges.get(place).map(|exchange| exchange.node);
        let mut wishes = self.wishes.iter_mut().filter(|wish| wish.change.node() == node);
        if let Some(wish) = wishes.find(|wish| matches!(wish.proof, Proof::Warrant(_))) {
            wish.proof = Proof::Warrant(Some(warrant.encode().into()));
        }
    }

    /// Whether a node votes again with a store that is not the one it began with: others know that it cannot have spoken before.
    pub(super) fn votes_anew(&self, number: u16) -> bool {
        self.watch.ledger.joined_at(number).is_some() || self.watch.ledger.is_warranted(number)
    }
}
