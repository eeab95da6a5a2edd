//! The state machine: every party is a signer, and a coordinator when its turn comes.

mod attempts;
mod openings;
mod programs;
mod rehearsals;
mod signing;
mod views;

use core::mem;
use std::collections::{BTreeMap, BTreeSet};

use rand_core::{CryptoRng, Rng};
use theta_groups::{Secret, SecretRng};
use theta_mpc::ecdsa::Blinded;
use theta_rounds::{Abort, Action, Blames, Bug, Outgoing, PartyId, Progress, Protocol, Recipient, Slot};
use theta_sharing::ShareIndex;

use super::collected::Collected;
use super::curves::StockCurve;
use super::failures::Failures;
use super::message::{Body, EcdsaMessage, GAVE_UP, PREPARE, PROGRAM, SHARE, SIGNATURE, Signed, VIEW, longest};
use super::run::{Round, Run};
use super::setting::Setting;
use super::stock::{self, Supply};
use crate::{Misbehaviour, Outcome};

use openings::Openings;
pub use rehearsals::Rehearsals;

type GroupOf<C> = <C as theta_schemes::signatures::ecdsa::EcdsaCurve>::Group;
type ElementOf<C> = <GroupOf<C> as theta_groups::Group>::Element;
type Actions<C> = theta_rounds::Actions<EcdsaMessage<GroupOf<C>>, crate::Ask>;

/// For so many ticks a program may run, as long as its rounds go on.
const MOST_TICKS: u32 = 7;
/// Attempts to make presignatures when nothing is signed.
const FILLING_ATTEMPTS: u16 = 2;

/// One request for a signature at one party, or the filling of stocks, which signs nothing.
pub(super) struct RobustEcdsa<C: StockCurve> {
    setting: Setting<C>,
    state: State,
    /// What to send and to ask next.
    out: Actions<C>,
    excluded: BTreeSet<PartyId>,
    /// The programs that failed.
    failures: Failures,
    /// Parties that kept an attempt waiting and have not been heard since.
    late: BTreeSet<PartyId>,
    attempt: u16,
    /// How often this party has had its turn.
    turns: u32,
    /// For how many of its turns each coordinator was followed to a later one.
    followed: BTreeMap<PartyId, u16>,
    /// Holders that this party's next program should do without: those that the stock doubted when it was asked.
    doubted: Vec<PartyId>,
    /// How many presignatures of this party's own the stock had left when it was asked.
    left: usize,
    /// The ticks of this attempt, and the round of its program at the last one.
    ticks: u32,
    round: u16,
    /// The attempt for which the stock was asked.
    drawing: Option<u16>,
    collected: Collected<GroupOf<C>>,
    /// The last R that was re-randomised, and what came of it.
    blinded: Option<(ElementOf<C>, Blinded<GroupOf<C>>)>,
    runs: BTreeMap<u16, Run<GroupOf<C>>>,
    /// Programs that have failed and been thrown away.
    openings: Openings,
    /// The holders that make presignatures in a filling in which this party does not any more.
    filled_by: Vec<ShareIndex>,
    /// Messages of programs that have not been named yet.
    early: BTreeMap<PartyId, Vec<(u16, Round)>>,
    /// What each coordinator has named.
    prepared: BTreeMap<PartyId, Prepared>,
    /// Whoever has named a program since this attempt began.
    named: BTreeSet<PartyId>,
    /// The number of this party's last message, and the kind of its messages of programs: both begin at random.
    number: u16,
    kind: u16,
    /// The number of the last message of a program to each party.
    to_each: BTreeMap<PartyId, u16>,
    /// For the programs.
    rng: Option<SecretRng>,
    blames: Blames<Misbehaviour>,
}

/// The programs that a coordinator has named.
#[derive(Clone, Copy, Default)]
struct Prepared {
    /// How many since this party began or was put aside.
    named: usize,
    /// In how many of these this party has sent more than the first rounds, in which holders find that they mean the same. Whoever was away hears of many
    /// at once that are over, and they cost nothing.
    met: usize,
    /// The last attempt of all.
    last: Option<u16>,
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
            failures: Failures::default(),
            late: BTreeSet::new(),
            attempt: 0,
            turns: 0,
            followed: BTreeMap::new(),
            doubted: Vec::new(),
            left: 0,
            ticks: 0,
            round: 0,
            drawing: None,
            collected,
            blinded: None,
            runs: BTreeMap::new(),
            openings: Openings::default(),
            filled_by: Vec::new(),
            early: BTreeMap::new(),
            prepared: BTreeMap::new(),
            named: BTreeSet::new(),
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
        let mut rng = SecretRng::new(&seed);
        let drawn = rng.next_u32();
        self.number = u16::try_from(drawn >> 16).unwrap_or(0);
        self.rng = Some(rng);
        self.begin_kind(drawn);
        self.state = State::Running;
        self.give_up_without_a_set();
        if self.is_running() {
            self.turn();
        }
    }

    /// Messages of programs get another kind, so that their slots are new whatever others remember of those before.
    fn begin_kind(&mut self, drawn: u32) {
        self.kind = u16::try_from(drawn & 0xffff).unwrap_or(0).max(PROGRAM);
        self.to_each.clear();
    }

    fn send(&mut self, to: Recipient, body: Body<GroupOf<C>>) {
        // Numbers may wrap: nobody gets 65,536 messages of one kind, because receivers have no room for so many, and after a rest the kind is another one.
        let (kind, last) = match (&body, to) {
            (Body::Share { .. }, _) => (SHARE, &mut self.number),
            (Body::Signature(_), _) => (SIGNATURE, &mut self.number),
            (Body::Prepare { .. }, _) => (PREPARE, &mut self.number),
            (Body::GaveUp { .. }, _) => (GAVE_UP, &mut self.number),
            (Body::View { .. }, _) => (VIEW, &mut self.number),
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

    /// Nothing more is asked after the end.
    fn end(&mut self, state: State) {
        if !self.is_running() {
            return;
        }
        self.close_views();
        // What others have named is still taken out, and wiped.
        self.out.retain(|action| !matches!(action, Action::Ask(crate::Ask::Presignatures(stock::Ask::Draw { .. }))));
        self.state = state;
    }

    fn fail(&mut self, abort: Abort) {
        if self.is_running() {
            self.close_views();
            self.state = State::Failed(abort);
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
                let is_first = self.collected.add(from, id, element, share)?;
                if !self.collected.is_known(&id) && self.collected.begins_take(from) {
                    // Whoever has its turn, or takes it already, may name what a program is about to bring here.
                    let next = self.attempt.saturating_add(1);
                    let has_turn =
                        [self.attempt, next].iter().any(|attempt| self.setting.coordinator(*attempt) == from);
                    let waits = has_turn && self.setting.shares_programs() && self.setting.keeps_stock();
                    self.ask(stock::Ask::Take { owner: from, id, waits, again: false });
                }
                if is_first {
                    self.combine(&id, &element, from);
                }
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
                self.named.insert(from);
                if self.may_run(from, attempt) {
                    // It would have named a presignature if it had one of its own that may sign: any of them, unless somebody was late before.
                    if self.setting.is_fixed() || attempt == 0 {
                        self.spare(from);
                    }
                    self.follow(attempt);
                    self.run(attempt, holders, count);
                }
            }
            Body::GaveUp { attempt, gave_up } => self.hear_of_giving_up(from, attempt, gave_up)?,
            Body::View { attempt, view } => self.hear_a_view(from, attempt, view),
            Body::Program { attempt, round, payload } => {
                self.take_round(from, attempt, Round { life: message.slot.kind, round, payload });
            }
        }
        Ok(())
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
            Supply::Drawn { presignature, doubted, left, quarantined } => {
                // A cheat may have been found while this waited.
                let mut is_news = false;
                for quarantine in &quarantined {
                    is_news |= self.learn_of(quarantine);
                }
                if is_news {
                    self.give_up_without_a_set();
                }
                // Whatever has come, this attempt waits for it no more. Where nothing signs, a program does, at once.
                let is_awaited = self.drawing.take() == Some(self.attempt);
                let signs = presignature.is_some_and(|presignature| self.sign(presignature));
                (self.doubted, self.left) = (doubted, left);
                if is_awaited && !signs && self.is_running() {
                    self.prepare();
                }
            }
            Supply::Taken { owner, presignature: Some(presignature), .. } => {
                self.collected.end_take(owner);
                // Answers from before a rest come on top of those that were asked for after it.
                if self.collected.has_room(owner) {
                    self.sign(presignature);
                }
            }
            Supply::Taken { owner, presignature: None, .. } => {
                self.collected.end_take(owner);
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
        self.wait_for_views();
        self.drop_hung();
        // Nobody has a turn any more.
        if self.is_spent_filling() {
            return self.end_filling();
        }
        let round = self.runs.get(&self.attempt).map_or(0, Run::round);
        let goes_on = round > self.round && self.ticks < MOST_TICKS;
        self.round = round;
        if !goes_on {
            self.advance();
        }
    }

    fn rest(&mut self) {
        // One that stood still is remembered as any that comes to nothing; others had no time.
        if let Some(run) = self.runs.get(&self.attempt).filter(|run| run.stands_still()) {
            self.failures.note_unless_alone(run);
            self.late.extend(run.missing().filter(|party| *party != self.setting.local));
        }
        self.runs.clear();
        self.close_views();
        self.early.clear();
        // Whoever asks again pays for other programs. Each coordinator has its attempts before it still behind it.
        self.prepared.values_mut().for_each(|prepared| (prepared.named, prepared.met) = (0, 0));
        let drawn = self.rng.as_mut().map_or(0, |rng| rng.next_u32());
        self.begin_kind(drawn);
        // Answers of the stock that are under way may be lost.
        self.drawing = None;
        self.collected.rest();
    }

    fn outlives_rest(&self, slot: Slot) -> bool {
        matches!(slot.kind, SHARE | SIGNATURE)
    }

    fn exclude(&mut self, party: PartyId) {
        self.excluded.insert(party);
        self.collected.remove(party);
        self.early.remove(&party);
        // Nobody waits for what it knows of those that failed.
        self.openings.open.retain(|_, opening| !opening.holders.contains(&party));
        // A program does not end without one of its holders.
        let lost = self.runs.iter().filter(|(_, run)| run.holders().contains(&party.share()));
        for attempt in lost.map(|(attempt, _)| *attempt).collect::<Vec<_>>() {
            self.runs.remove(&attempt);
            self.failed_by_a_liar(attempt);
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
