//! Signatures in one round, with nonces made in advance.

use core::convert::Infallible;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use theta_groups::Transcript;
use theta_protocols::{Misbehaviour, Outcome};
use theta_rounds::simulator::{Adversary, Behaviour, Forgery, HonestSend, SimRng, below, for_each_seed};
use theta_rounds::{Channel, Effect, Input, PartyId, Recipient, Slot};
use theta_schemes::Suite;

use crate::frost::support::{MESSAGE, Setting, flip, id, tamper};
use crate::supplied::SuppliedMachine;

const SUITE: Suite = Suite::FrostEd25519;
const COMMITMENTS: u16 = 1;
const PACKAGE: u16 = 2;
const SHARE: u16 = 3;

/// One message of one party to another.
#[derive(Clone, Debug)]
struct Sent {
    from: u16,
    to: u16,
    slot: Slot,
    channel: Channel,
    payload: Bytes,
}

impl Sent {
    fn input(&self) -> Input<Infallible> {
        Input::Message { from: id(self.from), slot: self.slot, channel: self.channel, payload: self.payload.clone() }
    }
}

/// What a machine sends, and its outcome.
fn sends(n: u16, at: u16, effects: Vec<Effect<Outcome, Misbehaviour, Infallible>>) -> (Vec<Sent>, Option<Outcome>) {
    let (mut sent, mut outcome) = (Vec::new(), None);
    for effect in effects {
        match effect {
            Effect::Send { to, slot, channel, payload } => {
                let reached = (1..=n).filter(|one| match to {
                    Recipient::Party(party) => party == id(*one),
                    Recipient::All => *one != at,
                    Recipient::OnRequest => false,
                });
                sent.extend(reached.map(|to| Sent { from: at, to, slot, channel, payload: payload.clone() }));
            }
            Effect::Finished(result) => outcome = Some(result.unwrap()),
            Effect::Blame(blame) => panic!("{at} blames: {blame}"),
            Effect::Ask(nothing) => match nothing {},
        }
    }
    (sent, outcome)
}

/// Runs all parties in lockstep, without a clock. Returns how many messages of each kind there were, and after how many
/// delays the first party had the signature.
fn lockstep(setting: &Setting, seed: u64) -> ([usize; 6], usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut machines: Vec<SuppliedMachine> = (1..=setting.n).map(|number| setting.machine(number)).collect();
    let (mut counts, mut delays, mut first, mut finished) = ([0; 6], 0, None, 0);
    let mut events: Vec<(u16, Input<Infallible>)> = (1..=setting.n).map(|number| (number, Input::Start)).collect();
    while !events.is_empty() {
        let mut next = Vec::new();
        for (at, input) in events {
            let effects = machines[usize::from(at) - 1].handle(input, &mut rng);
            let (sent, outcome) = sends(setting.n, at, effects);
            if let Some(outcome) = outcome {
                setting.check_outcome(&outcome).unwrap();
                first.get_or_insert(delays);
                finished += 1;
            }
            for message in sent {
                counts[usize::from(message.slot.kind)] += 1;
                next.push((message.to, message.input()));
            }
        }
        events = next;
        delays += 1;
    }
    assert_eq!(finished, usize::from(setting.n), "all parties");
    (counts, first.unwrap())
}

/// The first signature takes two rounds and leaves commitments behind; every later one takes one: packages, shares,
/// signature.
#[test]
fn from_the_second_on_signatures_take_one_round() {
    for suite in Suite::ALL.into_iter().filter(|suite| suite.scheme() == "FROST") {
        for (k, n) in [(2, 2), (2, 3), (3, 5)] {
            let setting = Setting::cold(suite, k, n);
            let others = usize::from(n) - 1;
            let signers = usize::from(k) - 1;
            // Everybody is asked at once, in addition to the messages that come unasked.
            let cold = lockstep(&setting, 1);
            assert_eq!(cold, ([0, 2 * others, signers, signers, others, others], 3), "{suite}, {k} of {n}");
            for seed in 2..20 {
                let warm = lockstep(&setting, seed);
                assert_eq!(warm, ([0, 0, signers, signers, others, 0], 2), "{suite}, {k} of {n}, signature {seed}");
            }
        }
    }
}

/// With one signer there is nobody to wait for, and without a stock every signature takes two rounds.
#[test]
fn where_there_is_nothing_to_gain_nothing_is_asked() {
    let alone = Setting::cold(SUITE, 1, 3);
    assert_eq!(lockstep(&alone, 1).1, 0);
    let setting = Setting::new(SUITE, 3, 5);
    for seed in 0..3 {
        assert_eq!(lockstep(&setting, seed), ([0, 4, 2, 2, 4, 0], 3));
    }
}

/// A party that restarts has forgotten all nonces. The signature comes all the same, nobody is blamed, no clock is
/// needed, and soon signatures take one round again.
#[test]
fn restarts_cost_one_round() {
    for victims in [&[0_usize][..], &[1], &[0, 1], &[1, 2, 3, 4]] {
        let mut setting = Setting::warm(SUITE, 3, 5);
        let parties: Vec<u16> = [setting.coordinator()].into_iter().chain(setting.others()).collect();
        victims.iter().for_each(|victim| setting.forget(parties[*victim]));
        lockstep(&setting, 1);
        // A party that was not among the signers notices when its turn comes.
        for seed in 2..6 {
            lockstep(&setting, seed);
        }
        assert_eq!(lockstep(&setting, 7).1, 2, "{victims:?}");
    }
}

/// The first coordinator's packages of one signature, and machines of the others for it.
fn packages(setting: &Setting, message: &[u8], rng: &mut ChaCha8Rng) -> Vec<Sent> {
    let coordinator = setting.coordinator_of(message);
    let (sent, _) = sends(setting.n, coordinator, setting.machine_on(coordinator, message).handle(Input::Start, rng));
    assert!(!sent.is_empty() && sent.iter().all(|message| message.slot.kind == PACKAGE), "{sent:?}");
    sent
}

fn rounds(sent: &[Sent]) -> Vec<u16> {
    sent.iter().map(|message| message.slot.kind).collect()
}

/// Messages that have the same first coordinator as [`MESSAGE`].
fn messages(setting: &Setting) -> impl Iterator<Item = String> {
    let numbered = (0..).map(|i| format!("message {i}"));
    numbered.filter(|message| setting.coordinator_of(message.as_bytes()) == setting.coordinator())
}

/// A coordinator that sends the package of one signature in another signature, too, gets a share only once.
#[test]
fn one_nonce_never_makes_two_shares() {
    let setting = Setting::warm(SUITE, 3, 5);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let message = messages(&setting).next().unwrap();
    for package in packages(&setting, MESSAGE, &mut rng) {
        let mut answers = Vec::new();
        for message in [MESSAGE, message.as_bytes(), MESSAGE] {
            let mut signer = setting.machine_on(package.to, message);
            assert!(signer.handle(Input::Start, &mut rng).is_empty(), "what was given in advance is enough");
            answers.push(sends(setting.n, package.to, signer.handle(package.input(), &mut rng)).0);
        }
        let answers: Vec<_> = answers.iter().map(|sent| rounds(sent)).collect();
        assert_eq!(answers, [[SHARE], [COMMITMENTS], [COMMITMENTS]]);
    }
}

/// The same with four threads at once.
#[test]
fn one_nonce_never_makes_two_shares_on_two_threads() {
    let mut setting = Setting::warm(SUITE, 2, 3);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for attempt in 0..20 {
        if attempt % 2 == 0 {
            setting.warm_up();
        }
        let package = packages(&setting, MESSAGE, &mut rng).remove(0);
        let others: Vec<String> = messages(&setting).take(4).collect();
        let shares: usize = thread::scope(|scope| {
            let tasks: Vec<_> = others
                .iter()
                .map(|message| {
                    let (setting, package) = (&setting, &package);
                    scope.spawn(move || {
                        let mut rng = ChaCha8Rng::seed_from_u64(3);
                        let mut signer = setting.machine_on(package.to, message.as_bytes());
                        signer.handle(Input::Start, &mut rng);
                        let (sent, _) = sends(setting.n, package.to, signer.handle(package.input(), &mut rng));
                        sent.iter().filter(|message| message.slot.kind == SHARE).count()
                    })
                })
                .collect();
            tasks.into_iter().map(|task| task.join().unwrap()).sum()
        });
        assert_eq!(shares, 1, "attempt {attempt}");
    }
}

/// A package has the number of one pair of nonces and the commitments of another. It gets no share, and the coordinator
/// can use neither pair any more.
#[test]
fn mixed_commitments_are_named_and_use_up_the_nonces() {
    let setting = Setting::warm(SUITE, 2, 3);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let [one, other] = [0, 1].map(|_| packages(&setting, MESSAGE, &mut rng).remove(0));
    let (one, other) = if one.to == other.to { (one, other) } else { panic!("one signer first") };
    let mut mixed = one.clone();
    // The number is bytes 1 to 8; the list, with the commitments, is the other's.
    mixed.payload = [&other.payload[..1], &one.payload[1..9], &other.payload[9..]].concat().into();
    let mut signer = setting.machine(one.to);
    signer.handle(Input::Start, &mut rng);
    let effects = signer.handle(mixed.input(), &mut rng);
    let [Effect::Blame(blame), Effect::Send { slot, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    // The signer goes on to the next coordinator.
    assert_eq!(slot.kind, COMMITMENTS);
    assert_eq!((blame.party, blame.offence.name()), (id(one.from), "altered_commitments"));

    let mut signer = setting.machine(one.to);
    signer.handle(Input::Start, &mut rng);
    assert_eq!(rounds(&sends(3, one.to, signer.handle(one.input(), &mut rng)).0), [COMMITMENTS]);
    let mut signer = setting.machine(one.to);
    signer.handle(Input::Start, &mut rng);
    assert_eq!(rounds(&sends(3, one.to, signer.handle(other.input(), &mut rng)).0), [SHARE]);
}

/// Commitments that were given to one coordinator are of no use to another.
#[test]
fn nonces_are_for_one_coordinator() {
    let setting = Setting::warm(SUITE, 2, 3);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let package = packages(&setting, MESSAGE, &mut rng).remove(0);
    let thief = (1..=3).find(|party| *party != package.to && *party != package.from).unwrap();
    let mut signer = setting.machine(package.to);
    signer.handle(Input::Start, &mut rng);
    let stolen = Sent { from: thief, ..package.clone() };
    assert_eq!(rounds(&sends(3, package.to, signer.handle(stolen.input(), &mut rng)).0), [COMMITMENTS]);
    assert_eq!(rounds(&sends(3, package.to, signer.handle(package.input(), &mut rng)).0), [SHARE]);
}

/// A share for commitments given in advance is checked like any other.
#[test]
fn false_shares_for_earlier_commitments_are_named() {
    let setting = Setting::warm(SUITE, 3, 5);
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let called: Vec<u16> = packages(&setting, MESSAGE, &mut rng).iter().map(|package| package.to).collect();
    let coordinator = setting.coordinator();
    for seed in 0..4 {
        let report = setting.run(seed, called.iter().map(|party| (*party, flip(SHARE, usize::from(*party)))).collect());
        setting.check(&report).unwrap();
        // All liars were in the first session, so its failure named all of them at once; then others signed.
        if seed == 0 {
            for liar in &called {
                assert_eq!(Setting::offences(&report, *liar), [(coordinator, "invalid_share")]);
            }
        }
    }
}

/// A signer that is called and does not answer is not counted on for the next signatures.
#[test]
fn the_silent_hold_up_one_signature() {
    let setting = Setting::warm(SUITE, 3, 5);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let silent = packages(&setting, MESSAGE, &mut rng)[0].to;
    let report = setting.run(1, vec![(silent, Box::new(Behaviour::Silent))]);
    setting.check(&report).unwrap();
    assert!(report.honest().all(|(_, party)| party.blames.is_empty()));
    let called: Vec<u16> = packages(&setting, MESSAGE, &mut rng).iter().map(|package| package.to).collect();
    assert!(!called.contains(&silent));
}

/// Withholds its shares, and gives commitments in advance instead of those that are asked for. Counts the sessions to which it is called.
struct Withholding(Arc<AtomicUsize>);

impl Adversary for Withholding {
    fn on_send(&mut self, _rng: &mut SimRng, _to: PartyId, honest: HonestSend) -> Vec<Forgery> {
        let mut payload = honest.payload.to_vec();
        match honest.slot.kind {
            SHARE => return Vec::new(),
            // The first pair is not for this signature.
            COMMITMENTS => payload[0] = 0,
            _ => {}
        }
        vec![HonestSend { payload: payload.into(), ..honest }]
    }

    fn on_receive(&mut self, _rng: &mut SimRng, _from: PartyId, message: &HonestSend) -> Vec<Forgery> {
        self.0.fetch_add(usize::from(message.slot.kind == PACKAGE), Relaxed);
        Vec::new()
    }
}

/// It gives new commitments for every signature, so that there is always a pair of it to draw. It is not drawn while there are others.
#[test]
fn who_withholds_its_share_is_drawn_once() {
    let mut setting = Setting::warm(SUITE, 3, 5);
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let liar = packages(&setting, MESSAGE, &mut rng)[0].to;
    for signature in 0..8 {
        // It has forgotten that it gave any, and gives some.
        setting.forget(liar);
        let called = Arc::new(AtomicUsize::new(0));
        let report = setting.run(signature, vec![(liar, Box::new(Withholding(Arc::clone(&called))))]);
        setting.check(&report).unwrap();
        assert_eq!(called.load(Relaxed), usize::from(signature == 0), "signature {signature}");
    }
}

/// A signer that failed once signs again where it is needed, and then comes before one that has failed since.
#[test]
fn who_signs_again_is_trusted_again() {
    let mut setting = Setting::warm(SUITE, 2, 3);
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let slow = packages(&setting, MESSAGE, &mut rng)[0].to;
    let other = (1..=3).find(|party| ![slow, setting.coordinator()].contains(party)).unwrap();
    for (seed, liar, calls) in [(1, slow, 1), (2, slow, 0), (3, other, 1), (4, other, 0)] {
        setting.forget(liar);
        let called = Arc::new(AtomicUsize::new(0));
        let report = setting.run(seed, vec![(liar, Box::new(Withholding(Arc::clone(&called))))]);
        setting.check(&report).unwrap();
        assert_eq!(called.load(Relaxed), calls, "signature {seed}");
    }
    // Both have commitments at the coordinator. The first has signed when the other failed, and comes first even where the search begins with the other.
    let begins_with = |message: &str| {
        let hash = Transcript::new("theta/frost/coordinator/v1")
            .with("key id", setting.public.key_id().as_bytes())
            .with("message", message.as_bytes())
            .finish32();
        let start = u16::from_be_bytes([hash[2], hash[3]]);
        (0..3).map(|step| (start % 3 + step) % 3 + 1).find(|party| *party != setting.coordinator()).unwrap()
    };
    let message = messages(&setting).find(|message| begins_with(message) == other).unwrap();
    assert_eq!(packages(&setting, message.as_bytes(), &mut rng)[0].to, slow);
}

/// One coordinator asks again and again; another calls for nonces that do not exist.
#[test]
fn endless_requests_are_named() {
    let setting = Setting::cold(SUITE, 2, 3);
    let coordinator = setting.coordinator();
    let flood = tamper(|_, slot, payload| {
        let copies = if slot.kind == 5 { 100 } else { 1 };
        (0..copies).map(|i| (Slot { number: slot.number.wrapping_add(i), ..slot }, payload.clone())).collect()
    });
    let report = setting.run(1, vec![(coordinator, flood)]);
    setting.check(&report).unwrap();
    let said = Setting::offences(&report, coordinator);
    assert!(said.iter().all(|(_, name)| ["too_many_messages", "equivocation"].contains(name)), "{said:?}");
    assert!(!said.is_empty());
}

fn number(rng: &mut SimRng, bound: u16) -> u16 {
    u16::try_from(below(rng, u64::from(bound))).unwrap()
}

fn any_lie(rng: &mut SimRng) -> Box<dyn Adversary> {
    match below(rng, 12) {
        0 => Box::new(Behaviour::Silent),
        1 => Box::new(Behaviour::Garbage),
        2 => Box::new(Behaviour::BitFlip),
        3 => Box::new(Behaviour::Equivocate),
        4 => Box::new(Behaviour::CopyOthers),
        5 => Box::new(Behaviour::Flood),
        6 => Box::new(Behaviour::CrashAfter(usize::from(number(rng, 4)))),
        other => flip(u16::try_from(other).unwrap() - 6, 9),
    }
}

/// Several signatures in a row use the same stocks. Parties lie, are badly heard, or restart between signatures and in
/// the middle of them; each restart loses all their nonces.
#[test]
fn k_honest_parties_that_hear_each_other_get_every_signature() {
    let mut settings: BTreeMap<(u16, u16), Setting> = BTreeMap::new();
    for_each_seed(300, |seed| {
        let mut rng = SimRng::seed_from_u64(seed);
        let n = 2 + number(&mut rng, 5);
        let k = 1 + number(&mut rng, n);
        let setting = settings.entry((k, n)).or_insert_with(|| Setting::new(SUITE, k, n));
        setting.per_peer = usize::from(1 + number(&mut rng, 8));
        // Each seed determines its whole run: nothing is left of the one before.
        setting.warm_up();
        let liars: BTreeSet<u16> = (0..n - k).map(|_| 1 + number(&mut rng, n)).collect();
        // A party is either unlucky or a liar for good: commitments about which it lied may be found altered later.
        let unlucky = below(&mut rng, 2) == 0;
        for signature in 0..3 {
            for party in 1..=n {
                if below(&mut rng, 6) == 0 {
                    setting.forget(party);
                }
            }
            let mut simulator = setting.simulator(seed * 3 + signature);
            for party in 1..=n {
                if !liars.contains(&party) {
                    simulator.honest(id(party), setting.machine(party));
                } else if unlucky {
                    simulator.honest(id(party), setting.machine(party));
                    simulator.lossy(id(party));
                } else {
                    simulator.byzantine(id(party), setting.machine(party), any_lie(&mut rng));
                }
            }
            let victim = 1 + number(&mut rng, n);
            if !liars.contains(&victim) && below(&mut rng, 3) == 0 {
                simulator.restart(below(&mut rng, 300), id(victim), setting.restarted(victim));
                setting.forget(victim);
            }
            setting
                .check(&simulator.run())
                .map_err(|failure| format!("{k} of {n}, signature {signature}, liars {liars:?}: {failure}"))?;
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn runs_with_pools_replay_exactly() {
    let trace = || {
        let setting = Setting::warm(SUITE, 2, 4);
        (0..3).map(|seed| setting.run(seed, vec![(2, Box::new(Behaviour::Garbage))]).trace).collect::<Vec<_>>()
    };
    assert_eq!(trace(), trace());
}
