//! A false share of the masked key: who showed it is found, whatever it says afterwards, and nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use theta_groups::{Group, P256, Scalar as _, Secret};
use theta_mpc::ecdsa::{Presigning, presign};
use theta_mpc::{Misbehaviour, Party};
use theta_names::{Epoch, ShareIndex};
use theta_rounds::simulator::{Report, SimRng, Tamper};
use theta_rounds::{Abort, PartyId, Slot};
use theta_sharing::{Threshold, split};

use crate::group::{GroupOf, Liar, Recorder, Sent, party};

type S = <P256 as Group>::Scalar;

/// So many presignatures.
const COUNT: usize = 3;

/// What came of a program, and the disputes at each party, by number.
struct Ran {
    report: Report<usize, Misbehaviour>,
    disputes: BTreeMap<u16, BTreeSet<[u16; 2]>>,
}

impl Ran {
    /// Whether a party has found anything.
    fn has_found(&self, by: u16) -> bool {
        !self.report.parties[&party(by)].blames.is_empty() || !self.disputes[&by].is_empty()
    }

    fn names(&self, by: u16, liar: u16) -> bool {
        self.report.blames_of(party(liar)).any(|(from, _)| from == party(by))
    }
}

/// The program among n parties, some of which say what they like.
fn run(n: u16, t: u16, seed: u64, liars: Vec<Liar>) -> Ran {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let x = Secret::new(S::random(&mut rng));
    let threshold = Threshold::new(t + 1, n).unwrap();
    let shares: Vec<S> = split(&x, threshold, &mut rng).iter().map(|share| *share.expose()).collect();
    let points: Vec<_> = shares.iter().map(P256::mul_base).collect();
    let public_key = P256::mul_base(x.expose());
    let parties: Arc<Mutex<BTreeMap<u16, Party>>> = Arc::default();
    let group = GroupOf { liars, ..GroupOf::new(n, t).seed(seed) };
    let report = group.run(|number| {
        let setting: Presigning<P256> = Presigning {
            holders: threshold.indices().collect::<Vec<ShareIndex>>(),
            epoch: Epoch::FIRST,
            public_key,
            share: Secret::new(shares[usize::from(number) - 1]),
            points: points.clone(),
            session: [5; 32],
            count: COUNT,
            digest: None,
            owner: None,
        };
        let parties = Arc::clone(&parties);
        Box::new(move |party: Party| async move {
            parties.lock().unwrap().insert(number, party.clone());
            presign(party, setting).await.map(|made| made.presignatures.len())
        })
    });
    let number = |position: usize| u16::try_from(position).unwrap() + 1;
    let disputes = |party: &Party| party.disputes().into_iter().map(|pair| pair.map(number)).collect();
    let disputes = parties.lock().unwrap().iter().map(|(number, party)| (*number, disputes(party))).collect();
    Ran { report, disputes }
}

/// The round in which the shares of the masked key are shown: that before the one in which all say that nothing contradicts anything, in 36 bytes.
fn opening(n: u16, t: u16) -> u16 {
    let sent = Sent::default();
    let ran = run(n, t, 1, vec![(1, Box::new(Recorder(sent.clone())))]);
    assert_eq!(ran.report.agreed(|made| *made), Ok(COUNT));
    assert!((1..=n).all(|by| !ran.has_found(by)));
    let sent = sent.lock().unwrap();
    let claims = sent.iter().find(|(_, _, payload)| payload.len() == 36).unwrap().1;
    assert!(sent.iter().any(|(_, round, payload)| *round == claims - 1 && payload.len() == 32 * COUNT));
    claims - 1
}

/// One is added to the scalar at a place.
fn plus_one(payload: &[u8], place: usize) -> Bytes {
    let mut payload = payload.to_vec();
    let scalar = &mut payload[32 * place..32 * (place + 1)];
    let sum = S::decode(scalar).unwrap() + S::ONE;
    scalar.copy_from_slice(sum.encode().as_ref());
    payload.into()
}

/// A party that shows these a false share of one value.
fn shows_falsely(number: u16, victims: BTreeSet<u16>, opening: u16, place: usize) -> Liar {
    let tamper = Tamper(move |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
        let lies = slot.number == opening && victims.contains(&to.get());
        vec![(slot, if lies { plus_one(&payload, place) } else { payload })]
    });
    (number, Box::new(tamper))
}

#[test]
fn whoever_shows_a_false_share_is_named_by_all() {
    for (n, t) in [(3, 1), (5, 2), (7, 3)] {
        let opening = opening(n, t);
        for (liar, place) in (1..=n).zip((0..COUNT).cycle()) {
            let ran = run(n, t, 2, vec![shows_falsely(liar, (1..=n).collect(), opening, place)]);
            ran.report.check_blame().unwrap();
            for by in (1..=n).filter(|by| *by != liar) {
                assert!(ran.names(by, liar), "{by} of {n} does not name {liar}");
                assert!(ran.disputes[&by].is_empty());
                assert!(!matches!(ran.report.parties[&party(by)].result, Some(Ok(_)) | None));
            }
        }
    }
}

#[test]
fn whoever_shows_one_a_false_share_is_named_by_that_one() {
    for (n, t) in [(3, 1), (5, 2)] {
        let opening = opening(n, t);
        for liar in 1..=n {
            let victim = liar % n + 1;
            let ran = run(n, t, 2, vec![shows_falsely(liar, BTreeSet::from([victim]), opening, 1)]);
            ran.report.check_blame().unwrap();
            assert!(ran.names(victim, liar));
            for by in (1..=n).filter(|by| ![liar, victim].contains(by)) {
                assert_eq!(ran.disputes[&by], BTreeSet::from([[liar.min(victim), liar.max(victim)]]));
                assert!(!ran.names(by, liar), "nobody else can know");
                assert!(matches!(ran.report.parties[&party(by)].result, Some(Err(Abort::Cheated(_)))));
            }
        }
    }
}

/// Changes what a liar sends from the opening on, to each as it likes.
fn anything(rng: &mut SimRng, (n, t): (usize, usize), step: usize, payload: &[u8]) -> Bytes {
    let mut changed = payload.to_vec();
    let mut below = |most: usize| usize::try_from(rng.next_u64() % u64::try_from(most).unwrap()).unwrap();
    let element = |number: usize| P256::encode(&P256::mul_base(&S::from_u64(u64::try_from(number).unwrap() + 1)));
    let claim = |number: usize| if number < COUNT { u32::try_from(number).unwrap() } else { u32::MAX };
    match step {
        0 => return plus_one(payload, below(COUNT)),
        1 => changed[32..].copy_from_slice(&claim(below(COUNT + 1)).to_be_bytes()),
        // The program goes on: nothing was claimed.
        2 | 3 if ![n * (4 + 33 * (t + 1)), 34 * n].contains(&payload.len()) => {}
        2 if below(3) == 0 => {
            let place = 4 * below(n);
            changed[place..place + 4].copy_from_slice(&claim(below(COUNT + 1)).to_be_bytes());
        }
        2 => {
            let place = 4 * n + 33 * below(n * (t + 1));
            changed[place..place + 33].copy_from_slice(&element(below(5)));
        }
        _ => {
            for _ in 0..=below(3) {
                let place = below(34 * n);
                changed[place] ^= 1;
            }
        }
    }
    changed.into()
}

/// Whatever liars say, and to whom: nobody honest is named, each dispute has a liar in it, and who was shown a false share has found something.
#[test]
fn nobody_honest_is_named_whatever_liars_say() {
    let (mut named, mut disputes) = (0, 0);
    for (n, t, runs) in [(3, 1, 150), (5, 2, 60)] {
        let opening = opening(n, t);
        for seed in 0..runs {
            let first = u16::try_from(seed).unwrap() % n + 1;
            let liars: BTreeSet<u16> = (0..t).map(|i| (first + 2 * i) % n + 1).collect();
            let deceived: Arc<Mutex<BTreeSet<u16>>> = Arc::default();
            let adversaries = liars.iter().map(|number| {
                let deceived = Arc::clone(&deceived);
                let tamper = Tamper(move |rng: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
                    // Statements and verdicts have numbers of their own.
                    let steps = [opening, opening + 1, 1 << 15, (1 << 15) + 1];
                    let step = steps.iter().position(|round| *round == slot.number);
                    let sent = match step.filter(|_| rng.next_u64().is_multiple_of(2)) {
                        Some(step) => anything(rng, (usize::from(n), usize::from(t)), step, &payload),
                        None => payload.clone(),
                    };
                    if step == Some(0) && sent != payload {
                        deceived.lock().unwrap().insert(to.get());
                    }
                    vec![(slot, sent)]
                });
                (*number, Box::new(tamper) as Box<_>)
            });
            let ran = run(n, t, seed, adversaries.collect());
            ran.report.check_blame().unwrap_or_else(|said| panic!("seed {seed}: {said}"));
            for by in (1..=n).filter(|by| !liars.contains(by)) {
                for pair in &ran.disputes[&by] {
                    assert!(pair.iter().any(|number| liars.contains(number)), "seed {seed}: {by} has {pair:?}");
                    disputes += 1;
                }
                named += ran.report.parties[&party(by)].blames.len();
                assert!(!deceived.lock().unwrap().contains(&by) || ran.has_found(by), "seed {seed}: {by} has nothing");
            }
        }
    }
    assert!(named > 200 && disputes > 50, "{named} named, {disputes} disputes");
}
