//! Opened views: who lies in a program is named by whoever it lied to, nobody honest is, and nothing is shown of a program of which anything may be of use.

use core::convert::Infallible;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_protocols::ecdsa::{GAVE_UP, PROGRAM, VIEW};
use theta_rounds::simulator::{Adversary, HonestSend, SimRng, Tamper};
use theta_rounds::{Channel, Effect, Input, PartyId, Recipient, Slot};
use theta_schemes::Suite;

use super::support::{Group, Liar, Ran, id};
use crate::supplied::SuppliedMachine;

/// The last round before the share of the key is used, in a program that makes one signature. See `the_border_is_where_it_is`.
const BORDER: u16 = 20;

/// The first round after all know that they have begun together.
const BEGUN: u16 = 4;

/// The rounds of the masked key's opening: its shares, and what contradicts each other.
const OPENING: [u16; 2] = [BORDER + 1, BORDER + 2];

/// The rounds in which all say that they are here, with a byte that nobody reads.
const HERE: [u16; 3] = [8, 12, 17];

/// Attempt and round of a message of a program.
fn of_program(payload: &[u8]) -> (u16, u16) {
    let number = |at: usize| u16::from_be_bytes([payload[at], payload[at + 1]]);
    (number(0), number(2))
}

/// To whom a liar has lied.
type LiedTo = Arc<Mutex<BTreeSet<u16>>>;

/// Lies in one round of all programs, to one holder or to all.
fn lie(round: u16, only: Option<u16>) -> Box<dyn Adversary> {
    noted_lie(round, only, &Arc::default())
}

fn noted_lie(round: u16, only: Option<u16>, lied_to: &LiedTo) -> Box<dyn Adversary> {
    let lied_to = Arc::clone(lied_to);
    Box::new(Tamper(move |_: &mut _, to: PartyId, slot: Slot, payload: Bytes| {
        let mut payload = payload.to_vec();
        if slot.kind >= PROGRAM
            && of_program(&payload).1 == round
            && only.is_none_or(|only| to == id(only))
            && let Some(last) = payload.last_mut()
        {
            *last ^= 1;
            lied_to.lock().unwrap().insert(to.get());
        }
        vec![(slot, payload.into())]
    }))
}

/// By whom a party is named for its rounds, whether they are false or no message.
fn named_by(report: &Ran, liar: u16) -> BTreeSet<u16> {
    let is_named = |name: &str| {
        ["false_round", "false_share", "false_confirmation", "not_an_element", "not_a_scalar"].contains(&name)
    };
    report.blames_of(id(liar)).filter(|(_, blame)| is_named(blame.offence.name())).map(|(by, _)| by.get()).collect()
}

#[test]
fn who_lies_in_a_round_is_named_by_whom_it_lied_to() {
    let group = Group::new(Suite::EcdsaP256, 2, 3);
    let mut false_rounds = 0;
    for round in (BEGUN..=BORDER).filter(|round| !HERE.contains(round)).chain(OPENING) {
        for liar in 1..=3 {
            let others = (1..=3).filter(|other| *other != liar);
            for only in others.map(Some).chain([None]) {
                let lied_to = LiedTo::default();
                let lies = noted_lie(round, only, &lied_to);
                let report = group.run(b"m", round.into(), vec![(liar, lies)]);
                group.check_safe(b"m", &report).unwrap();
                let (named, lied_to) = (named_by(&report, liar), lied_to.lock().unwrap());
                // Not all say something to all in each round; and who is lied to may have given up already.
                let is_right = named.is_empty() == lied_to.is_empty() && named.is_subset(&lied_to);
                assert!(is_right, "round {round}, {liar} to {only:?}: {named:?} of {lied_to:?}");
                false_rounds += Group::offences(&report, liar).iter().filter(|name| **name == "false_round").count();
            }
        }
    }
    assert!(false_rounds > 100, "{false_rounds}");
}

/// Where there are more holders than a program has, the signature comes without the liar.
#[test]
fn the_request_is_delivered_without_the_liar() {
    for round in [5_u16, 10, 13, BORDER - 1, BORDER, OPENING[0], OPENING[1]] {
        let group = Group::new(Suite::EcdsaP256, 3, 7);
        let message = [7, round.to_le_bytes()[0]];
        let liar = group.coordinator(&message) % 7 + 1;
        let report = group.run(&message, round.into(), vec![(liar, lie(round, None))]);
        group.check(&message, &report).unwrap();
        assert!(!named_by(&report, liar).is_empty(), "round {round}");
    }
}

/// A filling has another program at once, and whoever is left out of that shows what it knows of the first all the same: each time that the liar has
/// lied it is named.
#[test]
fn who_is_left_out_of_the_next_program_waits_for_views() {
    let mut times = 0;
    for seed in 0..24_u64 {
        let group = Group::cold(Suite::EcdsaP256, 2, 4);
        let (initiator, liar) = (1, 2 + u16::try_from(seed % 3).unwrap());
        let lied_to = LiedTo::default();
        let report = group.fill((initiator, seed), &[], vec![(liar, noted_lie(BEGUN + 1, None, &lied_to))]);
        let lied_to = lied_to.lock().unwrap();
        assert_eq!(named_by(&report, liar).is_empty(), lied_to.is_empty(), "seed {seed}: {lied_to:?}");
        times += usize::from(!lied_to.is_empty());
    }
    assert!(times > 10, "{times}");
}

/// Lies in a round, and says nothing of these kinds.
struct Withholds(&'static [u16], Box<dyn Adversary>);

impl Adversary for Withholds {
    fn on_send(&mut self, rng: &mut SimRng, to: PartyId, honest: HonestSend) -> Vec<HonestSend> {
        if self.0.contains(&honest.slot.kind) { Vec::new() } else { self.1.on_send(rng, to, honest) }
    }
}

fn withholds(kinds: &'static [u16], round: u16) -> Box<dyn Adversary> {
    Box::new(Withholds(kinds, lie(round, None)))
}

#[test]
fn who_says_nothing_of_a_failed_program_stops_nothing_and_is_not_named() {
    for kinds in [&[GAVE_UP][..], &[VIEW], &[GAVE_UP, VIEW]] {
        for seed in 0..4_u8 {
            let mut group = Group::new(Suite::EcdsaP256, 2, 4);
            group.ticks = 40;
            let liar = group.coordinator(&[seed]) % 4 + 1;
            let report = group.run(&[seed], seed.into(), vec![(liar, withholds(kinds, 13))]);
            group.check(&[seed], &report).unwrap();
            assert!(named_by(&report, liar).is_empty(), "silence is no proof");
        }
    }
}

/// What was sent: by whom, to whom.
#[derive(Clone)]
struct Said {
    from: u16,
    to: u16,
    slot: Slot,
    payload: Bytes,
}

/// Three holders, of whom the third is in the hands of a test, and all that they send.
struct Trio<'a> {
    group: &'a Group,
    machines: BTreeMap<u16, SuppliedMachine>,
    rng: ChaCha8Rng,
    log: Vec<Said>,
    blames: Vec<(u16, u16, &'static str)>,
}

impl<'a> Trio<'a> {
    fn new(group: &'a Group) -> Self {
        let machines = (1..=3).map(|number| (number, group.machine(number, b"m"))).collect();
        Self { group, machines, rng: ChaCha8Rng::seed_from_u64(8), log: Vec::new(), blames: Vec::new() }
    }

    /// Hands these inputs in, and all that comes of them; `hook` says what becomes of a message.
    fn drive(&mut self, inputs: Vec<(u16, Input<Infallible>)>, mut hook: impl FnMut(Said) -> Vec<Said>) {
        let mut waiting: VecDeque<_> = inputs.into();
        while let Some((number, input)) = waiting.pop_front() {
            for effect in self.machines.get_mut(&number).unwrap().handle(input, &mut self.rng) {
                let (to, slot, payload) = match effect {
                    Effect::Send { to, slot, payload, .. } => (to, slot, payload),
                    Effect::Blame(blame) => {
                        self.blames.push((number, blame.party.get(), blame.offence.name()));
                        continue;
                    }
                    _ => continue,
                };
                let to: Vec<u16> = match to {
                    Recipient::Party(party) => vec![party.get()],
                    Recipient::All => (1..=3).filter(|other| *other != number).collect(),
                    Recipient::OnRequest => Vec::new(),
                };
                for said in
                    to.into_iter().flat_map(|to| hook(Said { from: number, to, slot, payload: payload.clone() }))
                {
                    self.log.push(said.clone());
                    waiting.push_back((said.to, said.input()));
                }
            }
        }
    }

    fn start(&mut self, hook: impl FnMut(Said) -> Vec<Said>) {
        self.drive((1..=3).map(|number| (number, Input::Start)).collect(), hook);
    }

    /// Who has sent a message of this kind about an attempt.
    fn senders(&self, kind: u16, attempt: u16) -> BTreeSet<u16> {
        let is_it = |said: &&Said| said.slot.kind == kind && of_program(&said.payload).0 == attempt;
        self.log.iter().filter(is_it).map(|said| said.from).collect()
    }

    /// The last round of an attempt's program of which a holder has sent anything.
    fn reached(&self, by: u16, attempt: u16) -> u16 {
        let rounds = self.log.iter().filter(|said| said.from == by && said.slot.kind >= PROGRAM);
        rounds
            .map(|said| of_program(&said.payload))
            .filter(|(of, _)| *of == attempt)
            .map(|(_, round)| round)
            .max()
            .unwrap_or(0)
    }
}

impl Said {
    fn input(self) -> Input<Infallible> {
        let channel = if self.slot.kind < GAVE_UP { Channel::Broadcast } else { Channel::Private };
        Input::Message { from: id(self.from), slot: self.slot, channel, payload: self.payload }
    }

    /// The attempt and round of a program's message.
    fn round(&self) -> Option<(u16, u16)> {
        (self.slot.kind >= PROGRAM).then(|| of_program(&self.payload))
    }
}

/// That a holder has given up a run of a program: 255 for a check that failed, else the place of whom it follows.
fn gave_up(attempt: u16, reason: u8, run: &[u8]) -> Bytes {
    [&attempt.to_be_bytes()[..], &[reason], run].concat().into()
}

const FAILED: u8 = 255;

/// The name of the run, which all say in the round in which they compare it.
fn run_of(said: &Said) -> Option<Vec<u8>> {
    (said.round() == Some((0, BEGUN - 1))).then(|| said.payload[4..36].to_vec())
}

#[test]
fn the_border_is_where_it_is() {
    let group = Group::new(Suite::EcdsaP256, 2, 3);
    let mut trio = Trio::new(&group);
    let mut short = BTreeSet::new();
    trio.start(|said| {
        if said.payload.len() == 5
            && let Some((0, round)) = said.round()
        {
            short.insert(round);
        }
        vec![said]
    });
    assert!(HERE.iter().all(|round| short.contains(round)), "{short:?}");
    assert_eq!(trio.senders(GAVE_UP, 0), BTreeSet::new());
    // The third falls silent after a round, and says that a check failed: up to the border the others give up, too.
    let last = (2..40).rev().find(|round| give_up_from(&group, *round, None, FAILED).senders(GAVE_UP, 0).len() > 1);
    assert_eq!(last, Some(BORDER));
}

/// The third sends nothing of round `from` of any program and of later ones, to one other holder or to both, and says in their place that it has given up; it is
/// silent about what it knows unless all have said so.
fn give_up_from(group: &Group, from: u16, only: Option<u16>, reason: u8) -> Trio<'_> {
    let mut trio = Trio::new(group);
    let mut run = vec![0; 32];
    let mut told = BTreeSet::new();
    let mut number = 40_000;
    trio.start(move |said| {
        if said.from != 3 {
            return vec![said];
        }
        run = run_of(&said).unwrap_or_else(|| run.clone());
        match said.round() {
            Some((0, round)) if round >= from && only.is_none_or(|only| only == said.to) => {
                let mut all = Vec::new();
                for to in [1, 2] {
                    number += 1;
                    let payload = gave_up(0, reason, &run);
                    all.extend(told.insert(to).then(|| Said {
                        from: 3,
                        to,
                        slot: Slot { kind: GAVE_UP, number },
                        payload,
                    }));
                }
                all
            }
            Some((attempt, _)) if attempt > 0 => Vec::new(),
            _ => vec![said],
        }
    });
    trio
}

/// The one that matters. Where a holder has sent anything that depends on its share, or has all, nobody honest shows a view, whatever liars say.
#[test]
fn nothing_is_shown_when_one_is_past_the_border() {
    let group = Group::new(Suite::EcdsaP256, 2, 3);
    let (mut shown, mut kept) = (0, 0);
    for from in BEGUN..=30 {
        for only in [None, Some(1), Some(2)] {
            let trio = give_up_from(&group, from, only, FAILED);
            let is_past = [1, 2].iter().any(|holder| trio.reached(*holder, 0) > BORDER);
            let views: BTreeSet<u16> = trio.senders(VIEW, 0);
            let honest = views.iter().filter(|by| **by != 3).count();
            assert!(!is_past || honest == 0, "from {from}, {only:?}: {views:?}");
            // Who is past the border says nothing at all.
            for holder in [1, 2].into_iter().filter(|holder| trio.reached(*holder, 0) > BORDER) {
                assert!(!trio.senders(GAVE_UP, 0).contains(&holder), "from {from}, {only:?}");
            }
            shown += usize::from(honest == 2);
            kept += usize::from(is_past);
        }
    }
    assert!(shown > 40 && kept > 10, "{shown} shown, {kept} kept");
}

/// Whoever says that a check failed where none did is named for it, and so is nobody else.
#[test]
fn a_false_alarm_names_who_gives_it() {
    let group = Group::new(Suite::EcdsaP256, 2, 3);
    for from in BEGUN..BORDER {
        let trio = give_up_from(&group, from, None, FAILED);
        let named: BTreeSet<_> = trio.blames.iter().filter(|(by, ..)| *by != 3).copied().collect();
        assert_eq!(named, BTreeSet::from([(1, 3, "false_round"), (2, 3, "false_round")]), "from {from}");
    }
}

/// Whoever says that it has only followed one who had not given up is named by that one, and others know that one of the two lies.
#[test]
fn who_follows_nobody_is_named() {
    let group = Group::new(Suite::EcdsaP256, 2, 3);
    for followed in [1, 2] {
        for from in BEGUN..BORDER {
            let trio = give_up_from(&group, from, None, u8::try_from(followed).unwrap() - 1);
            let named: BTreeSet<_> = trio.blames.iter().filter(|(by, ..)| *by != 3).copied().collect();
            assert_eq!(named, BTreeSet::from([(followed, 3, "false_round")]), "from {from}");
        }
    }
}

/// A liar that seems to have begun anew hides nothing by that.
#[test]
fn a_second_life_hides_no_lie() {
    let group = Group::new(Suite::EcdsaP256, 2, 3);
    for liar in 1..=3 {
        for round in [5, BORDER - 1, OPENING[0]] {
            let mut lies = lie(round, None);
            let twice = Tamper(move |rng: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
                let honest = HonestSend { slot, channel: Channel::Private, payload };
                let mut all = Vec::new();
                for said in lies.on_send(rng, to, honest) {
                    all.push((said.slot, said.payload.clone()));
                    if slot.kind >= PROGRAM {
                        all.push((Slot { kind: (slot.kind ^ 1).max(PROGRAM), ..slot }, said.payload));
                    }
                }
                all
            });
            let report = group.run(b"m", round.into(), vec![(liar, Box::new(twice))]);
            group.check_safe(b"m", &report).unwrap();
            assert!(!named_by(&report, liar).is_empty(), "round {round} of {liar}");
        }
    }
}

/// A holder that has begun anew may have sent anything before. It has no run that others have, so it says nothing, and nothing is shown.
#[test]
fn nothing_is_shown_where_one_has_begun_anew() {
    let group = Group::new(Suite::EcdsaP256, 2, 3);
    for at in BEGUN..=BORDER {
        let mut trio = Trio::new(&group);
        // The third says nothing from this round on, so that all wait.
        let mut run = vec![0; 32];
        trio.start(|said| {
            run = run_of(&said).unwrap_or_else(|| run.clone());
            let is_late = said.from == 3 && said.round().is_some_and(|(attempt, round)| attempt > 0 || round >= at);
            if is_late { Vec::new() } else { vec![said] }
        });
        // The second begins anew, and hears all that was said to it once more; nothing of its new program reaches the first.
        let mut again: Vec<_> = vec![(2, Input::Start)];
        again.extend(trio.log.iter().filter(|said| said.to == 2).cloned().map(|said| (2, said.input())));
        let new = trio.group.restarted(2, b"m");
        trio.machines.insert(2, new);
        let is_shown = |said: &Said| said.slot.kind < PROGRAM;
        trio.drive(again, |said| if is_shown(&said) { vec![said] } else { Vec::new() });
        // The third says that a check failed.
        for to in [1, 2] {
            let slot = Slot { kind: GAVE_UP, number: 40_000 + to };
            let said = Said { from: 3, to, slot, payload: gave_up(0, FAILED, &run) };
            trio.drive(vec![(to, said.input())], |said| if is_shown(&said) { vec![said] } else { Vec::new() });
        }
        let given_up = trio.senders(GAVE_UP, 0);
        assert!(given_up.contains(&1) && !given_up.contains(&2), "round {at}: {given_up:?}");
        assert!(!trio.senders(VIEW, 0).iter().any(|by| *by != 3), "round {at}");
        assert!(trio.blames.iter().all(|(by, ..)| *by == 3), "round {at}: {:?}", trio.blames);
    }
}

/// Restarts at any moment, beside a liar or none: nobody honest is named.
#[test]
fn a_restart_in_the_middle_names_nobody() {
    for seed in 0..60_u64 {
        let mut group = Group::new(Suite::EcdsaP256, 2, 4);
        group.ticks = 30;
        let mut simulator = group.simulator(seed);
        for number in 1..=4 {
            let machine = group.machine(number, b"m");
            match number {
                4 if seed % 2 == 1 => simulator.byzantine(id(4), machine, lie(13, None)),
                _ => simulator.honest(id(number), machine),
            }
        }
        simulator.restart(25 * seed, id(2), group.restarted(2, b"m"));
        group.check_safe(b"m", &simulator.run()).unwrap();
    }
}

/// Of programs that fail one after another few are opened in a request, until it is asked for again.
#[test]
fn few_programs_of_a_request_are_opened() {
    let mut group = Group::new(Suite::EcdsaP256, 2, 3);
    group.ticks = 30;
    let seen: Arc<Mutex<BTreeSet<(u16, u16)>>> = Arc::default();
    let spy = |number: u16| -> Liar {
        let seen = Arc::clone(&seen);
        let spy = Tamper(move |_: &mut _, _, slot: Slot, payload: Bytes| {
            if slot.kind == GAVE_UP {
                seen.lock().unwrap().insert((number, of_program(&payload).0));
            }
            vec![(slot, payload)]
        });
        (number, Box::new(spy))
    };
    // Nobody is named, as the liar says nothing of failed programs.
    drop(group.run(b"m", 1, vec![(3, withholds(&[GAVE_UP, VIEW], 13)), spy(1), spy(2)]));
    let seen = seen.lock().unwrap();
    for number in [1, 2] {
        let opened = seen.iter().filter(|(by, _)| *by == number).count();
        assert_eq!(opened, 4, "{seen:?}");
    }
}
