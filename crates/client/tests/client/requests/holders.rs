//! Nodes that hold no share of a key, or have lost it: they say so at once, and the holders answer later.

use std::time::Duration;

use theta_client::{Client, ClientError};
use theta_schemes::Suite;
use tonic::{Code, Status};

use crate::fake::{FakeGroup, adopt, key, outcome};

const MESSAGE: &[u8] = b"a message";

/// A group in which nodes 3 and 4 answer well, after 200 ms.
fn group() -> (FakeGroup, Client) {
    let mut group = FakeGroup::new();
    let seal = key(Suite::Bls04MinPk, 1);
    group.decide(adopt("seal", 1, 0, &seal.0));
    group.answer(&outcome(&seal, MESSAGE));
    (3..=4).for_each(|number| group.node(number).delay = Duration::from_millis(200));
    let client = Client::open(&group.prepared.folder.path().join("client")).unwrap();
    (group, client)
}

fn no_share() -> Status {
    Status::failed_precondition("this node holds no share of key seal")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_no_share_does_not_end_what_holders_answer() {
    let (group, client) = group();
    (1..=2).for_each(|number| group.node(number).refusal = Some(no_share()));
    let signed = client.sign("seal", MESSAGE.into()).await.unwrap();
    assert!(signed.node.get() > 2);
    for answer in client.sign_all("seal", &[MESSAGE.into()]).await.unwrap() {
        answer.unwrap();
    }
    // One that does not know the key and one that holds no share are no better together.
    group.node(1).refusal = Some(Status::not_found("there is no key seal here"));
    client.sign("seal", MESSAGE.into()).await.unwrap();
    // When fewer are left than the key takes, it is refused with what most say of those that know the key.
    group.node(3).refusal = Some(no_share());
    group.node(4).delay = Duration::from_secs(20);
    let error = client.sign("seal", MESSAGE.into()).await.unwrap_err();
    let expected = "this node holds no share of key seal";
    assert!(
        matches!(&error, ClientError::Refused { code: Code::FailedPrecondition, reason, .. } if reason == expected),
        "{error}"
    );
}

/// A liar says that the request is wrong, and another that it cannot be answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_liar_beside_one_that_holds_no_share_ends_nothing() {
    let (group, client) = group();
    group.node(1).refusal = Some(no_share());
    for lie in [no_share(), Status::invalid_argument("no such request"), Status::not_found("no such key")] {
        group.node(2).refusal = Some(lie);
        client.sign("seal", MESSAGE.into()).await.unwrap();
    }
    let mut at_fault = no_share();
    at_fault.metadata_mut().insert("theta-at-fault", "input".parse().unwrap());
    group.node(2).refusal = Some(at_fault.clone());
    client.sign("seal", MESSAGE.into()).await.unwrap();
    // k nodes that say so have an honest one among them: it is over at once.
    group.node(1).refusal = Some(at_fault);
    let error = client.sign("seal", MESSAGE.into()).await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused { code: Code::FailedPrecondition, .. }), "{error}");
}
