//! Many requests in one call.

use std::num::NonZeroUsize;

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_client::{Client, ClientError, Problem};
use theta_names::NodeId;
use theta_payload::{Aead, Encrypt as _, open_bytes, split_ciphertext};
use theta_schemes::Suite;

use crate::{
    fake::{FakeGroup, adopt, key, outcome},
    group::{CIPHER, COIN, Prepared, SIGNER, TestGroup},
    liar,
    requests::with_other_api,
};

fn texts(count: usize, tag: &str) -> Vec<Bytes> {
    (0..count).map(|number| Bytes::from(format!("{tag} {number}"))).collect()
}

/// More than fit into one call; each result is the one of its own request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_gets_its_own_result() {
    let group = TestGroup::new().await;
    let client = Client::open(&group.client_folder()).unwrap();
    let messages = texts(300, "message");
    let signed = client.sign_all(SIGNER, &messages).await.unwrap();
    assert_eq!(signed.len(), 300);
    for (message, answer) in messages.iter().zip(signed) {
        let answer = answer.unwrap();
        group.public(SIGNER).verify(message, &answer.result, &[]).unwrap();
        assert_eq!(answer.contributors.len(), 2);
        assert!(answer.bad_answers.is_empty());
    }
    let alone = client.sign(SIGNER, messages[7].clone()).await.unwrap();
    let again = client.sign_all(SIGNER, &messages[7..8]).await.unwrap().remove(0).unwrap();
    assert_eq!(alone.instance_id, again.instance_id, "equal requests meet");

    let names = texts(40, "name");
    for (name, answer) in names.iter().zip(client.flip_coins(COIN, &names).await.unwrap()) {
        let coin = answer.unwrap().result;
        group.public(COIN).verify(name, &coin.value, &coin.proof).unwrap();
    }

    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut seal =
        |text: &Bytes| Bytes::from(group.public(CIPHER).encrypt(text, b"", Aead::default(), &mut rng).unwrap());
    let sealed: Vec<Bytes> = texts(40, "text").iter().map(&mut seal).collect();
    let headers: Vec<Bytes> =
        sealed.iter().map(|sealed| sealed.slice_ref(split_ciphertext(sealed).unwrap().0)).collect();
    for ((text, sealed), answer) in
        texts(40, "text").iter().zip(&sealed).zip(client.decapsulate_all(CIPHER, &headers).await.unwrap())
    {
        assert_eq!(open_bytes(&answer.unwrap().result, sealed).unwrap().expose().as_slice(), &text[..]);
    }
    assert!(client.sign_all(SIGNER, &[]).await.unwrap().is_empty());
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_fails_fails_alone() {
    let group = TestGroup::new().await;
    let client = Client::open(&group.client_folder()).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut header = || {
        let sealed = group.public(CIPHER).encrypt(b"text", b"", Aead::default(), &mut rng).unwrap();
        split_ciphertext(&sealed).unwrap().0.to_vec()
    };
    let mut headers: Vec<Bytes> = (0..9).map(|_| header().into()).collect();
    // A proof of validity that does not hold.
    let mut tampered = header();
    *tampered.last_mut().unwrap() ^= 1;
    headers[4] = tampered.into();
    for (place, answer) in client.decapsulate_all(CIPHER, &headers).await.unwrap().into_iter().enumerate() {
        match (place, answer) {
            (4, Err(ClientError::Refused { .. })) => {}
            (_, Ok(_)) if place != 4 => {}
            (_, other) => panic!("{place}: {other:?}"),
        }
    }
    let error = client.sign_all("absent", &texts(3, "x")).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. }), "{error}");
    // Signatures of digests are made in tests of the PKCS#11 module. BLS has none.
    let error = client.sign_digests(SIGNER, &[Bytes::from_static(&[7; 32])]).await.unwrap_err();
    assert!(matches!(error, ClientError::Request(_)), "{error}");
    group.shutdown().await;
}

/// A node that answers all of a batch at once, and falsely; what it says twice or about nothing changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_liar_is_named_for_each_lie_and_every_result_is_right() {
    let (group, api) = with_other_api(2).await;
    liar::serve(&group, api);
    let client = Client::open(&group.client_folder()).unwrap();
    let mut caught = 0;
    // The first time the connection to it may be made after the others have answered.
    for round in 0..50 {
        let messages = texts(24, &format!("message {round}"));
        for answer in client.sign_all(SIGNER, &messages).await.unwrap().into_iter().zip(&messages) {
            let (answer, message) = (answer.0.unwrap(), answer.1);
            group.public(SIGNER).verify(message, &answer.result, &[]).unwrap();
            assert!(answer.node != NodeId::try_from(1).unwrap());
            for bad in &answer.bad_answers {
                assert!(bad.node == NodeId::try_from(1).unwrap() && matches!(bad.problem, Problem::FalseAnswer(_)));
                caught += 1;
            }
        }
        if caught > 0 {
            break;
        }
    }
    assert!(caught > 0, "it answers first, and is caught");
    let names = texts(24, "name");
    for (name, answer) in names.iter().zip(client.flip_coins(COIN, &names).await.unwrap()) {
        let coin = answer.unwrap().result;
        group.public(COIN).verify(name, &coin.value, &coin.proof).unwrap();
    }
    group.shutdown().await;
}

/// Nodes have room for two of these calls at one time, each for other ones. Were those without room not asked again, calls would wait in vain for
/// their shares.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_more_than_there_is_room_for_gets_all() {
    let few = |_, config: &mut theta_service::NodeConfig| {
        config.limits.max_client_requests = NonZeroUsize::new(20).unwrap();
    };
    let group = Prepared::new(2, 4).start(few, |_, node| node).await;
    let client = Client::open(&group.client_folder()).unwrap();
    // Of four nodes' eight places six calls have two at least once, so that one is answered and gives its places to others.
    let calls = (0..6).map(|call| {
        let (client, messages) = (client.clone(), texts(10, &format!("call {call}")));
        tokio::spawn(async move { client.sign_all(SIGNER, &messages).await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        let answers = call.await.unwrap();
        assert_eq!(answers.len(), 10);
        answers.into_iter().for_each(|answer| drop(answer.unwrap()));
    }
    // More than there is ever room for is not waited with.
    let many = client.sign_all(SIGNER, &texts(21, "many")).await.unwrap();
    let Err(ClientError::NoAnswer { nodes, .. }) = &many[0] else { panic!("{:?}", many[0]) };
    assert!(nodes[0].problem.to_string().contains("send smaller ones"), "{nodes:?}");
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_ready_for_some_is_asked_again_for_these() {
    let made = key(Suite::Bls04MinPk, 1);
    let mut group = FakeGroup::founded();
    group.decide(adopt("seal", 1, 0, &made.0));
    let answer = outcome(&made, b"same");
    group.answer(&answer);
    (1..=4).for_each(|number| group.node(number).not_ready = 2);
    let client = Client::open(&group.prepared.folder.path().join("client")).unwrap();
    let messages = vec![Bytes::from_static(b"same"); 5];
    for answered in client.sign_all("seal", &messages).await.unwrap() {
        assert_eq!(answered.unwrap().result, answer.result);
    }
    assert!((1..=4).any(|number| group.node(number).requests == 3));
}
