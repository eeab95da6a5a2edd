//! Keys in quorum mode at real nodes, one of which lies and one of which is stopped.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use prost::Message as _;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_names::{Delivery, NodeId};
use theta_network::{PeerStatus, SendError, Transport};
use theta_payload::{Aead, Encrypt as _};
use theta_wire::{
    peer::{Envelope, INSTANCES},
    v1::{self, Wait, threshold_protocol_client::ThresholdProtocolClient},
};
use tokio::{task::JoinSet, time};

use crate::group::{CIPHER, COIN, Prepared, SIGNER, TestGroup};

/// Long enough for a busy machine; only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The kinds of messages that carry shares and combined values.
const TOLD: std::ops::RangeInclusive<u32> = 1..=4;
const LIAR: u16 = 5;

/// Passes messages on, but for the last byte of what a protocol sends.
struct Twisted(Arc<dyn Transport>);

impl Twisted {
    fn twist(message: Bytes) -> Bytes {
        let Ok(mut envelope) = Envelope::decode(message.clone()) else { return message };
        if envelope.stream != INSTANCES || !TOLD.contains(&envelope.kind) || envelope.payload.is_empty() {
            return message;
        }
        let mut payload = envelope.payload.to_vec();
        *payload.last_mut().unwrap() ^= 1;
        envelope.payload = payload.into();
        envelope.encode_to_vec().into()
    }
}

impl Transport for Twisted {
    fn local(&self) -> NodeId {
        self.0.local()
    }

    fn peers(&self) -> Vec<NodeId> {
        self.0.peers()
    }

    fn send(&self, to: NodeId, message: Bytes) -> Result<(), SendError> {
        self.0.send(to, Self::twist(message))
    }

    fn status(&self) -> Vec<PeerStatus> {
        self.0.status()
    }
}

/// The outcomes at all nodes that run.
async fn outcomes(group: &TestGroup, request: v1::SignRequest) -> Vec<v1::Outcome> {
    let mut answers = JoinSet::new();
    for node in group.nodes.iter().flatten() {
        let (channel, request) = (group.channel(node.id().get()).await, request.clone());
        answers.spawn(async move { ThresholdProtocolClient::new(channel).sign(request).await });
    }
    let answers = time::timeout(PATIENCE, answers.join_all()).await.unwrap();
    answers.into_iter().map(|answer| answer.unwrap().into_inner().outcome.unwrap()).collect()
}

async fn signs(group: &TestGroup, message: String) -> Vec<v1::Outcome> {
    let bytes = Bytes::from(message.clone());
    let request =
        v1::SignRequest { key: SIGNER.to_owned(), message: bytes, wait: Wait::Done.into(), ..Default::default() };
    let outcomes = outcomes(group, request).await;
    for outcome in &outcomes {
        group.public(SIGNER).verify(message.as_bytes(), &outcome.result, &[]).unwrap();
    }
    outcomes
}

/// All nodes draw the same coin, prove it, and name those whose shares prove it.
async fn flips(group: &TestGroup, name: String) -> Vec<v1::Outcome> {
    let request = v1::FlipCoinRequest {
        key: COIN.to_owned(),
        name: Bytes::from(name.clone()),
        wait: Wait::Done.into(),
        ..Default::default()
    };
    let mut answers = JoinSet::new();
    for node in group.nodes.iter().flatten() {
        let (channel, request) = (group.channel(node.id().get()).await, request.clone());
        answers.spawn(async move { ThresholdProtocolClient::new(channel).flip_coin(request).await });
    }
    let answers = time::timeout(PATIENCE, answers.join_all()).await.unwrap();
    let outcomes: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().into_inner().outcome.unwrap()).collect();
    for outcome in &outcomes {
        assert_eq!(outcome.result, outcomes[0].result);
        group.public(COIN).verify(name.as_bytes(), &outcome.result, &outcome.proof).unwrap();
        assert_eq!(outcome.contributors.len(), 3, "{:?}", outcome.contributors);
    }
    outcomes
}

async fn decrypts(group: &TestGroup, seed: u64) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let ciphertext: Bytes = group.public(CIPHER).encrypt(b"text", b"label", Aead::default(), &mut rng).unwrap().into();
    let key = CIPHER.to_owned();
    let request = v1::DecryptRequest { key, ciphertext, wait: Wait::Done.into(), ..Default::default() };
    let mut answers = JoinSet::new();
    for node in group.nodes.iter().flatten() {
        let (channel, request) = (group.channel(node.id().get()).await, request.clone());
        answers.spawn(async move { ThresholdProtocolClient::new(channel).decrypt(request).await });
    }
    for answer in time::timeout(PATIENCE, answers.join_all()).await.unwrap() {
        assert_eq!(answer.unwrap().into_inner().outcome.unwrap().result, b"text"[..]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_liar_is_named_and_neither_it_nor_a_stopped_node_stops_anything() {
    let prepared = Prepared::delivered(3, 7, Delivery::Quorum);
    let lies = |id, node: theta_service::NodeBuilder| {
        if id == LIAR { node.transport(|honest, inbound| (Arc::new(Twisted(honest)), inbound)) } else { node }
    };
    let mut group = prepared.start(|_, _| {}, lies).await;
    let infos = ThresholdProtocolClient::new(group.channel(1).await).list_keys(v1::ListKeysRequest {}).await.unwrap();
    let delivery = |name: &str| {
        let infos = &infos.get_ref().keys;
        infos.iter().find(|info| info.name == name).unwrap().delivery.clone()
    };
    assert_eq!([delivery(SIGNER), delivery(CIPHER), delivery(COIN)], ["quorum"; 3]);
    let (mut of_signatures, mut of_coins) = (Vec::new(), Vec::new());
    for number in 0..12 {
        of_signatures.extend(signs(&group, format!("message {number}")).await);
        of_coins.extend(flips(&group, format!("coin {number}")).await);
        decrypts(&group, number).await;
    }
    for outcomes in [of_signatures, of_coins] {
        let culprits: Vec<_> = outcomes.into_iter().flat_map(|outcome| outcome.culprits).collect();
        let told: Vec<&str> = culprits.iter().map(|culprit| culprit.misbehaviour.as_str()).collect();
        assert!(culprits.iter().all(|culprit| culprit.node == u32::from(LIAR)), "{culprits:?}");
        assert!(told.contains(&"combined value fails verification"), "{told:?}");
        assert!(told.iter().any(|told| told.contains("share")), "{told:?}");
    }

    group.kill(2);
    for number in 0..6 {
        assert_eq!(signs(&group, format!("without node 2: {number}")).await.len(), 6);
        assert_eq!(flips(&group, format!("without node 2: {number}")).await.len(), 6);
        decrypts(&group, 100 + number).await;
    }
    group.shutdown().await;
}
