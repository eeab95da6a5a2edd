//! Dealers that deal what is no dealing: values on a polynomial of too high a degree, different polynomials to different parties, another seed than they
//! use. Whoever goes on with its own share as if nothing were false is caught before there is a tuple, and so before any share of a signature leaves.
//!
//! Of a random value that is all there is to it: with n = 2t + 1 the honest shares are on *some* polynomial, so that a dealer who takes its own share from
//! that one has dealt nothing false, but another number, which it fixed before it knew anything (`spec/mpc.md`, "Why n = 2t + 1 suffices").

use std::future::Future;

use bytes::Bytes;
use theta_groups::{Group, P256, Scalar, Secret};
use theta_mpc::{Active, BlackBox, Misbehaviour, Party, Rep3, Shamir, Stop};
use theta_names::ShareIndex;
use theta_rounds::simulator::{Adversary, Report, SimRng, Tamper};
use theta_rounds::{Abort, PartyId, Slot};

use super::{prepare, recorded};
use crate::group::{GroupOf, Made, Recorder, Sent, same};

type S = <P256 as Group>::Scalar;

/// The round in which seeds are dealt.
const SEEDS: u16 = 1;
const DEALER: u16 = 1;

/// The scalars of a message, with something added to each.
fn plus(payload: &[u8], more: S) -> Bytes {
    payload.chunks(32).flat_map(|code| (S::decode(code).unwrap() + more).encode()).collect::<Vec<u8>>().into()
}

/// Adds to all scalars that a dealer sends in a round what `more` says for each recipient.
fn adding(round: u16, more: impl Fn(u16) -> Option<S> + Send + 'static) -> impl Adversary + 'static {
    Tamper(move |_: &mut SimRng, to: PartyId, slot: Slot, payload: Bytes| {
        let more = if slot.number == round { more(to.get()) } else { None };
        vec![(slot, more.map_or_else(|| payload.clone(), |more| plus(&payload, more)))]
    })
}

/// The value at a party's point of the polynomial of degree t + 1 that is 0 at the points 1 to t + 1: the dealer's own, and those of whom it has seeds
/// in common with. Added to a polynomial of degree t it makes one of degree t + 1, whose other values travel in messages.
fn too_high(t: u16, party: u16) -> S {
    (1..=t + 1).map(|root| S::from_u64(party.into()) - S::from_u64(root.into())).fold(S::ONE, |all, one| all * one)
}

/// The rounds in which party 1 deals polynomials of degree t: those after it derive their shares, and the others are sent theirs.
fn dealings(n: u16, t: u16) -> (Vec<u16>, u16) {
    let sent = recorded::<Shamir<P256, Active>>(n, t, DEALER);
    let last = sent.iter().map(|(_, round, _)| *round).max().unwrap();
    let recipients = |round: u16| -> Vec<u16> {
        let mut all: Vec<u16> = sent.iter().filter(|(_, r, _)| *r == round).map(|(to, _, _)| *to).collect();
        all.sort_unstable();
        all
    };
    ((1..=last).filter(|round| recipients(*round) == (t + 2..=n).collect::<Vec<_>>()).collect(), last)
}

/// How many honest parties have found that somebody cheated, and how many have a result.
fn ends<O>(report: &Report<O, Misbehaviour>) -> (usize, usize) {
    report.check_blame().unwrap();
    let caught = report.honest().filter(|(_, party)| matches!(party.result, Some(Err(Abort::Cheated(_))))).count();
    (caught, report.honest().filter(|(_, party)| matches!(party.result, Some(Ok(_)))).count())
}

/// All honest parties have found that somebody cheated.
fn is_caught<O>(report: &Report<O, Misbehaviour>) -> bool {
    ends(report) == (report.honest().count(), 0)
}

/// Runs key generation, nonces and tuples with a dealer that lies in each of its dealings, one run for each. It is caught in every run, and no honest party
/// comes to the confirmation that ends the binding: so nobody has a tuple, and nothing is signed.
fn each_dealing_is_caught(n: u16, t: u16, more: impl Fn(u16) -> Option<S> + Copy + Send + 'static) {
    let (rounds, last) = dealings(n, t);
    // Key and its mask, a coin; factors with coins and masks, double sharings: if there are none the test has lost sight of them.
    assert!(rounds.len() >= 6, "{rounds:?}");
    for round in rounds {
        let sent = Sent::default();
        let group = GroupOf::new(n, t).liar(DEALER, adding(round, more)).liar(2, Recorder(sent.clone()));
        let report = prepare::<Shamir<P256, Active>>(group);
        assert!(is_caught(&report), "{n} parties, round {round}");
        let reached = sent.lock().unwrap().iter().map(|(_, round, _)| *round).max().unwrap();
        assert!(reached < last, "{n} parties: round {reached} of {last} after a lie in round {round}");
    }
}

#[test]
fn a_polynomial_of_too_high_a_degree_is_caught_before_there_is_a_tuple() {
    for (n, t) in [(3, 1), (5, 2)] {
        each_dealing_is_caught(n, t, move |to| Some(too_high(t, to)));
    }
}

/// Party 4 has a share of one polynomial and party 5 of another one.
#[test]
fn different_polynomials_to_two_parties_are_caught_before_there_is_a_tuple() {
    each_dealing_is_caught(5, 2, |to| (to == 5).then_some(S::ONE));
}

/// One bit of the seed that the dealer sends to one party.
fn another_seed(to: u16) -> impl Adversary + 'static {
    Tamper(move |_: &mut SimRng, recipient: PartyId, slot: Slot, payload: Bytes| {
        let mut bytes = payload.to_vec();
        if slot.number == SEEDS && recipient.get() == to {
            bytes[0] ^= 1;
        }
        vec![(slot, bytes.into())]
    })
}

#[test]
fn another_seed_than_the_dealer_uses_is_caught() {
    for (n, t) in [(3, 1), (5, 2)] {
        // Polynomials of degree 2t are derived by all parties, those of degree t by the first t after the dealer.
        for to in 2..=n {
            let report = prepare::<Shamir<P256, Active>>(GroupOf::new(n, t).liar(DEALER, another_seed(to)));
            assert!(is_caught(&report), "the seed of party {to} of {n}");
        }
    }
    // The holder of a part sends its seed to the party before it.
    for (dealer, to) in [(1, 3), (2, 1), (3, 2)] {
        let report = prepare::<Rep3<P256, Active>>(GroupOf::new(3, 1).liar(dealer, another_seed(to)));
        // The third party is told that part by both others and sees that they differ; the victim waits for it.
        assert_eq!(ends(&report), (1, 0), "the seed of party {to}");
    }
}

/// Party 1 enters a number, which is opened. Returns what the honest ones say.
fn input_of<B: Made<Group = P256>>(group: GroupOf) -> Report<Vec<S>, Misbehaviour> {
    group.run(same(|party: Party| async move {
        let black_box = B::make(&party).await?;
        let own = (party.position() == 0).then(|| Secret::new(vec![S::from_u64(5)]));
        let value = black_box.input(ShareIndex::try_from(DEALER).unwrap(), 1, own.as_ref()).await?;
        black_box.open(&value).await
    }))
}

#[test]
fn an_input_that_is_not_the_same_at_all_is_caught() {
    // The seeds come first, then the dealing.
    const INPUT: u16 = SEEDS + 1;
    type Replicated = Rep3<P256, Active>;
    for victim in [2, 3] {
        let lie = adding(INPUT, move |to| (to == victim).then_some(S::ONE));
        let report = input_of::<Replicated>(GroupOf::new(3, 1).liar(DEALER, lie));
        let phases = report.honest().map(|(_, party)| party.result.as_ref().unwrap().as_ref().unwrap_err());
        assert!(phases.into_iter().all(|abort| *abort == Abort::Cheated("an input is not the same at all")));
    }
    let lie = adding(INPUT, |to| (to == 5).then_some(S::ONE));
    assert!(is_caught(&input_of::<Shamir<P256, Active>>(GroupOf::new(5, 2).liar(DEALER, lie))));
    // Whoever tells both the same enters another number, as it may.
    let same = adding(INPUT, |_| Some(S::ONE));
    let report = input_of::<Replicated>(GroupOf::new(3, 1).liar(DEALER, same));
    for (_, party) in report.honest() {
        assert_eq!(party.result.as_ref().unwrap().as_ref().unwrap(), &[S::from_u64(6)]);
    }
}

/// A random value, opened.
fn shown<F>(group: GroupOf, program: fn(Party) -> F) -> Report<Vec<S>, Misbehaviour>
where
    F: Future<Output = Result<Vec<S>, Stop>> + Send + 'static,
{
    group.run(same(program))
}

/// Of three, the dealer adds (X - 1) (X - 2) to a line, which is 2 at party 3 and 0 at the others. Parties 2 and 3 then have a line with 2 less at the
/// dealer's point and 4 less at 0. If it shows the share that belongs to that line nobody can notice, and there is nothing to notice: the value is random,
/// less a number that the dealer chose before it saw anything of it.
#[test]
fn a_dealer_that_goes_along_with_its_false_dealing_only_shifts_a_random_value() {
    async fn random(party: Party) -> Result<Vec<S>, Stop> {
        let black_box = Shamir::<P256, Active>::new(&party).await?;
        let value = black_box.random(1).await?;
        black_box.open(&value).await
    }
    const DEALING: u16 = SEEDS + 1;
    for seed in 0..5 {
        let sent = Sent::default();
        let honest = shown(GroupOf::new(3, 1).seed(seed).liar(DEALER, Recorder(sent.clone())), random);
        let value = honest.agreed(Clone::clone).unwrap()[0];
        let opening = sent.lock().unwrap().iter().map(|(_, round, _)| *round).max().unwrap();
        let lie = Tamper(move |_: &mut SimRng, _, slot: Slot, payload: Bytes| {
            let more = match slot.number {
                DEALING => too_high(1, 3),
                round if round == opening => -S::from_u64(2),
                _ => return vec![(slot, payload)],
            };
            vec![(slot, plus(&payload, more))]
        });
        let report = shown(GroupOf::new(3, 1).seed(seed).liar(DEALER, lie), random);
        report.check_blame().unwrap();
        for (_, party) in report.honest() {
            assert_eq!(party.result.as_ref().unwrap().as_ref().unwrap(), &[value - S::from_u64(4)]);
        }
    }
}
