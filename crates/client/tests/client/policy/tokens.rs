//! No node can use what a token's owner sends it at another node.

use theta_statements::{UnixTime, Validity};
use tonic::{Status, metadata::MetadataValue};

use super::*;

/// Reads the list of keys of a node with this header, by a connection that shows no certificate.
async fn list(client: &Client, at: u16, header: &str) -> Result<(), Status> {
    let mut request = Request::new(v1::GetPublicKeyRequest { key: SIGNER.to_owned() });
    request.metadata_mut().insert("authorization", header.parse().unwrap());
    client.protocol(node(at)).unwrap().get_public_key(request).await.map(drop)
}

fn text(header: &MetadataValue<tonic::metadata::Ascii>) -> String {
    header.to_str().unwrap().to_owned()
}

/// The header of this token for one node, for these milliseconds from now on.
fn header(group: &TestGroup, at: u16, token: &Token, (from, until): (i64, i64)) -> String {
    let now = i64::try_from(UnixTime::now().0).unwrap();
    let time = |offset: i64| UnixTime(u64::try_from(now + offset).unwrap());
    let certificate = group.group.node(node(at)).unwrap().certificate;
    let validity = Validity { from: time(from), until: time(until) };
    format!("Theta {}", token.prove(certificate.as_bytes(), validity).to_text())
}

const NOW: (i64, i64) = (-60_000, 60_000);

async fn group_with_operator() -> TestGroup {
    let group = TestGroup::new().await;
    group.set_policies(&(people(&group) + &allow("r", "operator", "*", "\"keys.list\", \"sign\"", ""))).await;
    group
}

/// A client that shows nothing by itself, each with connections of its own.
fn nobody(group: &TestGroup) -> Client {
    Client::new(group.group.clone(), None, [], options()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_was_sent_is_worth_nothing_at_another() {
    let group = group_with_operator().await;
    let operator = holder(&group, token(1));
    operator.sign(SIGNER, "honest".into()).await.unwrap();
    let sent = text(&operator.authorization(node(1)).unwrap().unwrap());
    assert!(
        !sent.contains(&token(1).to_text().expose()["theta-token2-".len()..]),
        "the token itself is sent to nobody"
    );
    list(&nobody(&group), 1, &sent).await.unwrap();
    for other in 2..=4 {
        let refused = list(&nobody(&group), other, &sent).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
        assert!(refused.message().contains("made for another node than this"), "{refused}");
    }
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_proof_that_is_none_is_refused_with_its_reason() {
    let group = group_with_operator().await;
    let (hour, minute) = (3_600_000, 60_000);
    let bearer = format!("Bearer {}", token(1).to_text().expose());
    let bare = format!("Theta {}", token(1).to_text().expose());
    for (header, reason) in [
        (header(&group, 1, &token(2), NOW), "no client of the policy has the token of the key ed25519:"),
        (header(&group, 1, &token(1), (minute, 2 * minute)), "it is valid only from"),
        (header(&group, 1, &token(1), (-2 * minute, -minute)), "it was valid until"),
        (header(&group, 1, &token(1), (-minute, 2 * hour)), "it is valid for 7260000 ms"),
        (header(&group, 2, &token(1), NOW), "made for another node"),
        (bearer, "this is not a token's proof"),
        (bare, "this is not a token's proof"),
        ("Theta".to_owned(), "this is not a token's proof"),
        (String::new(), "this is not a token's proof"),
    ] {
        let refused = list(&nobody(&group), 1, &header).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
        assert!(refused.message().contains(reason), "{refused}\n{reason}");
        assert!(!refused.message().contains(&token(1).to_text().expose()[..30]), "{refused}");
    }
    // A certificate of the policy does not make up for a false token.
    let refused = list(&tester(&group), 1, &header(&group, 2, &token(1), NOW)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_one_false_proof_a_connection_has_no_more_verified() {
    let group = group_with_operator().await;
    let client = nobody(&group);
    let good = header(&group, 1, &token(1), NOW);
    list(&client, 1, &good).await.unwrap();
    list(&client, 1, &header(&group, 2, &token(1), NOW)).await.unwrap_err();
    // What was verified before stays, and nothing new is looked at.
    list(&client, 1, &good).await.unwrap();
    let refused = list(&client, 1, &header(&group, 1, &token(1), (-50_000, 70_000))).await.unwrap_err();
    assert!(refused.code() == Code::Unauthenticated && refused.message().contains("connect anew"), "{refused}");
    // Another connection begins anew.
    list(&nobody(&group), 1, &header(&group, 1, &token(1), (-50_000, 70_000))).await.unwrap();
    group.shutdown().await;
}

/// Each good proof would cost the node a signature check, before the policy asks for any rate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_makes_one_proof_after_another_is_refused_before_they_are_verified() {
    let group = group_with_operator().await;
    let client = nobody(&group);
    let first = header(&group, 1, &token(1), NOW);
    // Two minutes' worth, so that the beginning of another minute makes no difference.
    let mut refused = None;
    for number in 1..=128 {
        if let Err(status) = list(&client, 1, &header(&group, 1, &token(1), (-60_000 - number, 60_000))).await {
            refused = Some(status);
            break;
        }
    }
    let refused = refused.expect("all of these proofs were verified");
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    assert!(refused.message().contains("more proofs of tokens came by this connection"), "{refused}");
    // Another connection of the same client has its own measure.
    list(&nobody(&group), 1, &first).await.unwrap();
    group.shutdown().await;
}
