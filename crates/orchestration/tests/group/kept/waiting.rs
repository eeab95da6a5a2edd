//! Changes between the decision about a request and its execution.

use theta_custody::{ResolveError, SlotRefusal};
use theta_orchestration::{InstanceError, SubmitError};
use theta_schemes::Suite;
use theta_statements::KeyChange;

use super::{
    cluster::Cluster,
    members::{Question, name},
};

fn rotate(cluster: &mut Cluster) {
    cluster.hold(&[1, 2, 3, 4], KeyChange::Rotate { key: name("key") });
    assert!((1..=4).all(|node| cluster.key(node).version.get() == 2));
}

/// Recording a decision may take time. What the policy allowed with version 1 is not done with version 2.
#[test]
fn a_rotation_after_the_decision_ends_the_request() {
    let mut cluster = Cluster::with_key(Suite::Bls04MinPk, 2, &[1, 2, 3, 4], 4, 31);
    let question = Question::new(&cluster.key(1), "decided for version 1");
    let granted = cluster.engine(1).granted(&question.request);
    rotate(&mut cluster);
    let refused = cluster.engine(1).submit_granted(granted).unwrap_err();
    assert!(matches!(&refused, SubmitError::Key(ResolveError::Retired { .. })), "{refused}");
    // A decision that is made now is about version 2.
    let question = Question::new(&cluster.key(1), "decided for version 2");
    let granted = cluster.engine(1).granted(&question.request);
    cluster.engine(1).submit_granted(granted).unwrap();
}

/// An old ciphertext is still decrypted, by the version that it names.
#[test]
fn a_rotation_after_the_decision_does_not_stop_a_decryption() {
    let mut cluster = Cluster::with_key(Suite::Sg02Ristretto255, 2, &[1, 2, 3, 4], 4, 32);
    let question = Question::new(&cluster.key(1), "encrypted to version 1");
    let granted: Vec<_> = [1, 2].map(|node| (node, cluster.engine(node).granted(&question.request))).into();
    rotate(&mut cluster);
    let submit = |(node, granted)| cluster.engine(node).submit_granted(granted).unwrap();
    let pending: Vec<_> = granted.into_iter().map(submit).collect();
    cluster.until("both have it", |_| pending.iter().all(|pending| pending.outcome().is_some()));
    question.check(&pending[0].outcome().unwrap().unwrap());
}

/// A request that waits for the certificate of its slot does not continue with another version, either.
#[test]
fn a_rotation_while_a_slot_is_certified_ends_the_request() {
    let mut cluster = Cluster::with_key(Suite::Bls04MinPk, 2, &[1, 2, 3, 4], 4, 33);
    let question = Question::new(&cluster.key(1), "for slot 7");
    let ask = |cluster: &mut Cluster, node| {
        let granted = cluster.engine(node).granted_slot(&question.request, 7);
        cluster.engine(node).submit_granted(granted).unwrap()
    };
    cluster.until("the stores are confirmed", |cluster| {
        (1..=4).all(|node| cluster.engine(node).custodian().unwrap().is_trusted())
    });
    let waiting = ask(&mut cluster, 1);
    rotate(&mut cluster);
    assert!(waiting.outcome().is_none(), "one promise of three");
    let later: Vec<_> = [2, 3].map(|node| ask(&mut cluster, node)).into();
    cluster.until("the slot is certified", |_| waiting.outcome().is_some());
    let ended = waiting.outcome().unwrap().unwrap_err();
    assert!(matches!(&ended, InstanceError::Key(ResolveError::Retired { .. })), "{ended}");
    // They were asked when the name meant version 2.
    cluster.until("two have it", |_| later.iter().all(|pending| pending.outcome().is_some()));
    assert!(later.iter().all(|pending| pending.outcome().unwrap().is_ok()));
}

/// A store that peers have not confirmed may be an old copy: it may have forgotten a promise, so it makes none.
#[test]
fn a_node_whose_store_is_not_confirmed_promises_no_slot() {
    let mut cluster = Cluster::with_key(Suite::Bls04MinPk, 2, &[1, 2, 3, 4], 4, 34);
    let trusted = |cluster: &mut Cluster, node| cluster.engine(node).custodian().unwrap().is_trusted();
    cluster.until("the stores are confirmed", |cluster| (1..=4).all(|node| trusted(cluster, node)));
    cluster.kill(1);
    cluster.start(1);
    assert!(!trusted(&mut cluster, 1));
    drop(cluster.sent(1));
    let question = Question::new(&cluster.key(1), "for slot 7");
    let ask = |cluster: &mut Cluster| {
        let granted = cluster.engine(1).granted_slot(&question.request, 7);
        cluster.engine(1).submit_granted(granted).unwrap()
    };
    let ended = ask(&mut cluster).outcome().unwrap().unwrap_err();
    assert_eq!(ended, InstanceError::Slot(SlotRefusal::Unconfirmed));
    assert!(cluster.sent(1).is_empty(), "no promise leaves");
    cluster.until("its peers know it", |cluster| trusted(cluster, 1));
    drop(cluster.sent(1));
    assert!(ask(&mut cluster).outcome().is_none(), "it waits for the promises of the others");
    let streams: Vec<_> = cluster.sent(1).iter().map(|(_, bytes)| crate::wire::open(bytes).stream).collect();
    let [custody, slots] = [1, 2];
    assert_eq!(streams[..6], [custody, custody, custody, slots, slots, slots], "peers hear of the store first");
}
