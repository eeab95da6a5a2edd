//! A liar that opens a value with the messages of an earlier opening: they were right then, and are of the right length. With no black box does
//! anybody take the second value for the first one.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use theta_groups::P256;
use theta_mpc::{Active, Mascot, Misbehaviour, Party, Rep3, Scalar, Shamir, Stop};
use theta_rounds::simulator::{Adversary, HonestSend, Report, SimRng};
use theta_rounds::{Abort, Offence, PartyId};

use crate::group::{GroupOf, Made, Recorder, Sent, party, same};

const LIAR: u16 = 1;

/// Sends in some rounds what it sent the same party so many rounds before.
struct Replay {
    rounds: RangeInclusive<u16>,
    before: u16,
    /// `None`: to all.
    to: Option<u16>,
    sent: BTreeMap<(PartyId, u16), HonestSend>,
}

impl Adversary for Replay {
    fn on_send(&mut self, _rng: &mut SimRng, to: PartyId, honest: HonestSend) -> Vec<HonestSend> {
        let round = honest.slot.number;
        self.sent.insert((to, round), honest.clone());
        let is_replayed = self.rounds.contains(&round) && self.to.is_none_or(|only| only == to.get());
        let earlier = self.sent.get(&(to, round.saturating_sub(self.before))).filter(|_| is_replayed);
        let payload = earlier.map_or(honest.payload, |earlier| earlier.payload.clone());
        vec![HonestSend { payload, ..honest }]
    }
}

/// Two random values, opened one after the other: the first `openings` of them.
async fn open_some<B: Made<Group = P256>>(party: Party, openings: usize) -> Result<Vec<Scalar<B>>, Stop> {
    let black_box = B::make(&party).await?;
    let values = black_box.random(2).await?;
    let mut opened = Vec::new();
    for place in 0..openings {
        opened.extend(black_box.open(&values.at(place)).await?);
    }
    Ok(opened)
}

/// The last round of that, with honest parties.
fn last<B: Made<Group = P256>>(n: u16, t: u16, openings: usize) -> u16 {
    let sent = Sent::default();
    let group = GroupOf::new(n, t).liar(LIAR, Recorder(sent.clone()));
    let report = group.run(same(move |party| open_some::<B>(party, openings)));
    assert_eq!(report.agreed(Clone::clone).unwrap().len(), openings);
    sent.lock().unwrap().iter().map(|(_, round, _)| *round).max().unwrap()
}

/// The second opening, with what the first one sent in these of its rounds.
fn replayed<B: Made<Group = P256>>(
    (n, t): (u16, u16),
    rounds: RangeInclusive<u16>,
    before: u16,
    to: Option<u16>,
) -> Report<Vec<Scalar<B>>, Misbehaviour> {
    let liar = Replay { rounds, before, to, sent: BTreeMap::new() };
    let report = GroupOf::new(n, t).liar(LIAR, liar).run(same(|party| open_some::<B>(party, 2)));
    report.check_blame().unwrap();
    report
}

/// Whether all honest parties have ended with this.
fn all_say<O>(report: &Report<O, Misbehaviour>, phase: &'static str) -> bool {
    report.honest().all(|(_, party)| matches!(party.result, Some(Err(Abort::Cheated(it))) if it == phase))
}

#[test]
fn an_opening_of_malicious_shamir_again_is_caught() {
    for (n, t) in [(3, 1), (5, 2)] {
        type B = Shamir<P256, Active>;
        let (first, second) = (last::<B>(n, t, 1), last::<B>(n, t, 2));
        let report = replayed::<B>((n, t), second..=second, second - first, None);
        assert!(all_say(&report, "the shares of an opened value contradict each other"));
    }
}

/// A party sends the next one the part that this one lacks, and the one before a hash of the other part, which that one is told by somebody else. Either
/// again makes one party stop, and both again make both.
#[test]
fn an_opening_of_malicious_rep3_again_is_caught() {
    type B = Rep3<P256, Active>;
    let (first, second) = (last::<B>(3, 1, 1), last::<B>(3, 1, 2));
    for (to, stopped) in [(Some(2), 1), (Some(3), 1), (None, 2)] {
        let report = replayed::<B>((3, 1), second..=second, second - first, to);
        let caught = report.honest().filter(|(_, party)| matches!(party.result, Some(Err(Abort::Cheated(_))))).count();
        assert_eq!(caught, stopped, "again to {to:?}");
        // The other one has been told the truth.
        let right = report.honest().filter(|(_, party)| matches!(party.result, Some(Ok(_)))).count();
        assert_eq!(right, 2 - stopped);
    }
}

/// Each message of an opening is hashed by whoever has it, and the hash opens the next one: so neither one of the four again, nor all of them, is what the
/// others have seen of this opening.
#[test]
fn an_opening_of_mascot_again_is_caught() {
    type B = Mascot<P256>;
    for (n, t) in [(2, 1), (3, 2)] {
        let (first, second) = (last::<B>(n, t, 1), last::<B>(n, t, 2));
        let alone = (first + 1..=second).map(|round| round..=round);
        for rounds in alone.chain([first + 1..=second]) {
            let report = replayed::<B>((n, t), rounds.clone(), second - first, None);
            assert!(all_say(&report, "not all received the same"), "rounds {rounds:?} of {second} again");
        }
    }
}

/// A liar that waits for the others: it commits as in an earlier opening, takes the hash of what all have shown from the honest party's message, and opens the
/// commitment as it did then.
struct Rushing {
    /// The round of the commitment that is replayed.
    round: u16,
    before: u16,
    sent: BTreeMap<u16, HonestSend>,
}

impl Adversary for Rushing {
    fn on_send(&mut self, _rng: &mut SimRng, _to: PartyId, honest: HonestSend) -> Vec<HonestSend> {
        let round = honest.slot.number;
        self.sent.insert(round, honest.clone());
        if round == self.round + 1 {
            return Vec::new();
        }
        let earlier = self.sent.get(&(round - round.min(self.before))).filter(|_| round == self.round);
        let payload = earlier.map_or(honest.payload, |earlier| earlier.payload.clone());
        vec![HonestSend { payload, ..honest }]
    }

    fn on_receive(&mut self, _rng: &mut SimRng, _from: PartyId, theirs: &HonestSend) -> Vec<HonestSend> {
        /// The hash comes first.
        const HASH: usize = 32;
        if theirs.slot.number != self.round + 1 {
            return Vec::new();
        }
        let earlier = &self.sent[&(self.round + 1 - self.before)].payload;
        vec![HonestSend { payload: [&theirs.payload[..HASH], &earlier[HASH..]].concat().into(), ..theirs.clone() }]
    }
}

/// A commitment is to its opening's number too: who opens an earlier one again is named.
#[test]
fn a_commitment_of_mascot_serves_no_second_opening() {
    type B = Mascot<P256>;
    let (first, second) = (last::<B>(2, 1, 1), last::<B>(2, 1, 2));
    let liar = Rushing { round: first + 1, before: second - first, sent: BTreeMap::new() };
    let report = GroupOf::new(2, 1).liar(LIAR, liar).run(same(|party| open_some::<B>(party, 2)));
    assert!(report.honest().all(|(_, party)| matches!(party.result, Some(Err(_)))));
    let offences: Vec<_> = report.blames_of(party(LIAR)).map(|(_, blame)| blame.offence.clone()).collect();
    assert_eq!(offences, [Offence::Protocol(Misbehaviour::FalseOpening)]);
}
