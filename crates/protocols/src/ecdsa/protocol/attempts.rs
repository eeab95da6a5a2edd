//! Attempts, each with a coordinator: what it does in its turn, and when the next one has its own.

use core::mem;
use std::collections::BTreeSet;

use theta_rounds::{PartyId, Recipient};

use super::{FILLING_ATTEMPTS, RobustEcdsa, State};
use crate::ecdsa::{curves::StockCurve, failures::Known, message::Body, stock};

impl<C: StockCurve> RobustEcdsa<C> {
    /// Does what a coordinator does, if it is this party's turn.
    pub(super) fn turn(&mut self) {
        // When all have had a turn, one at a time that let it pass and has not been heard since is passed over. If it is there, it names a program when its turn
        // comes at itself, and whoever hears that takes part. One, so that who hears nobody for a while is not far away from the others then; and none where a
        // program takes all.
        let mut may_pass =
            self.setting.members() < self.setting.threshold.n().into() && self.setting.round_of(self.attempt) > 0;
        for _ in 0..self.setting.threshold.n() {
            let coordinator = self.setting.coordinator(self.attempt);
            let is_passed = may_pass && self.late.contains(&coordinator);
            may_pass &= !is_passed;
            if !self.excluded.contains(&coordinator) && !is_passed {
                break;
            }
            self.attempt = self.attempt.saturating_add(1);
        }
        if self.is_spent_filling() {
            return self.end_filling();
        }
        if self.setting.coordinator(self.attempt) != self.setting.local {
            return;
        }
        self.turns = self.turns.wrapping_add(1);
        // Others take out no more of one owner's, and hear no more shares of one party.
        let may_draw = self.setting.keeps_stock() && self.collected.may_take(self.setting.local);
        if self.setting.digest.is_some() && may_draw {
            self.drawing = Some(self.attempt);
            // A program makes many at once for less than one each: who comes while one is under way waits for it.
            let waits = self.setting.shares_programs();
            let (owner, without) = (self.setting.local, self.unwanted());
            return self.ask(stock::Ask::Draw { owner, without, waits, place: None });
        }
        self.doubted.clone_from(&self.setting.avoided);
        self.prepare();
    }

    /// Whether this is a filling that has had its attempts.
    pub(super) const fn is_spent_filling(&self) -> bool {
        self.setting.digest.is_none() && self.attempt >= FILLING_ATTEMPTS
    }

    /// Ends such a filling, unless it may show within two ticks who has lied in it.
    pub(super) fn end_filling(&mut self) {
        if self.openings.are_closed() {
            let holders = mem::take(&mut self.filled_by);
            self.end(State::Filled(holders));
        }
    }

    /// Signers that a presignature must not have. Where all must sign, nothing is gained by doing without one that is late: there is none without it, and
    /// a program takes it, too. Its share of what is named may come later, and each holder takes out what it hears of, so that stocks stay alike.
    fn unwanted(&self) -> BTreeSet<PartyId> {
        if self.setting.is_fixed() {
            return self.excluded.clone();
        }
        self.excluded.union(&self.late).copied().collect()
    }

    /// Names the holders of this attempt's program, as its coordinator.
    pub(super) fn prepare(&mut self) {
        let Some(rng) = self.rng.as_mut() else { return };
        let setting = &self.setting;
        let (attempt, count) = (self.attempt, setting.count(self.attempt, self.left));
        let known = Known {
            excluded: &self.excluded,
            failures: &self.failures,
            late: &self.late,
            doubted: &self.doubted,
            // Who was missing tells most, unless liars have arranged it: every other turn of this party does without. Turns are counted here, as liars have
            // others skip attempts.
            counts_missing: !self.turns.is_multiple_of(2),
        };
        let Some(holders) = setting.choose(&known, rng) else { return };
        // Others follow no more of one coordinator's programs than this party would.
        if self.setting.coordinator(attempt) != self.setting.local || !self.may_run(self.setting.local, attempt) {
            return;
        }
        if self.setting.digest.is_none() && count == 0 {
            // Whoever keeps no stock of this key has nothing to fill it with.
            return self.end(State::Filled(Vec::new()));
        }
        self.send(Recipient::All, Body::Prepare { attempt, count, holders: holders.clone() });
        self.run(attempt, holders, count);
    }

    pub(super) fn doubt(&mut self, parties: Vec<PartyId>) {
        let others: Vec<PartyId> = parties.into_iter().filter(|party| *party != self.setting.local).collect();
        if !others.is_empty() {
            self.ask(stock::Ask::Doubt(others));
        }
    }

    /// A coordinator has named no presignature in its turn. Nobody else names those that it owns, so that here they only take up room if it has
    /// restarted, is down, or means to choke stocks. But it may have named many in vain in this request, or be late: they are wiped for new ones alone.
    pub(super) fn spare(&mut self, coordinator: PartyId) {
        if self.setting.digest.is_some() && self.setting.keeps_stock() {
            self.ask(stock::Ask::Spare(coordinator));
        }
    }

    /// An attempt has come to nothing by its program. The coordinator has done what it should, so that its presignatures stay; it may have chosen liars.
    pub(super) fn failed(&mut self, attempt: u16) {
        if self.is_running() && attempt == self.attempt {
            self.late.insert(self.setting.coordinator(attempt));
            self.late.remove(&self.setting.local);
            self.next_attempt();
        }
    }

    /// A program has come to nothing because a holder of it was found out, which is excluded by now. Its coordinator names another one without that
    /// holder at once, as that of its next turn: whoever has no part in the program knows of nothing, and would let its own turn pass. The others of the
    /// program wait for that: two programs of the same holders at once would leave them with different stocks.
    pub(super) fn failed_by_a_liar(&mut self, attempt: u16) {
        if self.setting.digest.is_none() {
            return self.failed(attempt);
        }
        let coordinator = self.setting.coordinator(attempt);
        if !self.is_running() || attempt != self.attempt {
            return;
        }
        if coordinator == self.setting.local {
            let Some(later) = attempt.checked_add(self.setting.threshold.n()) else { return self.next_attempt() };
            self.attempt = later;
            (self.ticks, self.round) = (0, 0);
            self.prepare();
        } else if self.excluded.contains(&coordinator) {
            self.next_attempt();
        }
    }

    /// The coordinator of this attempt names the program of a later turn of its own, as whoever finds liars in its programs does, at most once for each in a
    /// request. Its turn goes on, for as long as it would have without.
    pub(super) fn follow(&mut self, attempt: u16) {
        if attempt <= self.attempt || !self.may_leap(self.attempt, attempt) {
            return;
        }
        let turns = self.setting.round_of(attempt.saturating_sub(self.attempt));
        let followed = self.followed.entry(self.setting.coordinator(attempt)).or_default();
        if followed.saturating_add(turns) <= self.setting.threshold.t() {
            *followed += turns;
            (self.attempt, self.round) = (attempt, 0);
        }
    }

    /// Whether a coordinator that finds a liar in each of its programs gets from its turn in one attempt to another one.
    fn may_leap(&self, from: u16, to: u16) -> bool {
        let most = self.setting.threshold.t().saturating_mul(self.setting.threshold.n());
        self.setting.coordinator(from) == self.setting.coordinator(to) && to.saturating_sub(from) <= most
    }

    /// Whether the coordinator of this attempt has named a program in it, or any since it began here: attempts are not in step everywhere.
    fn has_named_a_program(&self, coordinator: PartyId) -> bool {
        if self.named.contains(&coordinator) {
            return true;
        }
        let last = self.prepared.get(&coordinator).and_then(|prepared| prepared.last);
        last.is_some_and(|last| last >= self.attempt && self.may_leap(self.attempt, last))
    }

    /// Goes on to the next coordinator.
    pub(super) fn advance(&mut self) {
        let coordinator = self.setting.coordinator(self.attempt);
        let mut late: BTreeSet<PartyId> = self.collected.missing(coordinator).collect();
        match self.runs.get(&self.attempt) {
            Some(run) => {
                late.extend(run.missing());
                self.failures.note_unless_alone(run);
            }
            // One whose program has come to nothing here has done something.
            None if self.has_named_a_program(coordinator) => {}
            None if late.is_empty() && coordinator != self.setting.local => {
                late.insert(coordinator);
                // Stocks of holders all of whom sign stay alike, so they follow what all of these hear of.
                if !self.setting.is_fixed() {
                    self.spare(coordinator);
                }
            }
            None => {}
        }
        late.remove(&self.setting.local);
        self.doubt(late.iter().copied().collect());
        self.late.extend(late);
        self.next_attempt();
    }

    /// Begins the attempt of the next coordinator.
    pub(super) fn next_attempt(&mut self) {
        self.attempt = self.attempt.saturating_add(1);
        (self.ticks, self.round) = (0, 0);
        self.named.clear();
        let oldest = self.attempt.saturating_sub(1);
        let setting = &self.setting;
        // Those of others go on: they may have failed nowhere but here.
        self.runs.retain(|attempt, _| *attempt >= oldest || setting.coordinator(*attempt) != setting.local);
        self.turn();
    }
}
