//! Stocks of presignatures that are filled though nobody asks for a signature.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use prost::Message as _;
use theta_names::{Delivery, Epoch, NodeId};
use theta_network::Inbound;
use theta_orchestration::{InstanceId, OrchestratorConfig, Stock};
use theta_schemes::Suite;
use theta_statements::KeyChange;
use theta_wire::peer::{Envelope, INSTANCES, VERSION};

use super::{
    cluster::Cluster,
    members::{Question, create, name},
};
use crate::{group::config, wire::peer};

const SUITE: Suite = Suite::EcdsaSecp256k1;
const LEVEL: usize = 6;
/// The `kind` of an announcement.
const ANNOUNCEMENT: u32 = u32::MAX - 1;
/// The kinds of ECDSA's messages: the holders of a program, and all of its rounds.
const PREPARE: u32 = 3;
/// The kind of a share of what a presignature signs.
const SHARE: u32 = 1;

fn cluster(k: u16, n: u16, seed: u64) -> Cluster {
    delivered(Delivery::All, k, n, seed)
}

fn delivered(delivery: Delivery, k: u16, n: u16, seed: u64) -> Cluster {
    Cluster::of_key(SUITE, delivery, (k, n), LEVEL, seed)
}

fn ready(cluster: &mut Cluster) -> Vec<usize> {
    let ids = cluster.ids();
    ids.into_iter().map(|id| cluster.key(id).stock.presignatures_ready()).collect()
}

fn are_full(cluster: &mut Cluster) -> bool {
    ready(cluster).iter().all(|ready| *ready >= LEVEL)
}

/// The envelopes of all messages of instances that were delivered.
fn envelopes(cluster: &Cluster) -> impl Iterator<Item = Envelope> + '_ {
    envelopes_since(cluster, 0)
}

/// Those since the log had this length.
fn envelopes_since(cluster: &Cluster, since: usize) -> impl Iterator<Item = Envelope> + '_ {
    let all = cluster.log[since..].iter().map(|(_, _, bytes)| Envelope::decode(bytes.clone()).unwrap());
    all.filter(|envelope| envelope.stream == INSTANCES)
}

/// The fillings that nodes have begun.
fn fillings(cluster: &Cluster) -> BTreeSet<Bytes> {
    let announced = envelopes(cluster).filter(|envelope| envelope.kind == ANNOUNCEMENT);
    announced.map(|envelope| envelope.instance_id).collect()
}

fn announced(cluster: &Cluster) -> usize {
    fillings(cluster).len()
}

/// How many programs coordinators have named for signatures.
fn prepared(cluster: &Cluster) -> usize {
    let fillings = fillings(cluster);
    let named = envelopes(cluster).filter(|envelope| envelope.kind == PREPARE);
    let named: BTreeSet<(Bytes, u32)> = named.map(|envelope| (envelope.instance_id, envelope.number)).collect();
    named.iter().filter(|(id, _)| !fillings.contains(id)).count()
}

/// Lets so much time pass without requests.
fn rest(cluster: &mut Cluster, time: Duration) {
    let turns = time.as_millis() / 50;
    let mut passed = 0;
    while passed < turns {
        let before = cluster.log.len();
        cluster.turn();
        passed += u128::from(before == cluster.log.len());
    }
}

/// Signs, and says whether a program ran for it.
fn signs(cluster: &mut Cluster, text: &str) -> bool {
    let ids: Vec<u16> = cluster.ids().into_iter().filter(|id| !cluster.cut.contains(id)).collect();
    let before = prepared(cluster);
    let question = Question::new(&cluster.key(ids[0]), text);
    let pending: Vec<_> = ids.iter().map(|node| cluster.submit(*node, &question.request)).collect();
    cluster.until("all have it", |_| pending.iter().all(|pending| pending.outcome().is_some()));
    pending.iter().for_each(|pending| question.check(&pending.outcome().unwrap().unwrap()));
    prepared(cluster) > before
}

#[test]
fn a_new_key_has_presignatures_before_anybody_signs() {
    for (k, n) in [(2, 3), (3, 5)] {
        let mut cluster = cluster(k, n, n.into());
        cluster.until("stocks are full", are_full);
        assert_eq!(announced(&cluster), 1, "one node begins, and the others wait for it");
        assert!(!signs(&mut cluster, "the first"), "no program runs");
        for id in cluster.ids() {
            let key = cluster.key(id);
            let stock = cluster.engine(id).stock(&key).unwrap();
            assert_eq!((stock.kind, stock.level), ("presignatures", LEVEL));
            assert!(cluster.engine(id).culprits().is_empty());
        }
    }
}

/// A program makes several presignatures for little more than one takes: requests that come while one runs wait for it, and do not begin one each.
#[test]
fn many_requests_at_once_share_programs() {
    share_programs(cluster(2, 3, 3), 60, 6);
}

/// With a dishonest majority it makes fewer, the more of its holders may be liars.
#[test]
fn many_requests_at_once_share_programs_of_all_holders() {
    share_programs(delivered(Delivery::DishonestMajority, 2, 2, 3), 30, 6);
    share_programs(delivered(Delivery::DishonestMajority, 3, 3, 4), 20, 4);
}

/// Asks for so many signatures at once, of which each program makes so many beside the one for its request.
fn share_programs(mut cluster: Cluster, requests: usize, made: usize) {
    cluster.until("stocks are full", are_full);
    let ids = cluster.ids();
    let questions: Vec<Question> =
        (0..requests).map(|number| Question::new(&cluster.key(ids[0]), &format!("{number}"))).collect();
    let mut pending = Vec::new();
    for question in &questions {
        pending.extend(ids.iter().map(|node| (question, cluster.submit(*node, &question.request))));
    }
    cluster.until("all have all", |_| pending.iter().all(|(_, pending)| pending.outcome().is_some()));
    pending.iter().for_each(|(question, pending)| question.check(&pending.outcome().unwrap().unwrap()));
    let programs = prepared(&cluster);
    assert!((1..=2 * requests / made).contains(&programs), "{programs} programs for {requests} requests");
    assert!(ids.iter().all(|id| cluster.engine(*id).culprits().is_empty()));
}

/// Programs end in one order here and in another there. Stocks stay alike all the same, however many requests come and whoever coordinates most of them:
/// nobody names what others have thrown away, which would cost a tick each time.
#[test]
fn stocks_stay_alike_under_load() {
    for (seed, waves, at_once) in [(0, 100, 8), (1, 100, 8), (2, 12, 60)] {
        stay_alike(cluster(2, 3, 40 + seed), waves, at_once);
    }
}

/// So do those of keys that all holders sign for.
#[test]
fn stocks_of_all_holders_stay_alike_under_load() {
    for (k, waves, at_once) in [(2, 20, 8), (2, 3, 60), (3, 10, 8)] {
        stay_alike(delivered(Delivery::DishonestMajority, k, k, 50), waves, at_once);
    }
}

/// Asks for so many signatures at once, so many times.
fn stay_alike(mut cluster: Cluster, waves: usize, at_once: usize) {
    cluster.until("stocks are full", are_full);
    let ids = cluster.ids();
    for wave in 0..waves {
        let questions: Vec<Question> =
            (0..at_once).map(|number| Question::new(&cluster.key(ids[0]), &format!("{wave} {number}"))).collect();
        let asked = questions.iter().flat_map(|question| ids.iter().map(move |node| (question, *node)));
        let asked: Vec<_> = asked.map(|(question, node)| (question, cluster.submit(node, &question.request))).collect();
        cluster.until("all have all", |_| asked.iter().all(|(_, pending)| pending.outcome().is_some()));
        asked.iter().for_each(|(question, pending)| question.check(&pending.outcome().unwrap().unwrap()));
    }
    let programs = prepared(&cluster);
    rest(&mut cluster, Duration::from_secs(5));
    let had = ready(&mut cluster);
    assert!(had.iter().all(|ready| *ready == had[0] && *ready >= LEVEL && *ready <= 3 * 2 * LEVEL), "{had:?}");
    let waited = |cluster: &Cluster| ids.iter().map(|id| cluster.metric(*id, "theta_resends_asked_total")).sum::<f64>();
    let (before, since) = (waited(&cluster), cluster.log.len());
    for turn in 0..had[0] {
        signs(&mut cluster, &format!("after all {turn}"));
    }
    assert!(waited(&cluster) < before + 0.5, "{} questions of who has waited", waited(&cluster) - before);
    // Where all must sign, nobody waits for who lacks what is named: the next coordinator names something else.
    let named = named(&cluster, since);
    assert_eq!(named.len(), had[0]);
    let in_vain = named.values().filter(|named| named.len() > 1).count();
    assert_eq!(in_vain, 0, "after {programs} programs for {} requests", at_once * waves);
}

/// What coordinators have named in each request since then: presignatures, by their names, and programs.
fn named(cluster: &Cluster, since: usize) -> BTreeMap<Bytes, BTreeSet<Option<Bytes>>> {
    let mut named: BTreeMap<Bytes, BTreeSet<Option<Bytes>>> = BTreeMap::new();
    for envelope in envelopes_since(cluster, since) {
        let what = match envelope.kind {
            SHARE => Some(envelope.payload.slice(..32)),
            PREPARE => None,
            _ => continue,
        };
        named.entry(envelope.instance_id).or_default().insert(what);
    }
    let fillings = fillings(cluster);
    named.retain(|id, _| !fillings.contains(id));
    named
}

/// Of four, three make them: the fourth begins a filling in which it is one of the three.
#[test]
fn whoever_was_left_out_gets_some_too() {
    for seed in 0..5 {
        let mut cluster = cluster(2, 4, seed);
        cluster.until("stocks are full", are_full);
        rest(&mut cluster, Duration::from_secs(120));
        assert!(ready(&mut cluster).iter().all(|ready| *ready <= 3 * LEVEL));
        assert!(announced(&cluster) <= 3, "{} fillings", announced(&cluster));
    }
}

#[test]
fn an_idle_group_whose_stocks_are_full_sends_nothing_for_them() {
    let mut cluster = cluster(2, 3, 7);
    cluster.until("stocks are full", are_full);
    rest(&mut cluster, Duration::from_secs(10));
    let before = envelopes(&cluster).count();
    rest(&mut cluster, Duration::from_secs(600));
    assert_eq!(envelopes(&cluster).count(), before);
}

/// A node that records what it uses up signs with nothing that is days old. What is in a stock is then made anew, and not shown as if it were good.
///
/// (With some seeds the first request after days of rest makes some all the same, as its coordinator is late; not with this one.)
#[test]
fn what_is_days_old_is_made_anew() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    for (burn_nonces, anew) in [(true, 1), (false, 0)] {
        let limits = OrchestratorConfig { nonces_per_peer: LEVEL, burn_nonces, ..config() };
        let mut cluster = Cluster::with_limits(2, 3, 19, &limits);
        cluster.pass(Duration::from_secs(60));
        cluster.hold(&[1, 2, 3], create("key", SUITE, 2, &[1, 2, 3]));
        cluster.until("stocks are full", are_full);
        let before = announced(&cluster);
        cluster.pass(DAY);
        rest(&mut cluster, Duration::from_secs(60));
        assert_eq!(announced(&cluster), before, "those of yesterday are good");
        cluster.pass(2 * DAY);
        rest(&mut cluster, Duration::from_secs(60));
        cluster.until("stocks are full", are_full);
        assert_eq!(announced(&cluster) - before, anew);
        assert!(!signs(&mut cluster, "days later"), "no program runs");
        assert!(cluster.ids().into_iter().all(|id| cluster.engine(id).culprits().is_empty()));
    }
}

#[test]
fn stocks_are_filled_after_signatures_a_refresh_and_a_restart() {
    let mut cluster = cluster(2, 3, 11);
    cluster.until("stocks are full", are_full);
    let mut programs = 0;
    for turn in 0..20 {
        programs += usize::from(signs(&mut cluster, &format!("message {turn}")));
        rest(&mut cluster, Duration::from_secs(3));
        assert!(are_full(&mut cluster));
    }
    // Of so few each node owns two or three: who coordinates several in a row has none left.
    assert!(programs <= 5, "{programs} of 20 were not signed from the stock");
    cluster.hold(&[1, 2, 3], KeyChange::Refresh { key: name("key"), version: None });
    assert_eq!(cluster.key(1).epoch, Epoch::new(1));
    cluster.until("stocks of the new epoch are full", are_full);
    assert!(!signs(&mut cluster, "after the refresh"));
    cluster.kill(2);
    cluster.start(2);
    cluster.until("the restarted node has some", are_full);
    for turn in 0..6 {
        signs(&mut cluster, &format!("after the restart {turn}"));
    }
    for id in cluster.ids() {
        assert!(cluster.engine(id).culprits().is_empty(), "nobody is blamed");
    }
}

/// Nobody begins while too few are there, and all goes on when they are back.
#[test]
fn a_group_with_too_few_nodes_waits_for_the_others() {
    let mut cluster = cluster(2, 3, 13);
    cluster.cut.extend([2, 3]);
    rest(&mut cluster, Duration::from_secs(300));
    let alone = cluster.key(1).stock.presignatures_ready();
    cluster.cut.clear();
    cluster.until("stocks are full", are_full);
    assert!(alone == 0 || alone >= LEVEL);
}

/// A node whose programs make one presignature each, which its configuration or its malice may want, does not keep the others' stocks low.
#[test]
fn whoever_makes_one_at_a_time_is_not_waited_for() {
    for small in 1..=4 {
        let mut cluster = cluster(2, 4, 19);
        cluster.limits.nonces_per_peer = 1;
        cluster.start(small);
        cluster.limits.nonces_per_peer = LEVEL;
        let others: Vec<u16> = (1..=4).filter(|id| *id != small).collect();
        for id in &others {
            cluster.start(*id);
        }
        cluster.until("the others' stocks are full", |cluster| {
            others.iter().all(|id| cluster.key(*id).stock.presignatures_ready() >= LEVEL)
        });
        assert!(announced(&cluster) < 20, "{small}: {} fillings", announced(&cluster));
        assert!(cluster.ids().into_iter().all(|id| cluster.engine(id).culprits().is_empty()));
    }
}

/// What a liar announces costs the others a bounded number of programs, and keeps them from none of their own.
#[test]
fn a_liar_that_announces_without_end_is_heard_less_and_less() {
    let mut cluster = cluster(2, 4, 17);
    cluster.until("stocks are full", are_full);
    let (key, epoch) = (cluster.key(1).key_id, cluster.key(1).epoch);
    // Node 4 is the liar: of its own node nothing is sent any more.
    cluster.cut.insert(4);
    let told = |number: u32| {
        let mut session = [0; 32];
        session[28..].copy_from_slice(&number.to_be_bytes());
        let id = InstanceId::filling(&key, epoch, NodeId::try_from(4).unwrap(), &session);
        let payload = [&key.as_bytes()[..], &epoch.get().to_be_bytes(), &session].concat().into();
        let envelope = Envelope {
            version: VERSION,
            instance_id: Bytes::copy_from_slice(&id.0),
            kind: ANNOUNCEMENT,
            payload,
            ..Envelope::default()
        };
        Bytes::from(envelope.encode_to_vec())
    };
    let mut begun = 0;
    for number in 0..3_000 {
        for id in 1..=3 {
            let before = cluster.engine(id).load().running;
            let (from, channel) = (peer(4), theta_names::Channel::Private);
            cluster.engine(id).receive(Inbound { from, channel, bytes: told(number) });
            begun += usize::from(cluster.engine(id).load().running > before);
        }
        cluster.pass(Duration::from_millis(200));
    }
    assert!(begun <= 3 * 27, "{begun} instances in ten minutes");
    rest(&mut cluster, Duration::from_secs(120));
    for turn in 0..12 {
        signs(&mut cluster, &format!("message {turn}"));
    }
    assert!([1, 2, 3].into_iter().all(|id| cluster.engine(id).culprits().is_empty()));
}

#[test]
fn without_a_level_nothing_is_made_in_advance() {
    let limits = OrchestratorConfig { nonces_per_peer: 0, ..config() };
    let mut cluster = Cluster::with_limits(2, 3, 19, &limits);
    cluster.hold(&[1, 2, 3], create("key", SUITE, 2, &[1, 2, 3]));
    rest(&mut cluster, Duration::from_secs(60));
    assert_eq!((announced(&cluster), ready(&mut cluster)), (0, vec![0; 3]));
    let key = cluster.key(1);
    assert_eq!(cluster.engine(1).stock(&key), None::<Stock>);
}
