//! Views that are shown when a program has failed: a liar is in every dispute, and of two honest parties none is in one.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng as _, SeedableRng};
use theta_groups::{Group as _, P256, Scalar as _, Secret};
use theta_mpc::ecdsa::{Dispute, Presigned, Presigning, disputes, presign};
use theta_mpc::{MOST_ROUNDS, Program, Recording, View};
use theta_names::{Epoch, ShareIndex};
use theta_rounds::simulator::{Adversary, Conditions, SimRng, Simulator, Tamper};
use theta_rounds::{Driver, LockStep, PartyId, Slot};
use theta_sharing::{Threshold, split};

use crate::cheating::instead;
use crate::group::{Recorder, Sent, party};

type G = P256;

/// A program of 2t + 1 holders of a key, some of its indices left out.
struct Group {
    t: u16,
    count: usize,
    shares: Vec<<G as theta_groups::Group>::Scalar>,
    public_key: <G as theta_groups::Group>::Element,
}

/// What came of it.
struct Ran {
    recordings: Vec<Recording>,
    have_results: Vec<bool>,
}

impl Group {
    fn new(t: u16, count: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(11);
        let x = Secret::new(<G as theta_groups::Group>::Scalar::random(&mut rng));
        let threshold = Threshold::new(t + 1, 4 * t + 2).unwrap();
        let shares = split(&x, threshold, &mut rng).into_iter().map(|share| *share.expose());
        let shares = shares.skip(1).step_by(2).collect();
        Self { t, count, shares, public_key: G::mul_base(x.expose()) }
    }

    fn n(&self) -> u16 {
        2 * self.t + 1
    }

    fn setting(&self, place: usize) -> Presigning<G> {
        let holders = (1..=self.n()).map(|place| ShareIndex::try_from(2 * place).unwrap()).collect();
        Presigning {
            holders,
            epoch: Epoch::FIRST,
            public_key: self.public_key,
            share: Secret::new(self.shares[place]),
            points: Vec::new(),
            session: [4; 32],
            count: self.count,
            digest: Some([5; 32]),
            owner: None,
        }
    }

    fn run(&self, seed: u64, mut liars: Vec<(u16, Box<dyn Adversary>)>) -> Ran {
        let threshold = Threshold::new(self.t + 1, self.n()).unwrap();
        let mut simulator = Simulator::<Presigned<G>, _>::new(seed, Conditions::default());
        let mut recordings = Vec::new();
        for number in 1..=self.n() {
            let setting = self.setting(usize::from(number) - 1);
            let index = ShareIndex::try_from(number).unwrap();
            let program = Program::new(index, threshold, |party| presign(party, setting)).unwrap();
            recordings.push(program.record());
            let machine = Box::new(Driver::new(party(number), (1..=self.n()).map(party), LockStep::new(program)));
            match liars.iter().position(|(liar, _)| *liar == number) {
                Some(place) => simulator.byzantine(party(number), machine, liars.swap_remove(place).1),
                None => simulator.honest(party(number), machine),
            }
        }
        let report = simulator.run();
        let have_results = report.parties.values().map(|party| matches!(party.result, Some(Ok(_)))).collect();
        Ran { recordings, have_results }
    }

    /// What party `liar` sends before the border if it is honest.
    fn recorded(&self, liar: u16) -> Vec<(u16, u16, Vec<u8>)> {
        let sent = Sent::default();
        let ran = self.run(1, vec![(liar, Box::new(Recorder(sent.clone())))]);
        assert!(ran.have_results.iter().all(|has| *has));
        assert!(ran.recordings.iter().all(|recording| !recording.is_before_border() && recording.take().is_none()));
        let mut sent = sent.lock().unwrap().clone();
        let border = self.rounds_before_the_border();
        sent.retain(|(_, round, _)| *round <= border);
        assert!(sent.iter().map(|(_, round, _)| *round).max() == Some(border));
        sent
    }

    /// So many rounds there are before the share of x is used: nobody has a view whose message of the last is not kept from some.
    fn rounds_before_the_border(&self) -> u16 {
        let silent_from = |first: u16| -> Box<dyn Adversary> {
            Box::new(Tamper(
                move |_: &mut SimRng, _, slot: Slot, payload| {
                    if slot.number >= first { Vec::new() } else { vec![(slot, payload)] }
                },
            ))
        };
        let is_before = |last: &u16| {
            let ran = self.run(1, vec![(1, silent_from(last + 1))]);
            ran.recordings[1].is_before_border()
        };
        (1..200).find(|last| !is_before(last)).unwrap()
    }

    fn disputes(&self, views: &[View]) -> Vec<Dispute> {
        disputes(&self.setting(0), views).unwrap()
    }
}

/// Sends all others one message differently in a round.
fn flip(round: u16, only: Option<u16>) -> Box<dyn Adversary> {
    Box::new(Tamper(move |_: &mut SimRng, to: PartyId, slot: Slot, payload: bytes::Bytes| {
        let mut payload = payload.to_vec();
        if slot.number == round
            && only.is_none_or(|only| to == party(only))
            && let Some(last) = payload.last_mut()
        {
            *last ^= 1;
        }
        vec![(slot, payload.into())]
    }))
}

fn views(ran: &Ran) -> Option<Vec<View>> {
    ran.recordings.iter().map(Recording::take).collect()
}

fn check(found: &[Dispute], liars: &[u16], what: &str) {
    assert!(!found.is_empty(), "{what}: nothing found");
    for Dispute { sender, receiver } in found {
        let lies = |place: &usize| liars.iter().any(|liar| usize::from(*liar) == place + 1);
        assert!(lies(sender) || lies(receiver), "{what}: {found:?}");
        assert_ne!(sender, receiver);
    }
}

/// Whatever a liar says differently in whatever round before the border, to one or to all: where nobody has come to the border, views show it.
fn every_round(t: u16, count: usize, liar: u16) {
    let group = Group::new(t, count);
    let border = group.rounds_before_the_border();
    let sent = group.recorded(liar);
    let (mut shown, mut past) = (0, Vec::new());
    // In three rounds they find that they mean the same and have begun together; nothing is on record before.
    for round in 4..=border {
        let first = sent.iter().find(|(_, of, _)| *of == round).map(|(to, ..)| *to);
        let Some(first) = first else { continue };
        for only in [None, Some(first)] {
            let ran = group.run(u64::from(round), vec![(liar, flip(round, only))]);
            match views(&ran) {
                Some(views) => check(&group.disputes(&views), &[liar], &format!("round {round}, only {only:?}")),
                None => past.push((round, only)),
            }
            shown += 1;
        }
    }
    assert!(shown > 30, "{shown} of {border} rounds");
    // Nobody reads the byte that says "here". What is said in the last round has the liar's own machine go on, which is honest, and others if they are told
    // the truth: then there are not views of all.
    let is_read = |round: u16| sent.iter().any(|(_, of, payload)| *of == round && payload.len() > 1);
    let may_be_past = |(round, _): &(u16, Option<u16>)| *round == border || !is_read(*round);
    assert!(past.iter().all(may_be_past), "{past:?} of {border}");
}

#[test]
fn who_lies_in_any_round_before_the_border_is_in_every_dispute() {
    every_round(1, 2, 1);
    every_round(1, 2, 3);
    every_round(2, 2, 2);
}

/// The largest program that is opened has fewer rounds than a view has room for.
#[test]
fn the_largest_program_has_a_view() {
    let group = Group::new(3, 64);
    let sent = Sent::default();
    let ran = group.run(1, vec![(1, Box::new(Recorder(sent.clone())))]);
    assert!(ran.have_results.iter().all(|has| *has));
    let last = sent.lock().unwrap().iter().map(|(_, round, _)| *round).max().unwrap();
    assert!((30..MOST_ROUNDS).contains(&last.into()), "{last}");
    // In some rounds nobody reads what is said, and in some a liar says nothing.
    let shown = (8..14).filter_map(|round| views(&group.run(2, vec![(6, flip(round, None))]))).next();
    check(&group.disputes(&shown.unwrap()), &[6], "the largest");
}

/// What is falsified deeply: other messages of the liar's, those of others, and the shortest.
#[test]
fn who_says_what_it_said_before_is_in_every_dispute() {
    let group = Group::new(1, 70);
    let sent = group.recorded(2);
    let mut runs = 0;
    for (to, round, payload) in sent.iter().step_by(3) {
        let alike = sent.iter().rev().find(|(_, of, other)| of < round && other.len() == payload.len());
        let Some((_, _, other)) = alike.filter(|(_, _, other)| other != payload) else { continue };
        let ran = group.run(7, vec![(2, Box::new(instead(*to, *round, other.clone())))]);
        if let Some(views) = views(&ran) {
            check(&group.disputes(&views), &[2], &format!("round {round}"));
            runs += 1;
        }
    }
    assert!(runs > 3, "{runs}");
}

/// A view that a liar might show in place of its own.
fn falsified(view: &View, rng: &mut ChaCha20Rng) -> View {
    let mut seed = Secret::new(*view.seed.expose());
    let mut rounds = view.rounds.clone();
    let below = |most: usize, rng: &mut ChaCha20Rng| usize::try_from(rng.next_u32()).unwrap() % most.max(1);
    for _ in 0..=below(3, rng) {
        let round = below(rounds.len(), rng);
        match below(5, rng) {
            0 => rng.fill_bytes(seed.expose_mut()),
            1 => rounds.truncate(round),
            2 => rounds.push(vec![Some([7; 32]); view.rounds[0].len()]),
            kind => {
                let parties = view.rounds[0].len();
                if let Some(heard) = rounds.get_mut(round).and_then(|heard| heard.get_mut(below(parties, rng))) {
                    *heard = (kind == 3).then_some([9; 32]);
                }
            }
        }
    }
    View { seed, rounds }
}

fn copy(view: &View) -> View {
    View { seed: Secret::new(*view.seed.expose()), rounds: view.rounds.clone() }
}

/// Whatever liars show, and be it something else to each: each honest party names nobody honest.
#[test]
fn whatever_liars_show_no_two_honest_parties_are_in_a_dispute() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut found = 0;
    for (t, liars) in [(1, vec![2]), (1, vec![3]), (2, vec![1, 4])] {
        let group = Group::new(t, 1);
        let border = group.rounds_before_the_border();
        for run in 0..8 {
            let round = u16::try_from(rng.next_u32() % u32::from(border - 1)).unwrap() + 1;
            let lies = liars.iter().map(|liar| (*liar, flip(round, None))).collect();
            let ran = group.run(run, if run == 0 { Vec::new() } else { lies });
            // Without a lie all come past the border.
            let Some(true_views) = views(&ran) else { continue };
            for _ in 0..12 {
                let lies = |place: usize| liars.iter().any(|liar| usize::from(*liar) == place + 1);
                let shown = true_views.iter().enumerate();
                let shown: Vec<View> = shown
                    .map(|(place, view)| if lies(place) { falsified(view, &mut rng) } else { copy(view) })
                    .collect();
                let seen = group.disputes(&shown);
                if !seen.is_empty() {
                    check(&seen, &liars, &format!("run {run}"));
                    found += 1;
                }
            }
        }
    }
    assert!(found > 150, "{found}");
}

/// A program that is given up in the middle, where nobody has lied: what is under way is no dispute.
#[test]
fn what_is_under_way_is_no_dispute() {
    let group = Group::new(1, 2);
    let border = group.rounds_before_the_border();
    for round in 1..=border {
        let silent = Tamper(
            move |_: &mut SimRng, to: PartyId, slot: Slot, payload| {
                if slot.number >= round && to == party(3) { Vec::new() } else { vec![(slot, payload)] }
            },
        );
        let ran = group.run(u64::from(round), vec![(1, Box::new(silent))]);
        if let Some(views) = views(&ran) {
            assert_eq!(group.disputes(&views), [], "silent from round {round}");
        }
    }
}
