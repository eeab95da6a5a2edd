//! Parties that are killed, lose their memory, or come late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use theta_ceremonies::Input;
use theta_ceremonies::{
    Ceremony, Conclusion, ITEMS, JoinError, Kind, Memory, Outcome, StatementSlot, public_digest, statements_of,
};
use theta_groups::Ristretto255;
use theta_rounds::{Channel, PartyId};
use theta_schemes::coins::cks05::Cks05;
use theta_sharing::EncodedShare;

use crate::net::{Net, Subject, die_at_every_step, die_at_random, replay};
use crate::support::{Setting, keys_of, parties, party, secret_of, test_rng, typed};

type Coin = Cks05<Ristretto255>;

impl Subject for Setting<Coin> {
    type Machine = Ceremony;
    type Outcome = Outcome;

    fn parties(&self) -> Vec<PartyId> {
        self.plan.parties().collect()
    }

    fn machine(&self, party: PartyId, memory: Memory, life: u8) -> Self::Machine {
        Self::machine(self, party, memory, life)
    }

    fn revision(machine: &Self::Machine) -> u64 {
        machine.revision()
    }

    fn check(&self, outcomes: &BTreeMap<PartyId, Self::Outcome>, forgot: &BTreeSet<PartyId>) {
        let digest = |(party, outcome): (&PartyId, _)| digest(self, *party, outcome, forgot.contains(party));
        let mut digests = outcomes.iter().map(digest);
        let first = digests.next().unwrap();
        assert!(digests.all(|digest| digest == first));
    }
}

fn digest(setting: &Setting<Coin>, party: PartyId, outcome: &Outcome, forgot: bool) -> [u8; 32] {
    let Conclusion::Activated(activated) = &outcome.conclusion else { panic!("aborted") };
    assert_eq!(activated.share.is_some(), setting.plan.index_of(party).is_some() && !forgot);
    typed::<Coin>(activated).unwrap();
    public_digest(setting.plan.suite(), &activated.public)
}

fn generate(k: u16, n: u16, seed: u64) -> Net<Setting<Coin>> {
    Net::new(Setting::generate(k, n, seed), seed)
}

/// From a group of 2 of 4 to another group of 2 of 4 that has two of its members.
fn reshare(seed: u64) -> Net<Setting<Coin>> {
    let setting = Setting::<Coin>::generate(2, 4, seed);
    let (public, shares) = setting.check(setting.simulate(seed, crate::support::patient()).run()).unwrap();
    Net::new(Setting::reshare(&public, shares, parties(1..=4), (2, parties(3..=6)), seed), seed)
}

#[test]
fn a_party_may_die_at_every_step() {
    die_at_every_step(party(2), || generate(2, 4, 1));
}

/// One party that only deals, one that deals and receives, one that only receives.
#[test]
fn a_party_of_a_reshare_may_die_at_every_step() {
    for unlucky in [2, 3, 5] {
        die_at_every_step(party(unlucky), || reshare(3));
    }
}

#[test]
fn everybody_may_die_many_times() {
    let generated: u32 = (0..10).map(|seed| die_at_random(generate(2, 4, 100 + seed))).sum();
    let reshared: u32 = (0..10).map(|seed| die_at_random(reshare(500 + seed))).sum();
    assert!(generated > 30 && reshared > 30);
}

/// A journal replayed gives the same messages in the same order.
#[test]
fn a_replay_is_exact() {
    let mut net = generate(3, 5, 7);
    net.finish();
    let journal = net.node(party(3)).journal.clone();
    assert_eq!(replay(&net.subject, party(3), &journal), replay(&net.subject, party(3), &journal));
}

/// A party that lost everything except its identity and its place in the plan learns the key from the others, and gets
/// no share.
#[test]
fn who_forgot_everything_is_told() {
    for seed in 0..6 {
        let mut net = generate(2, 4, 200 + seed);
        let when = 5 + 9 * usize::try_from(seed).unwrap();
        while net.node(party(1)).steps < when && net.turn() {}
        net.forget(party(1), Memory::Lost);
        net.step(party(1), Input::Start);
        net.finish();
    }
    // And the same after the end.
    let mut net = generate(2, 4, 300);
    net.finish();
    net.forget(party(1), Memory::Lost);
    net.step(party(1), Input::Start);
    net.finish();
}

/// The votes of a party that are on their way.
fn votes(net: &Net<Setting<Coin>>, author: PartyId) -> BTreeMap<StatementSlot, Bytes> {
    let mut votes = BTreeMap::new();
    for (.., payload) in net.packets.iter().filter(|(_, _, slot, _)| *slot == ITEMS) {
        for statement in statements_of(payload).filter(|statement| statement.author() == author) {
            if matches!(statement.slot().kind, Kind::Prevote | Kind::Precommit) {
                votes.insert(statement.slot(), payload.clone());
            }
        }
    }
    votes
}

/// A party's store went back, which only its own signature shows: it votes no more, since it could contradict itself.
#[test]
fn who_is_shown_its_own_forgotten_vote_votes_no_more() {
    for seed in 400..410 {
        let mut net = generate(2, 4, seed);
        while votes(&net, party(1)).is_empty() {
            assert!(net.turn());
        }
        let (slot, payload) = votes(&net, party(1)).pop_first().unwrap();
        net.forget(party(1), Memory::Kept);
        net.packets.retain(|(from, ..)| *from != party(1));
        net.step(party(1), Input::Start);
        let shown = Input::Message { from: party(2), slot: ITEMS, channel: Channel::Broadcast, payload };
        net.step(party(1), shown);
        while net.turn() {
            assert!(votes(&net, party(1)).keys().all(|said| *said == slot), "seed {seed}");
        }
        net.finish();
    }
}

#[test]
fn strangers_and_wrong_shares_are_refused() {
    let setting = Setting::<Coin>::generate(2, 3, 1);
    let join = |who, share: Option<EncodedShare>| {
        let keys = keys_of(party(who));
        let (plan, secret) = (Arc::clone(&setting.plan), secret_of(party(who), 0));
        Ceremony::join(plan, keys, secret, share.as_ref(), Memory::Kept).map(drop)
    };
    assert_eq!(join(4, None), Err(JoinError::Stranger));
    assert_eq!(join(1, None), Ok(()));
    let dealt = theta_schemes::keys::deal::<Coin>(setting.plan.threshold(), &mut test_rng(1));
    let share = dealt.shares.first().map(|share| share.encoded());
    assert_eq!(join(1, share), Err(JoinError::Share));
}
