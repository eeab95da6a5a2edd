//! Programs that make presignatures: which this party takes part in, what comes of them, and what their messages wait for.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use theta_groups::SecretRng;
use theta_mpc::{APART, ecdsa::Presigned};
use theta_rounds::{Abort, Bug, Evidence as _, PartyId, Recipient};
use theta_sharing::ShareIndex;

use super::{FILLING_ATTEMPTS, GroupOf, Rehearsals, RobustEcdsa, State};
use crate::ecdsa::{
    Majority, Quarantine,
    curves::StockCurve,
    message::{Body, Signed},
    run::{Round, Run, Step},
    stock::{self, Cause},
};

/// Why a program comes to nothing in which a holder has begun anew.
const ANEW: &str = "a holder has begun anew";

/// The most messages of one party that wait for their program to be named, and their bytes.
const EARLY: (usize, usize) = (4, 1 << 16);
/// The most programs that one coordinator names in an instance, where most holders are honest: they cost some kB each.
const MOST_PREPARED: usize = 32;
/// The most that t liars name together where all but one may cheat, though each names at least two, of programs that go on after their holders have met. One
/// that they let fail at its end has made two honest holders of it send each other some 70 kB, and 27 for each presignature that it makes beside a
/// signature; of one peer an instance takes 2 MiB.
const MOST_PREPARED_BY_LIARS: usize = 8;

impl<C: StockCurve> RobustEcdsa<C> {
    /// Takes part in the program of an attempt, if this party is one of its holders.
    pub(super) fn run(&mut self, attempt: u16, holders: Vec<ShareIndex>, count: u16) {
        if self.runs.contains_key(&attempt) {
            return;
        }
        let takes_part = holders.contains(&self.setting.local.share());
        if !takes_part {
            // Others make presignatures; those are of no use here.
            // What this party is making already it goes on with, whatever a later coordinator names.
            if self.setting.digest.is_none() && self.runs.is_empty() {
                self.attempt = self.attempt.max(FILLING_ATTEMPTS);
                self.filled_by = holders;
                self.end_filling();
            }
            return;
        }
        if !self.setting.may_run_with(&holders) {
            return;
        }
        let setting = self.setting.presigning(attempt, holders, count);
        let kind = (self.setting.majority, self.setting.security);
        let set_ups = Arc::clone(&self.setting.set_ups);
        let is_kept = count > 0 && self.setting.keeps_stock();
        let making = is_kept.then(|| self.setting.making.begin(self.setting.owner(attempt)));
        let shows_views = self.setting.shows_views();
        match Run::new(self.setting.local, self.setting.threshold.k(), kind, setting, (set_ups, making), shows_views) {
            Ok(run) => drop(self.runs.insert(attempt, run)),
            Err(_) => return self.fail(Abort::Bug(Bug("a program of the wrong holders"))),
        }
        self.step(attempt, |run, rng| run.start(rng));
        let waiting = |(from, kept): (&PartyId, &Vec<(u16, Round)>)| {
            let of_attempt = kept.iter().filter(|(of, _)| *of == attempt);
            of_attempt.map(|(_, message)| (*from, message.clone())).collect::<Vec<_>>()
        };
        let early: Vec<_> = self.early.iter().flat_map(waiting).collect();
        self.early.values_mut().for_each(|kept| kept.retain(|(of, ..)| *of != attempt));
        for (from, message) in early {
            self.step(attempt, |run, rng| run.receive(from, message, rng));
        }
    }

    /// Lets a program do a step, and carries out what comes of it.
    fn step(&mut self, attempt: u16, step: impl FnOnce(&mut Run<GroupOf<C>>, &mut SecretRng) -> Vec<Step<GroupOf<C>>>) {
        let (Some(run), Some(rng)) = (self.runs.get_mut(&attempt), self.rng.as_mut()) else { return };
        for step in step(run, rng) {
            match step {
                Step::Send { to, round, payload } => {
                    self.note_met(attempt, round);
                    self.send(Recipient::Party(to), Body::Program { attempt, round, payload });
                }
                Step::Blame(party, misbehaviour) => {
                    self.quarantine(attempt, misbehaviour.name(), Some(party));
                    self.blames.push((party, misbehaviour));
                }
                Step::Anew(party) if self.setting.majority == Majority::Honest => {
                    self.ask(stock::Ask::Failed { holders: vec![party], cause: Cause::Restart, phase: ANEW });
                }
                Step::Anew(_) => {}
                Step::Ended(Ok(presigned)) => self.presigned(attempt, presigned),
                Step::Ended(Err(Abort::Bug(bug))) => self.fail(Abort::Bug(bug)),
                Step::Ended(Err(abort)) => {
                    if let Abort::Cheated(phase) = abort {
                        let is_a_lie = !APART.contains(&phase);
                        if is_a_lie {
                            self.quarantine(attempt, phase, None);
                        }
                        // Who has lied may show soon.
                        if !(is_a_lie && self.open(attempt, Err(phase))) {
                            self.tell_of_a_failure(attempt, phase);
                        }
                    }
                    self.ended_badly(attempt);
                }
            }
        }
    }

    /// A program has come to nothing. Where it is known whose fault that was, it says nothing of the others.
    pub(super) fn ended_badly(&mut self, attempt: u16) {
        let run = self.runs.remove(&attempt);
        let blamed: Vec<PartyId> = self.blames.iter().map(|(party, _)| *party).collect();
        if blamed.is_empty() {
            if let Some(run) = run {
                self.failures.note(&run);
                self.doubt(run.holders().iter().copied().map(PartyId::of_share).collect());
            }
            return self.failed(attempt);
        }
        self.doubt(blamed.clone());
        // Whoever is blamed here is excluded after this message; the next program is to do without it already.
        self.excluded.extend(blamed);
        self.failed_by_a_liar(attempt);
    }

    /// Time has passed. Programs that stand still are given up, whoever coordinates them: their set-ups go with them, and their room.
    pub(super) fn drop_hung(&mut self) {
        let current = self.attempt;
        // That of this attempt has stricter bounds.
        let hung =
            |(attempt, run): (&u16, &mut Run<GroupOf<C>>)| (run.tick() && *attempt != current).then_some(*attempt);
        for attempt in self.runs.iter_mut().filter_map(hung).collect::<Vec<_>>() {
            // Those of attempts that are over here have been noted when these ended.
            if let Some(run) = self.runs.remove(&attempt).filter(|_| attempt > current) {
                self.failures.note(&run);
            }
        }
    }

    /// A message of this round leaves. A program that goes on after its holders have met is charged to its coordinator.
    fn note_met(&mut self, attempt: u16, round: u16) {
        if !self.runs.get_mut(&attempt).is_some_and(|run| run.meets(round)) {
            return;
        }
        self.prepared.entry(self.setting.coordinator(attempt)).or_default().met += 1;
        if self.counts_silence() {
            self.ask(stock::Ask::Begun);
        }
    }

    /// A filling of holders all of whom it takes uses what is hidden when they have met. It counts until it ends well: who has seen what the others
    /// reveal, and falls silent, keeps to itself that a check fails, and nobody is put in quarantine. Programs that sign do not count, as somebody has
    /// asked for each.
    const fn counts_silence(&self) -> bool {
        self.setting.digest.is_none() && matches!(self.setting.majority, Majority::Dishonest)
    }

    /// Somebody cheated in the program of an attempt. Where it takes every one of its holders, they make no other one: each gives a cheat one more
    /// guess at what the honest ones hide, and it would never end.
    fn quarantine(&mut self, attempt: u16, phase: &'static str, party: Option<PartyId>) {
        let Some(run) = self.runs.get(&attempt).filter(|_| self.setting.majority == Majority::Dishonest) else {
            return;
        };
        let holders = run.holders().to_vec();
        // Of two, it is the other one.
        let others = || holders.iter().copied().map(PartyId::of_share).filter(|party| *party != self.setting.local);
        let party = party.or_else(|| others().next().filter(|_| holders.len() == 2));
        let quarantine = Quarantine { holders, phase: Cow::Borrowed(phase), party };
        if self.learn_of(&quarantine) {
            self.ask(stock::Ask::Quarantine(quarantine));
            self.give_up_without_a_set();
        }
    }

    /// The program of an attempt has failed a check. With an honest majority no holder is left out for it: what came of the program is lost and nothing else,
    /// and the next one has other holders where there are others.
    fn tell_of_a_failure(&mut self, attempt: u16, phase: &'static str) {
        let Some(run) = self.runs.get(&attempt).filter(|_| self.setting.majority == Majority::Honest) else { return };
        let all = run.holders().iter().copied().map(PartyId::of_share).collect();
        let disputes = run.disputes();
        let in_dispute = || BTreeSet::from_iter(disputes.iter().copied().flatten()).into_iter().collect();
        let holders = if disputes.is_empty() { all } else { in_dispute() };
        let cause = if APART.contains(&phase) { Cause::Apart } else { Cause::Check };
        // Who is named is not counted; and of whom else one has lied is told in any case.
        if self.blames.is_empty() {
            self.ask(stock::Ask::Failed { holders, cause, phase });
        }
        let (local, liars) = (self.setting.local, self.setting.threshold.t());
        for pair in disputes {
            self.ask(stock::Ask::Spoiled { local, signers: pair.to_vec(), liars });
        }
    }

    /// A set of holders in which somebody cheated makes no program with this party, whichever request has found it. Says whether it is news.
    pub(super) fn learn_of(&mut self, quarantine: &Quarantine) -> bool {
        let is_news = quarantine.is_news(&self.setting.quarantined);
        if is_news {
            self.setting.quarantined.push(quarantine.clone());
        }
        is_news
    }

    /// Ends if there is no set of holders any more with which this party could make a program.
    pub(super) fn give_up_without_a_set(&mut self) {
        let last = self.setting.quarantined.last();
        let Some(Quarantine { phase, party, .. }) = last.cloned() else { return };
        if !self.setting.has_any(&self.excluded) {
            self.fail(Abort::Quarantined { phase, party });
        }
    }

    /// A program has ended well.
    fn presigned(&mut self, attempt: u16, Presigned { presignatures, signature }: Presigned<GroupOf<C>>) {
        let Some(mut run) = self.runs.remove(&attempt) else { return };
        self.setting.rehearsals.iter().for_each(Rehearsals::note_a_good_end);
        if run.has_met() && self.counts_silence() {
            self.ask(stock::Ask::EndedWell);
        }
        if !presignatures.is_empty() {
            let presignatures: Vec<_> = presignatures.into_iter().map(C::any).collect();
            let (most, day) = (self.setting.most_of_owner(presignatures.len()), self.setting.day);
            let made = run.take_making();
            self.ask(stock::Ask::Keep { presignatures, most, day, made });
        }
        let signers = run.holders().to_vec();
        self.ask(stock::Ask::Trust(signers.iter().copied().map(PartyId::of_share).collect()));
        match signature {
            Some(signature) => {
                let signed = Signed { bytes: self.setting.encode(signature), signers };
                if self.setting.coordinator(attempt) == self.setting.local {
                    self.tell_others(&signed);
                }
                self.announce(signed);
            }
            None => self.end(State::Filled(signers)),
        }
    }

    /// Whether to take part in a coordinator's program. Clocks are not the same, and attempts fail here and not there: it may be one of a later
    /// attempt, or of an earlier one. Of each coordinator there is one program at a time, the latest.
    pub(super) fn may_run(&mut self, coordinator: PartyId, attempt: u16) -> bool {
        let most = match self.setting.majority {
            Majority::Honest => MOST_PREPARED,
            Majority::Dishonest => {
                MOST_PREPARED_BY_LIARS.checked_div(self.setting.threshold.t().into()).unwrap_or(MOST_PREPARED).max(2)
            }
        };
        let prepared = self.prepared.entry(coordinator).or_default();
        let is_news = prepared.last.is_none_or(|last| attempt > last);
        if !is_news || prepared.named >= MOST_PREPARED || prepared.met >= most {
            return false;
        }
        prepared.named += 1;
        if let Some(before) = prepared.last.replace(attempt) {
            self.runs.remove(&before);
        }
        true
    }

    /// Takes a message of a program, or keeps it until the program is named.
    pub(super) fn take_round(&mut self, from: PartyId, attempt: u16, message: Round) {
        if self.runs.contains_key(&attempt) {
            return self.step(attempt, |run, rng| run.receive(from, message, rng));
        }
        let current = self.attempt;
        let kept = self.early.entry(from).or_default();
        kept.push((attempt, message));
        // The nearest attempts are the ones that count. A liar that names programs far ahead makes honest parties send messages of those, too.
        while kept.len() > EARLY.0 || kept.iter().map(|(_, it)| it.payload.len()).sum::<usize>() > EARLY.1 {
            let last = kept
                .iter()
                .enumerate()
                .max_by_key(|(place, (attempt, it))| (attempt.abs_diff(current), it.round, *place));
            let Some(place) = last.map(|(place, _)| place) else { return };
            kept.remove(place);
        }
    }
}
