//! The state machine: every party is a signer, and a coordinator when its turn comes.

use core::mem;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rand_chacha::ChaCha20Rng;
use rand_core::{CryptoRng, Rng};
use theta_groups::Secret;
use theta_mpc::ecdsa::{Presigned, vartime_combine};
use theta_rounds::{Abort, Action, Blames, Bug, Evidence as _, Outgoing, PartyId, Progress, Protocol, Recipient, Slot};
use theta_sharing::ShareIndex;

use super::collected::{Collected, Complete};
use super::curves::{AnyPresignature, StockCurve};
use super::message::{Body, EcdsaMessage, PREPARE, PROGRAM, SHARE, SIGNATURE, Signed, longest};
use super::run::{Draws, Round, Run, Step};
use super::setting::Setting;
use super::stock::{self, Supply};
use super::{Majority, Quarantine, Security};
use crate::{Misbehaviour, Outcome};

type GroupOf<C> = <C as theta_schemes::signatures::ecdsa::EcdsaCurve>::Group;
type Actions<C> = theta_rounds::Actions<EcdsaMessage<GroupOf<C>>, crate::Ask>;

/// For so many ticks a program may run, as long as its rounds go on.
const MOST_TICKS: u32 = 7;
/// The most messages of one party that wait for their program to be named, and their bytes.
const EARLY: (usize, usize) = (4, 1 << 16);
/// The most programs that one coordinator names in an instance.
const MOST_PREPARED: usize = 32;
/// Attempts to make presignatures when nothing is signed.
const FILLING_ATTEMPTS: u16 = 2;

/// One request for a signature at one party, or the filling of stocks, which signs nothing.
pub(super) struct RobustEcdsa<C: StockCurve> {
    setting: Setting<C>,
    state: State,
    /// What to send and to ask next.
    out: Actions<C>,
    excluded: BTreeSet<PartyId>,
    /// In how many programs that failed each holder was.
    failures: BTreeMap<PartyId, u32>,
    /// Parties that kept an attempt waiting and have not been heard since.
    late: BTreeSet<PartyId>,
    attempt: u16,
    /// The ticks of this attempt, and the round of its program at the last one.
    ticks: u32,
    round: u16,
    /// The attempt for which the stock was asked.
    drawing: Option<u16>,
    collected: Collected<GroupOf<C>>,
    runs: BTreeMap<u16, Run<GroupOf<C>>>,
    /// Messages of programs that have not been named yet.
    early: BTreeMap<PartyId, Vec<(u16, Round)>>,
    /// How many programs each coordinator has named, and the last attempt among them.
    prepared: BTreeMap<PartyId, (usize, u16)>,
    /// The number of this party's last message, and the kind of its messages of programs: both begin at random.
    number: u16,
    kind: u16,
    /// The number of the last message of a program to each party.
    to_each: BTreeMap<PartyId, u16>,
    /// For the programs.
    rng: Option<Draws>,
    blames: Blames<Misbehaviour>,
}

enum State {
    AwaitingStart,
    Running,
    Signed(Signed),
    /// Presignatures were made and nothing else, by these holders; by none if that failed.
    Filled(Vec<ShareIndex>),
    Failed(Abort),
}

impl<C: StockCurve> RobustEcdsa<C> {
    pub(super) fn new(setting: Setting<C>) -> Self {
        let collected = Collected::of(setting.threshold.n());
        Self {
            setting,
            state: State::AwaitingStart,
            out: Vec::new(),
            excluded: BTreeSet::new(),
            failures: BTreeMap::new(),
            late: BTreeSet::new(),
            attempt: 0,
            ticks: 0,
            round: 0,
            drawing: None,
            collected,
            runs: BTreeMap::new(),
            early: BTreeMap::new(),
            prepared: BTreeMap::new(),
            number: 0,
            kind: PROGRAM,
            to_each: BTreeMap::new(),
            rng: None,
            blames: Vec::new(),
        }
    }

    const fn is_running(&self) -> bool {
        matches!(self.state, State::Running)
    }

    fn begin(&mut self, rng: &mut dyn CryptoRng) {
        let mut seed = Secret::new([0; 32]);
        rng.fill_bytes(seed.expose_mut());
        let mut rng = Draws::from(&seed);
        let drawn = rng.next_u32();
        self.number = u16::try_from(drawn >> 16).unwrap_or(0);
        self.kind = u16::try_from(drawn & 0xffff).unwrap_or(0).max(PROGRAM);
        self.rng = Some(rng);
        self.state = State::Running;
        self.give_up_without_a_set();
        if self.is_running() {
            self.turn();
        }
    }

    fn send(&mut self, to: Recipient, body: Body<GroupOf<C>>) {
        // Numbers may wrap: nobody gets 65,536 messages of one kind, because receivers keep too few bytes.
        let (kind, last) = match (&body, to) {
            (Body::Share { .. }, _) => (SHARE, &mut self.number),
            (Body::Signature(_), _) => (SIGNATURE, &mut self.number),
            (Body::Prepare { .. }, _) => (PREPARE, &mut self.number),
            (Body::Program { .. }, Recipient::Party(party)) => {
                let rng = self.rng.as_mut();
                let begin = || rng.map_or(0, |rng| u16::try_from(rng.next_u32() >> 16).unwrap_or(0));
                (self.kind, self.to_each.entry(party).or_insert_with(begin))
            }
            (Body::Program { .. }, _) => (self.kind, &mut self.number),
        };
        *last = last.wrapping_add(1);
        let slot = Slot { kind, number: *last };
        self.out.push(Action::Send(Outgoing { to, message: EcdsaMessage { slot, body } }));
    }

    fn ask(&mut self, ask: stock::Ask) {
        self.out.push(Action::Ask(crate::Ask::Presignatures(ask)));
    }

    /// Does what a coordinator does, if it is this party's turn.
    fn turn(&mut self) {
        for _ in 0..self.setting.threshold.n() {
            let coordinator = self.setting.coordinator(self.attempt);
            if !self.excluded.contains(&coordinator) {
                break;
            }
            self.attempt = self.attempt.saturating_add(1);
        }
        if self.setting.digest.is_none() && self.attempt >= FILLING_ATTEMPTS {
            return self.end(State::Filled(Vec::new()));
        }
        if self.setting.coordinator(self.attempt) != self.setting.local {
            return;
        }
        // Others take out no more of one owner's, and hear no more shares of one party.
        let may_draw = self.setting.most_kept() > 0 && self.collected.may_take(self.setting.local);
        if self.setting.digest.is_some() && may_draw {
            self.drawing = Some(self.attempt);
            return self.ask(stock::Ask::Draw { owner: self.setting.local, without: self.unwanted() });
        }
        let avoided = self.setting.avoided.clone();
        self.prepare(&avoided);
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
    fn prepare(&mut self, doubted: &[PartyId]) {
        let Some(rng) = self.rng.as_mut() else { return };
        let (failures, late, quarantined) = (&self.failures, &self.late, &self.setting.quarantined);
        let may_run = |holders: &[ShareIndex]| quarantined.iter().all(|it| it.holders != holders);
        let chosen = self.setting.choose(&self.excluded, failures, late, doubted, may_run, &mut **rng);
        let Some(holders) = chosen else { return };
        let (attempt, count) = (self.attempt, self.setting.count());
        if self.setting.digest.is_none() && count == 0 {
            // Whoever keeps no stock of this key has nothing to fill it with.
            return self.end(State::Filled(Vec::new()));
        }
        self.send(Recipient::All, Body::Prepare { attempt, count, holders: holders.clone() });
        self.run(attempt, holders, count);
    }

    /// Takes part in the program of an attempt, if this party is one of its holders.
    fn run(&mut self, attempt: u16, holders: Vec<ShareIndex>, count: u16) {
        if self.runs.contains_key(&attempt) {
            return;
        }
        let takes_part = holders.contains(&self.setting.local.share());
        if !takes_part {
            // Others make presignatures; those are of no use here.
            // What this party is making already it goes on with, whatever a later coordinator names.
            if self.setting.digest.is_none() && self.runs.is_empty() {
                self.end(State::Filled(holders));
            }
            return;
        }
        if !self.may_run_with(&holders) {
            return;
        }
        let setting = self.setting.presigning(holders, count);
        let kind = (self.setting.majority, self.setting.security);
        match Run::new(self.setting.local, self.setting.threshold.k(), kind, setting) {
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
    fn step(
        &mut self,
        attempt: u16,
        step: impl FnOnce(&mut Run<GroupOf<C>>, &mut ChaCha20Rng) -> Vec<Step<GroupOf<C>>>,
    ) {
        let (Some(run), Some(rng)) = (self.runs.get_mut(&attempt), self.rng.as_mut()) else { return };
        for step in step(run, rng) {
            match step {
                Step::Send { to, round, payload } => {
                    self.note_begin(attempt, round);
                    self.send(Recipient::Party(to), Body::Program { attempt, round, payload });
                }
                Step::Blame(party, misbehaviour) => {
                    self.quarantine(attempt, misbehaviour.name(), Some(party));
                    self.blames.push((party, misbehaviour));
                }
                Step::Ended(Ok(presigned)) => self.presigned(attempt, presigned),
                Step::Ended(Err(Abort::Bug(bug))) => self.fail(Abort::Bug(bug)),
                Step::Ended(Err(abort)) => {
                    if let Abort::Cheated(phase) = abort
                        && phase != theta_mpc::BEGAN_APART
                    {
                        self.quarantine(attempt, phase, None);
                    }
                    if let Some(run) = self.runs.remove(&attempt) {
                        self.note_failure(run.holders());
                        self.doubt(run.holders().iter().copied().map(PartyId::of_share).collect());
                    }
                    self.failed(attempt);
                }
            }
        }
    }

    /// A filling of holders all of whom it takes uses what is hidden from a message of this round on. It counts until it ends well: who has seen what the
    /// others reveal, and falls silent, keeps to itself that a check fails, and nobody is put in quarantine. Programs that sign do not count, as somebody
    /// has asked for each.
    fn note_begin(&mut self, attempt: u16, round: u16) {
        let counts = self.setting.digest.is_none() && self.setting.majority == Majority::Dishonest;
        let Some(run) = self.runs.get_mut(&attempt).filter(|_| counts) else { return };
        if run.note(round) {
            self.ask(stock::Ask::Begun);
        }
    }

    /// Whether a program of these holders may run with this party: nobody is known to have cheated among them.
    fn may_run_with(&self, holders: &[ShareIndex]) -> bool {
        self.setting.quarantined.iter().all(|quarantine| quarantine.holders != holders)
    }

    /// Somebody cheated in the program of an attempt. Where it takes every one of its holders, they make no other one: each gives a cheat one more
    /// guess at what the honest ones hide, and it would never end.
    fn quarantine(&mut self, attempt: u16, phase: &'static str, party: Option<PartyId>) {
        let Some(run) = self.runs.get(&attempt).filter(|_| self.setting.majority == Majority::Dishonest) else {
            return;
        };
        let holders = run.holders().to_vec();
        if !self.may_run_with(&holders) {
            return;
        }
        // Of two, it is the other one.
        let others = || holders.iter().copied().map(PartyId::of_share).filter(|party| *party != self.setting.local);
        let party = party.or_else(|| others().next().filter(|_| holders.len() == 2));
        let quarantine = Quarantine { holders, phase: Cow::Borrowed(phase), party };
        self.setting.quarantined.push(quarantine.clone());
        self.ask(stock::Ask::Quarantine(quarantine));
        self.give_up_without_a_set();
    }

    /// Ends if there is no set of holders any more with which this party could make a program.
    fn give_up_without_a_set(&mut self) {
        let last = self.setting.quarantined.last();
        let Some(Quarantine { phase, party, .. }) = last.cloned() else { return };
        if !self.setting.has_any(&self.excluded, |holders| self.may_run_with(holders)) {
            self.fail(Abort::Quarantined { phase, party });
        }
    }

    /// A program has ended well.
    fn presigned(&mut self, attempt: u16, Presigned { presignatures, signature }: Presigned<GroupOf<C>>) {
        let Some(run) = self.runs.remove(&attempt) else { return };
        if run.is_noted() {
            self.ask(stock::Ask::EndedWell);
        }
        if !presignatures.is_empty() {
            let presignatures = presignatures.into_iter().map(C::any).collect();
            let (most, day) = (self.setting.most_kept(), self.setting.day);
            self.ask(stock::Ask::Keep { presignatures, most, day });
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

    /// Tells those who had no part in a program: they wait for the signature. Holders end with the program; before that, they would not keep what it
    /// has made.
    fn tell_others(&mut self, signed: &Signed) {
        let others: Vec<PartyId> =
            self.setting.others().filter(|party| !signed.signers.contains(&party.share())).collect();
        let slot = Slot { kind: SIGNATURE, number: self.number.wrapping_add(1) };
        for party in others {
            // The same message for all of them, and for who asks for it: see `announce`.
            let message = EcdsaMessage { slot, body: Body::Signature(signed.clone()) };
            self.out.push(Action::Send(Outgoing { to: Recipient::Party(party), message }));
        }
    }

    /// Ends with a signature, which whoever lacks it can have.
    fn announce(&mut self, signed: Signed) {
        self.send(Recipient::OnRequest, Body::Signature(signed.clone()));
        self.end(State::Signed(signed));
    }

    /// Nothing more is asked after the end.
    fn end(&mut self, state: State) {
        if !self.is_running() {
            return;
        }
        // What others have named is still taken out, and wiped.
        self.out.retain(|action| !matches!(action, Action::Ask(crate::Ask::Presignatures(stock::Ask::Draw { .. }))));
        self.state = state;
    }

    fn fail(&mut self, abort: Abort) {
        if self.is_running() {
            self.state = State::Failed(abort);
        }
    }

    /// A program came to nothing, and it is not known whose fault that was. Whoever is missing here may wait for another one.
    fn note_failure(&mut self, holders: &[ShareIndex]) {
        for holder in holders {
            let failures = self.failures.entry(PartyId::of_share(*holder)).or_default();
            *failures = failures.saturating_add(1);
        }
    }

    fn doubt(&mut self, parties: Vec<PartyId>) {
        let others: Vec<PartyId> = parties.into_iter().filter(|party| *party != self.setting.local).collect();
        if !others.is_empty() {
            self.ask(stock::Ask::Doubt(others));
        }
    }

    /// An attempt has come to nothing.
    fn failed(&mut self, attempt: u16) {
        if self.is_running() && attempt == self.attempt {
            self.advance();
        }
    }

    /// Goes on to the next coordinator.
    fn advance(&mut self) {
        let coordinator = self.setting.coordinator(self.attempt);
        let mut late: BTreeSet<PartyId> = self.collected.missing(coordinator).collect();
        match self.runs.get(&self.attempt) {
            Some(run) => late.extend(run.missing()),
            None if late.is_empty() && coordinator != self.setting.local => drop(late.insert(coordinator)),
            None => {}
        }
        if let Some(holders) = self.runs.get(&self.attempt).map(|run| run.holders().to_vec()) {
            self.note_failure(&holders);
        }
        late.remove(&self.setting.local);
        self.doubt(late.iter().copied().collect());
        self.late.extend(late);
        self.next_attempt();
    }

    /// Begins the attempt of the next coordinator.
    fn next_attempt(&mut self) {
        self.attempt = self.attempt.saturating_add(1);
        (self.ticks, self.round) = (0, 0);
        let oldest = self.attempt.saturating_sub(1);
        let setting = &self.setting;
        // Those of others go on: they may have failed nowhere but here.
        self.runs.retain(|attempt, _| *attempt >= oldest || setting.coordinator(*attempt) != setting.local);
        self.turn();
    }

    /// Takes a presignature out of the stock's answer, and sends this party's share. Returns whether it serves this key; one that does not is
    /// wiped.
    fn sign(&mut self, presignature: AnyPresignature) -> bool {
        let (Some(presignature), Some(message)) = (C::of(presignature), self.setting.message()) else { return false };
        // A stock belongs to a key, whose security never changes: this is for mistakes of ours, which could cost the key.
        if presignature.is_active() != (self.setting.security == Security::Active) {
            return false;
        }
        let (id, element) = (presignature.id(), *presignature.element());
        let signers = presignature.signers().iter().copied().map(PartyId::of_share).collect();
        self.collected.know(id, element, signers, PartyId::of_share(presignature.owner()));
        if let Some(share) = presignature.share(&message) {
            // From here on it is public.
            let share = *share.expose();
            self.send(Recipient::All, Body::Share { id, element, share });
            // This party names no more than it has turns.
            let _ = self.collected.add(self.setting.local, id, element, share);
        }
        self.combine(&id);
        true
    }

    /// Makes the signature, if all shares of a presignature are there.
    fn combine(&mut self, id: &[u8; 32]) {
        let Some(Complete { element, first, shares }) = self.collected.complete(id, self.setting.needed()) else {
            return;
        };
        let Some(message) = self.setting.message() else { return };
        let signers: Vec<PartyId> = shares.iter().map(|(party, _)| *party).collect();
        let public_key = self.setting.public.public_key();
        let sum = shares.into_iter().map(|(_, share)| share);
        match vartime_combine::<GroupOf<C>>(public_key, &element, &message, sum) {
            Some(signature) => {
                let indices = signers.iter().map(|party| party.share()).collect();
                let signed = Signed { bytes: self.setting.encode(signature), signers: indices };
                self.ask(stock::Ask::Trust(signers));
                self.announce(signed);
            }
            // One of them has lied, and it cannot be told which: the masks hide it.
            None => {
                self.doubt(signers);
                if self.setting.coordinator(self.attempt) == first {
                    self.advance();
                }
            }
        }
    }

    fn receive(&mut self, from: PartyId, message: EcdsaMessage<GroupOf<C>>) -> Result<(), Misbehaviour> {
        self.late.remove(&from);
        match message.body {
            // Only presignatures are made here.
            Body::Share { .. } | Body::Signature(_) if self.setting.digest.is_none() => {
                return Err(Misbehaviour::MalformedRound);
            }
            Body::Share { id, element, share } => {
                self.collected.add(from, id, element, share)?;
                if self.collected.may_take(from) {
                    self.ask(stock::Ask::Take { owner: from, id });
                }
                self.combine(&id);
            }
            Body::Signature(signed) => {
                let known = signed.signers.iter().all(|index| self.setting.threshold.contains(*index));
                if !known || signed.signers.len() < self.setting.needed() || !self.setting.verifies(&signed.bytes) {
                    return Err(Misbehaviour::InvalidSignature);
                }
                self.announce(signed);
            }
            Body::Prepare { attempt, count, holders } => {
                let is_coordinator = self.setting.coordinator(attempt) == from;
                let ends_before = self.setting.digest.is_none() && attempt >= FILLING_ATTEMPTS;
                let makes_too_many = usize::from(count) > self.setting.most_at_once();
                let makes_nothing = self.setting.digest.is_none() && count == 0;
                let fits = self.setting.can_run(&holders) && holders.contains(&from.share());
                if ends_before || !is_coordinator || !fits || makes_too_many || makes_nothing {
                    return Err(Misbehaviour::InvalidProgram);
                }
                if self.may_run(from, attempt) {
                    if self.setting.is_fixed() && self.setting.digest.is_some() {
                        // It would have named a presignature if it had one of its own. Nobody else names those: here they only take up room. But it
                        // may have named many in vain in this request, and have others: they are wiped for new ones alone.
                        self.ask(stock::Ask::Spare(from));
                    }
                    self.run(attempt, holders, count);
                }
            }
            Body::Program { attempt, round, payload } => {
                self.take_round(from, attempt, Round { life: message.slot.kind, round, payload });
            }
        }
        Ok(())
    }

    /// Whether to take part in a coordinator's program. Clocks are not the same, and attempts fail here and not there: it may be one of a later
    /// attempt, or of an earlier one. Of each coordinator there is one program at a time, the latest.
    fn may_run(&mut self, coordinator: PartyId, attempt: u16) -> bool {
        let named = self.prepared.entry(coordinator).or_insert((0, attempt));
        let is_news = named.0 == 0 || attempt > named.1;
        if !is_news || named.0 >= MOST_PREPARED {
            return false;
        }
        let before = mem::replace(named, (named.0 + 1, attempt)).1;
        if before < attempt {
            self.runs.remove(&before);
        }
        true
    }

    /// Takes a message of a program, or keeps it until the program is named.
    fn take_round(&mut self, from: PartyId, attempt: u16, message: Round) {
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

    fn take_blames(&mut self) -> Result<(), Blames<Misbehaviour>> {
        let blames = mem::take(&mut self.blames);
        if blames.is_empty() { Ok(()) } else { Err(blames) }
    }
}

impl<C: StockCurve> Protocol for RobustEcdsa<C> {
    type Message = EcdsaMessage<GroupOf<C>>;
    type Output = Outcome;
    type Misbehaviour = Misbehaviour;
    type Ask = crate::Ask;
    type Supply = crate::Supply;

    fn longest(&self, slot: Slot) -> usize {
        longest::<GroupOf<C>>(self.setting.threshold.n(), self.setting.majority, slot)
    }

    fn act(&mut self, rng: &mut dyn CryptoRng) -> Result<Actions<C>, Bug> {
        if matches!(self.state, State::AwaitingStart) {
            self.begin(rng);
        }
        Ok(mem::take(&mut self.out))
    }

    fn update(&mut self, from: PartyId, message: Self::Message) -> Result<(), Blames<Misbehaviour>> {
        if !self.is_running() {
            return Ok(());
        }
        if let Err(misbehaviour) = self.receive(from, message) {
            self.blames.push((from, misbehaviour));
        }
        self.take_blames()
    }

    fn supply(&mut self, supply: crate::Supply) -> Result<(), Blames<Misbehaviour>> {
        let crate::Supply::Presignature(supply) = supply else { return Ok(()) };
        if !self.is_running() {
            return Ok(());
        }
        match supply {
            Supply::Drawn { presignature, doubted } => {
                // Whatever has come, this attempt waits for it no more. Where nothing signs, a program does, at once.
                let is_awaited = self.drawing.take() == Some(self.attempt);
                let signs = presignature.is_some_and(|presignature| self.sign(presignature));
                if is_awaited && !signs {
                    self.prepare(&doubted);
                }
            }
            Supply::Taken { presignature: Some(presignature), .. } => {
                self.sign(presignature);
            }
            Supply::Taken { owner, presignature: None, .. } => {
                // Where all must sign, nobody can with a presignature that this party lacks, as it does after a restart: no tick has to pass.
                if self.setting.is_fixed() && owner == self.setting.coordinator(self.attempt) {
                    self.next_attempt();
                }
            }
        }
        self.take_blames()
    }

    fn expire(&mut self) {
        if !self.is_running() {
            return;
        }
        self.ticks += 1;
        let round = self.runs.get(&self.attempt).map_or(0, Run::round);
        let goes_on = round > self.round && self.ticks < MOST_TICKS;
        self.round = round;
        if !goes_on {
            self.advance();
        }
    }

    fn exclude(&mut self, party: PartyId) {
        self.excluded.insert(party);
        self.collected.remove(party);
        self.early.remove(&party);
        // A program does not end without one of its holders.
        let lost = self.runs.iter().filter(|(_, run)| run.holders().contains(&party.share()));
        for attempt in lost.map(|(attempt, _)| *attempt).collect::<Vec<_>>() {
            self.runs.remove(&attempt);
            self.failed(attempt);
        }
        let remaining = usize::from(self.setting.threshold.n()).saturating_sub(self.excluded.len());
        if remaining < self.setting.needed() {
            self.fail(Abort::TooFewHonest { remaining, needed: self.setting.needed() });
        }
        self.give_up_without_a_set();
    }

    fn awaits(&self, party: PartyId) -> bool {
        self.is_running() && !self.excluded.contains(&party)
    }

    fn progress(&self) -> Progress {
        match &self.state {
            State::AwaitingStart => Progress::Act,
            _ if !self.out.is_empty() => Progress::Act,
            State::Running => Progress::Waiting,
            State::Signed(_) | State::Filled(_) => Progress::Finalize,
            State::Failed(_) => Progress::Failed,
        }
    }

    fn contributions(&self) -> (usize, usize) {
        let needed = self.setting.needed();
        (self.collected.most().min(needed), needed)
    }

    fn finalize(self) -> Result<Outcome, Abort> {
        match self.state {
            State::Signed(Signed { bytes, signers }) => {
                Ok(Outcome { result: Secret::new(bytes.to_vec()), proof: Vec::new(), contributors: signers })
            }
            State::Filled(contributors) => {
                Ok(Outcome { result: Secret::new(Vec::new()), proof: Vec::new(), contributors })
            }
            State::Failed(abort) => Err(abort),
            State::AwaitingStart | State::Running => Err(Abort::Bug(Bug("asked for a result before there is one"))),
        }
    }
}
