//! Opened views: when a program has failed a check, its holders throw it away, tell each other so, and show each other all that they know of it. So each
//! sees who has said what it should not have. `spec/ecdsa.md`, "Opened views", has the argument.
//!
//! A holder shows its view only after *all* others have said that they have thrown theirs away, before anything left that depends on their shares of x.

use std::collections::{BTreeMap, BTreeSet};

use theta_mpc::View;
use theta_mpc::ecdsa::{Dispute, disputes};
use theta_rounds::{PartyId, Recipient};

use super::{GroupOf, RobustEcdsa, openings::Opening};
use crate::Misbehaviour;
use crate::ecdsa::{
    curves::StockCurve,
    message::{Body, GaveUp, Reason},
    run::Run,
    stock::{self, Cause},
};

/// So many programs of a request are opened at most, between two rests.
const MOST_OPENED: u8 = 4;

/// So many ticks a holder waits for the others.
const MOST_TICKS: u8 = 2;

/// Why a holder gives up a program in which it has noticed nothing itself.
const ANOTHERS: &str = "a check failed at another holder";

impl<C: StockCurve> RobustEcdsa<C> {
    /// A program has failed a check here, or another holder says that it has there. Throws it away for good and says so to its holders, if all have
    /// begun it together and nothing of it has left that depends on a share of x. Returns whether it did; the caller drops the run.
    pub(super) fn open(&mut self, attempt: u16, why: Result<PartyId, &'static str>) -> bool {
        if self.openings.opened >= MOST_OPENED || !self.setting.shows_views() {
            return false;
        }
        let Some(run) = self.runs.get_mut(&attempt) else { return false };
        let place = |followed: PartyId| run.holders().iter().position(|holder| *holder == followed.share());
        let reason = match why {
            Err(_) => Some(Reason::Failed),
            Ok(followed) => place(followed).and_then(|place| u8::try_from(place).ok()).map(Reason::Follows),
        };
        let Some((gave_up, view)) = reason.and_then(|reason| run.give_up(reason)) else { return false };
        let (local, count) = (self.setting.local, run.count());
        let holders: Vec<PartyId> = run.holders().iter().copied().map(PartyId::of_share).collect();
        self.openings.opened += 1;
        let opening = Opening {
            holders,
            count,
            phase: why.err().unwrap_or(ANOTHERS),
            gave_up: BTreeMap::from([(local, gave_up)]),
            views: BTreeMap::from([(local, view)]),
            is_shown: false,
            ticks: 0,
        };
        for party in opening.others(local) {
            self.send(Recipient::Party(party), Body::GaveUp { attempt, gave_up });
        }
        self.openings.open.insert(attempt, opening);
        true
    }

    /// Another holder has given up a program. This one does so, too, unless it may not any more: then it says nothing.
    pub(super) fn hear_of_giving_up(
        &mut self,
        from: PartyId,
        attempt: u16,
        gave_up: GaveUp,
    ) -> Result<(), Misbehaviour> {
        let is_of = |run: &Run<GroupOf<C>>| run.holders().contains(&from.share()) && run.is(&gave_up);
        if self.runs.get(&attempt).is_some_and(is_of) && self.open(attempt, Ok(from)) {
            self.ended_badly(attempt);
        }
        let local = self.setting.local;
        let Some(opening) = self.openings.open.get_mut(&attempt) else { return Ok(()) };
        // Who speaks of another run says nothing of this one.
        if opening.gave_up.get(&local).is_none_or(|own| own.run != gave_up.run) {
            return Ok(());
        }
        let Some(place) = opening.place(from) else { return Ok(()) };
        let follows = |it: u8| gave_up.reason == Reason::Follows(it);
        if follows(place) || matches!(gave_up.reason, Reason::Follows(it) if usize::from(it) >= opening.holders.len()) {
            return Err(Misbehaviour::MalformedRound);
        }
        opening.gave_up.entry(from).or_insert(gave_up);
        if opening.gave_up.len() == opening.holders.len() && !opening.is_shown {
            self.show(attempt);
            self.compare(attempt);
        }
        Ok(())
    }

    /// All have thrown the program away: nothing of it is a secret any more.
    fn show(&mut self, attempt: u16) {
        let local = self.setting.local;
        let Some(opening) = self.openings.open.get_mut(&attempt) else { return };
        opening.is_shown = true;
        let Some(view) = opening.views.get(&local) else { return };
        let bodies: Vec<_> =
            opening.others(local).map(|party| (party, Body::View { attempt, view: copy(view) })).collect();
        for (party, body) in bodies {
            self.send(Recipient::Party(party), body);
        }
    }

    /// Another holder has shown its view.
    pub(super) fn hear_a_view(&mut self, from: PartyId, attempt: u16, view: View) {
        let Some(opening) = self.openings.open.get_mut(&attempt) else { return };
        if opening.holders.contains(&from) {
            opening.views.entry(from).or_insert(view);
            self.compare(attempt);
        }
    }

    /// Does the program again, if all views are there, and blames whoever it shows.
    fn compare(&mut self, attempt: u16) {
        let is_complete = |opening: &Opening| opening.is_shown && opening.views.len() == opening.holders.len();
        if !self.openings.open.get(&attempt).is_some_and(is_complete) {
            return;
        }
        let Some(mut opening) = self.openings.open.remove(&attempt) else { return };
        let indices = opening.holders.iter().map(|holder| holder.share()).collect();
        let views: Vec<View> = opening.holders.iter().filter_map(|holder| opening.views.remove(holder)).collect();
        let setting = self.setting.presigning(attempt, indices, opening.count);
        let may_rehearse = self.setting.rehearsals.as_ref().is_some_and(super::Rehearsals::begin);
        let found = may_rehearse.then(|| disputes::<GroupOf<C>>(&setting, &views)).flatten();
        match found {
            Some(found) => self.judge(&opening, &found),
            None => self.tell_of_silence(opening),
        }
        if self.is_spent_filling() {
            self.end_filling();
        }
    }

    /// Blames whoever disputes with this party, which knows what it has said and heard; of two others one lies.
    fn judge(&mut self, opening: &Opening, found: &[Dispute]) {
        let (local, liars) = (self.setting.local, self.setting.threshold.t());
        let at = |place: usize| opening.holders.get(place).copied();
        let pairs = found.iter().filter_map(|dispute| Some([at(dispute.sender)?, at(dispute.receiver)?]));
        let (own, apart): (Vec<_>, Vec<_>) = pairs.partition(|pair| pair.contains(&local));
        let mut named: BTreeSet<PartyId> = own.into_iter().flatten().filter(|party| *party != local).collect();
        let mut circle = Vec::new();
        if found.is_empty() {
            // Nobody has lied in the program, so no check of it has failed; and whom this party has followed cannot have followed this party.
            let follows_back =
                |party: &PartyId| opening.followed(*party) == Some(local) && opening.followed(local) == Some(*party);
            let lies = |party: &PartyId| opening.reason(*party) == Some(Reason::Failed) || follows_back(party);
            named.extend(opening.others(local).filter(lies));
            circle = opening.circle().filter(|_| named.is_empty()).unwrap_or_default();
        }
        if !circle.is_empty() {
            self.ask(stock::Ask::Spoiled { local, signers: circle.clone(), liars });
        }
        if named.is_empty() {
            let pairs: BTreeSet<PartyId> = apart.iter().flatten().chain(&circle).copied().collect();
            let holders = if pairs.is_empty() { opening.holders.clone() } else { pairs.into_iter().collect() };
            self.ask(stock::Ask::Failed { holders, cause: Cause::Check, phase: opening.phase });
        }
        for pair in apart {
            self.ask(stock::Ask::Spoiled { local, signers: pair.to_vec(), liars });
        }
        if !named.is_empty()
            && let Some(rehearsals) = &self.setting.rehearsals
        {
            // It has found somebody, and takes none from what others may need.
            rehearsals.note_a_good_end();
            self.openings.opened = self.openings.opened.saturating_sub(1);
        }
        self.blames.extend(named.into_iter().map(|party| (party, Misbehaviour::FalseRound)));
    }

    /// Time has passed. Whoever says nothing of a program that has failed is not named for it.
    pub(super) fn wait_for_views(&mut self) {
        self.openings.open.values_mut().for_each(|opening| opening.ticks += 1);
        let late: Vec<u16> =
            self.openings.open.iter().filter(|(_, it)| it.ticks >= MOST_TICKS).map(|(attempt, _)| *attempt).collect();
        for opening in late.iter().filter_map(|attempt| self.openings.open.remove(attempt)).collect::<Vec<_>>() {
            self.tell_of_silence(opening);
        }
    }

    /// Nothing more is shown and nothing more is heard of programs that have failed.
    pub(super) fn close_views(&mut self) {
        for opening in core::mem::take(&mut self.openings).open.into_values() {
            self.tell_of_silence(opening);
        }
    }

    /// It is not known who has lied.
    fn tell_of_silence(&mut self, Opening { holders, phase, .. }: Opening) {
        self.ask(stock::Ask::Failed { holders, cause: Cause::Check, phase });
    }
}

/// What is shown to all is no secret.
fn copy(view: &View) -> View {
    View { seed: theta_groups::Secret::new(*view.seed.expose()), rounds: view.rounds.clone() }
}
