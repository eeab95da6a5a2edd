//! Requests that wait for presignatures, on several threads of a node.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use theta_orchestration::OrchestratorConfig;
use theta_protocols::{Served, Used, ecdsa};
use theta_rounds::PartyId;
use theta_schemes::Suite;
use theta_wire::peer::INSTANCES;

use super::{
    cluster::Cluster,
    members::{Question, create, party},
};
use crate::{group::config, wire::open};

const LEVEL: usize = 6;
/// The kinds of a share of a signature, and of a message that names the holders of a program.
const SHARE: u32 = 1;
const PREPARE: u32 = 3;

/// The instances in which a node has just sent messages of this kind, in their order. What it has sent gets lost.
fn lost(cluster: &Cluster, node: u16, kind: u32) -> Vec<Bytes> {
    let sent = cluster.sent(node).into_iter().map(|(_, bytes)| open(&bytes));
    let mut ids: Vec<Bytes> =
        sent.filter(|it| it.stream == INSTANCES && it.kind == kind).map(|it| it.instance_id).collect();
    ids.dedup();
    ids
}

/// A presignature that comes while requests wait goes to the one that waits for longest, and not to one that comes just then.
#[test]
fn who_waits_for_a_presignature_has_it_before_who_comes() {
    for seed in 21..25 {
        let limits = OrchestratorConfig { nonces_per_peer: LEVEL, ..config() };
        let mut cluster = Cluster::with_limits(2, 3, seed, &limits);
        cluster.hold(&[1, 2, 3], create("key", Suite::EcdsaP256, 2, &[1, 2, 3]));
        cluster.until("stocks are full", |cluster| {
            (1..=3).all(|node| cluster.key(node).stock.presignatures_ready() >= LEVEL)
        });
        let key = cluster.key(1);
        let owner = PartyId::of_share(key.holders.index_of(party(1)).unwrap());
        let own = || {
            let ask = ecdsa::Ask::Draw { owner, without: BTreeSet::new(), waits: false, place: None };
            let Served::Used(Used::Presignature(used)) = key.stock.presignatures(ask) else { return None };
            Some(used.presignature)
        };
        let presignatures: Vec<_> = core::iter::from_fn(own).take(1).collect();
        while own().is_some() {}
        drop(cluster.sent(1));

        let mut order = Vec::new();
        let mut ask = |cluster: &mut Cluster, number: u32| {
            let question = Question::new(&key, &format!("{number}"));
            let pending = cluster.submit(1, &question.request);
            order.push(Bytes::copy_from_slice(&pending.id().0));
            pending
        };
        // The first that this node coordinates begins a program; others wait for it.
        let mut pending: Vec<_> = (0..16).map(|number| ask(&mut cluster, number)).collect();
        let begun = lost(&cluster, 1, PREPARE);
        assert_eq!(begun.len(), 1, "seed {seed}");
        let keep = ecdsa::Ask::Keep { presignatures, most: 3 * LEVEL, day: 0, made: None };
        assert!(matches!(key.stock.presignatures(keep), Served::Done));
        pending.extend((16..32).map(|number| ask(&mut cluster, number)));
        let served = lost(&cluster, 1, SHARE);
        // Whoever has waited for long enough begins a program.
        cluster.pass(Duration::from_millis(100));
        let waited = lost(&cluster, 1, PREPARE);
        assert!(pending.iter().all(|pending| pending.outcome().is_none()));
        let waited: Vec<&Bytes> =
            order.iter().filter(|id| served.contains(id) || (waited.contains(id) && !begun.contains(id))).collect();
        assert!(waited.len() > 4, "{} requests", waited.len());
        assert_eq!(served, [waited[0].clone()], "seed {seed}");
    }
}
