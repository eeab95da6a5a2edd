//! Many requests in one call, by a plain gRPC client.

use std::{collections::BTreeMap, num::NonZeroUsize};

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_payload::{Aead, Encrypt as _, split_ciphertext};
use theta_wire::v1::{
    self, BatchAnswer, BatchItem, BatchRequest, Wait, batch_answer::Answer, batch_item::Request as Item,
    threshold_protocol_client::ThresholdProtocolClient,
};
use tonic::{Code, Status};

use crate::group::{CIPHER, COIN, Prepared, SIGNER, TestGroup};

type Protocol = ThresholdProtocolClient;

fn sign(message: impl Into<Bytes>) -> Item {
    Item::Sign(v1::SignRequest { key: SIGNER.to_owned(), message: message.into(), ..Default::default() })
}

fn coin(name: &'static str) -> Item {
    Item::FlipCoin(v1::FlipCoinRequest { key: COIN.to_owned(), name: name.into(), ..Default::default() })
}

fn header(group: &TestGroup, seed: u64) -> Bytes {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let sealed = group.public(CIPHER).encrypt(b"text", b"", Aead::default(), &mut rng).unwrap();
    Bytes::copy_from_slice(split_ciphertext(&sealed).unwrap().0)
}

fn decapsulate(header: Bytes) -> Item {
    Item::Decapsulate(v1::DecapsulateRequest { key: CIPHER.to_owned(), header, ..Default::default() })
}

fn batch(items: impl IntoIterator<Item = Item>) -> BatchRequest {
    BatchRequest { items: items.into_iter().map(|request| BatchItem { request: Some(request) }).collect() }
}

/// All answers, by item. Nothing is answered twice.
async fn answers(client: &mut Protocol, request: BatchRequest) -> Result<BTreeMap<u32, Answer>, Status> {
    let mut stream = client.batch(request).await?.into_inner();
    let mut answers = BTreeMap::new();
    while let Some(BatchAnswer { item, answer }) = stream.message().await? {
        assert!(answers.insert(item, answer.unwrap()).is_none(), "{item}");
    }
    Ok(answers)
}

/// Sends a batch to nodes 1 and 2, and gives what node 1 says.
async fn at_two(group: &TestGroup, request: BatchRequest) -> BTreeMap<u32, Answer> {
    let mut second = Protocol::new(group.channel(2).await);
    let copy = request.clone();
    let other = tokio::spawn(async move { answers(&mut second, copy).await });
    let first = answers(&mut Protocol::new(group.channel(1).await), request).await.unwrap();
    other.await.unwrap().unwrap();
    first
}

fn refused(answer: &Answer, code: Code, words: &str) {
    let Answer::Refused(refused) = answer else { panic!("{answer:?}") };
    assert_eq!(Code::from_i32(refused.code), code, "{refused:?}");
    assert!(refused.message.contains(words), "{refused:?}");
}

/// Of every kind, with some that must fail: a false header, a key that there is none of, nothing, both a message and a digest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_answered_by_itself() {
    let group = TestGroup::new().await;
    let mut tampered = header(&group, 9).to_vec();
    *tampered.last_mut().unwrap() ^= 1;
    let both = v1::SignRequest { message: "m".into(), digest: vec![1; 32].into(), ..Default::default() };
    let items = [
        sign("a message"),
        coin("monday"),
        decapsulate(header(&group, 1)),
        decapsulate(tampered.into()),
        Item::Sign(v1::SignRequest { key: "absent".to_owned(), message: "m".into(), ..Default::default() }),
        decapsulate("no header".into()),
        Item::Sign(v1::SignRequest { key: SIGNER.to_owned(), ..both }),
        Item::FlipCoin(v1::FlipCoinRequest { key: COIN.to_owned(), wait: 9, ..Default::default() }),
        sign("a message"),
    ];
    let mut request = batch(items);
    request.items.push(BatchItem { request: None });
    let told = at_two(&group, request).await;
    assert_eq!(told.keys().copied().collect::<Vec<u32>>(), (0..10).collect::<Vec<u32>>());
    for place in [0, 8] {
        let Answer::Sign(signed) = &told[&place] else { panic!("{:?}", told[&place]) };
        let outcome = signed.outcome.as_ref().unwrap();
        group.public(SIGNER).verify(b"a message", &outcome.result, &[]).unwrap();
    }
    let Answer::FlipCoin(drawn) = &told[&1] else { panic!("{:?}", told[&1]) };
    let outcome = drawn.outcome.as_ref().unwrap();
    group.public(COIN).verify(b"monday", &outcome.result, &outcome.proof).unwrap();
    let Answer::Decapsulate(unwrapped) = &told[&2] else { panic!("{:?}", told[&2]) };
    assert_eq!(unwrapped.outcome.as_ref().unwrap().result.len(), 32);
    refused(&told[&3], Code::InvalidArgument, "");
    refused(&told[&4], Code::NotFound, "absent");
    refused(&told[&5], Code::InvalidArgument, "");
    refused(&told[&6], Code::InvalidArgument, "not both");
    refused(&told[&7], Code::InvalidArgument, "wait is");
    refused(&told[&9], Code::InvalidArgument, "no request");

    // Who does not wait gets the ids, and the results later.
    let started = v1::SignRequest {
        key: SIGNER.to_owned(),
        message: "later".into(),
        wait: Wait::Started.into(),
        ..Default::default()
    };
    let told = at_two(&group, batch([Item::Sign(started)])).await;
    let Answer::Sign(started) = &told[&0] else { panic!("{told:?}") };
    assert!(started.outcome.is_none());
    let watch = v1::WatchInstanceRequest { instance_id: started.instance_id.clone() };
    let mut changes = Protocol::new(group.channel(1).await).watch_instance(watch).await.unwrap().into_inner();
    let mut last = None;
    while let Some(status) = changes.message().await.unwrap() {
        last = status.outcome;
    }
    group.public(SIGNER).verify(b"later", &last.unwrap().result, &[]).unwrap();
    group.shutdown().await;
}

/// Each request of a batch is decided by itself and has an entry of its own; those of one call take one commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_decides_about_each_and_records_each() {
    let group = TestGroup::new().await;
    let coins_only = group.group.clients()[0].certificate;
    group
        .set_policies(&format!(
            "format = 1\n[[client]]\nname = \"tester\"\ncertificates = [\"{coins_only}\"]\n[[rule]]\nname = \"coins\"\n\
             effect = \"allow\"\nclients = [\"tester\"]\nkeys = [\"*\"]\noperations = [\"flip-coin\", \"audit.read\", \"status\"]\n"
        ))
        .await;
    let mut client = Protocol::new(group.channel(1).await);
    let end = |status: v1::GetStatusResponse| status.audit.unwrap().next;
    let before = end(client.get_status(v1::GetStatusRequest {}).await.unwrap().into_inner());
    let told = at_two(&group, batch([coin("one"), sign("refused"), coin("two"), coin("three")])).await;
    for place in [0, 2, 3] {
        assert!(matches!(&told[&place], Answer::FlipCoin(drawn) if drawn.outcome.is_some()), "{:?}", told[&place]);
    }
    refused(&told[&1], Code::PermissionDenied, "client tester may not sign with key release");
    let Answer::Refused(denied) = &told[&1] else { panic!() };
    assert_eq!(denied.metadata.get("theta-reason").map(String::as_str), Some("no-rule"));
    let after = end(client.get_status(v1::GetStatusRequest {}).await.unwrap().into_inner());
    // Four decisions and that about the first question for the status.
    assert!(after - before >= 4, "{before} {after}");
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_has_bounds() {
    let prepared = Prepared::new(2, 4);
    let few = |_, config: &mut theta_service::NodeConfig| {
        config.limits.max_client_requests = NonZeroUsize::new(20).unwrap();
        config.limits.max_message_bytes = NonZeroUsize::new(1 << 20).unwrap();
    };
    let group = prepared.start(few, |_, node| node).await;
    let mut client = Protocol::new(group.channel(1).await);
    let mut ask = async |request| answers(&mut client, request).await.unwrap_err();
    let status = ask(batch([])).await;
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let status = ask(batch((0..257).map(|number| sign(format!("{number}"))))).await;
    assert!(status.code() == Code::InvalidArgument && status.message().contains("256"), "{status}");
    // As many single requests at one time would be refused, too.
    let status = ask(batch((0..21).map(|number| sign(format!("{number}"))))).await;
    assert!(status.code() == Code::ResourceExhausted && status.message().contains("of this caller"), "{status}");
    let status = ask(batch((0..3).map(|_| sign(vec![7; 400_000])))).await;
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    let told = at_two(&group, batch((0..20).map(|number| sign(format!("{number}"))))).await;
    assert!(told.len() == 20 && told.values().all(|answer| matches!(answer, Answer::Sign(_))));
    // What a batch held is given back.
    let told = at_two(&group, batch((20..40).map(|number| sign(format!("{number}"))))).await;
    assert!(told.len() == 20 && told.values().all(|answer| matches!(answer, Answer::Sign(_))));
    group.shutdown().await;
}

/// The requests of a batch count among their client's instances, each as one: those beyond its quota are refused, and no others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_counts_in_its_clients_quota() {
    let prepared = Prepared::new(2, 4);
    let policy = prepared.open_policy().replace("[[rule]]", "limits = { instances = 5 }\n[[rule]]");
    prepared.write_policy(&policy);
    let group = prepared.start(|_, _| {}, |_, node| node).await;
    // Only node 1 is asked, so no instance ends.
    let started = |number: u32| {
        let message = format!("{number}").into();
        Item::Sign(v1::SignRequest {
            key: SIGNER.to_owned(),
            message,
            wait: Wait::Started.into(),
            ..Default::default()
        })
    };
    let mut client = Protocol::new(group.channel(1).await);
    let told = answers(&mut client, batch((0..12).map(started))).await.unwrap();
    let begun = told.values().filter(|answer| matches!(answer, Answer::Sign(_))).count();
    assert_eq!((told.len(), begun), (12, 5));
    for answer in told.values().filter(|answer| !matches!(answer, Answer::Sign(_))) {
        refused(answer, Code::ResourceExhausted, "has 5 running instances");
    }
    group.shutdown().await;
}
