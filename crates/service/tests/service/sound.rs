//! Checks that a group works, and waiting for conditions.

use std::time::Duration;

use bytes::Bytes;
use theta_wire::v1::{self, Wait, threshold_protocol_client::ThresholdProtocolClient};
use tokio::{task::JoinSet, time};

use crate::group::{SIGNER, TestGroup};

/// Long enough for a busy machine; only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A signature with shares of all four nodes, each asked on a new connection: the group accepts clients and works.
pub(crate) async fn works(group: &TestGroup, message: &'static str) {
    let mut answers = JoinSet::new();
    for id in 1..=4 {
        let channel = time::timeout(PATIENCE, group.channel(id)).await.unwrap();
        let mut client = ThresholdProtocolClient::new(channel);
        let (key, message) = (SIGNER.to_owned(), Bytes::from(message));
        let request = v1::SignRequest { key, message, wait: Wait::Done.into(), ..Default::default() };
        answers.spawn(async move { time::timeout(PATIENCE, client.sign(request)).await.unwrap() });
    }
    while let Some(answer) = answers.join_next().await {
        let outcome = answer.unwrap().unwrap().into_inner().outcome.unwrap();
        group.public(SIGNER).verify(message.as_bytes(), &outcome.result, &[]).unwrap();
    }
}

/// Polls until the condition holds; fails only if that takes too long.
pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = time::Instant::now() + PATIENCE;
    while !condition().await {
        assert!(time::Instant::now() < deadline, "never: {what}");
        time::sleep(Duration::from_millis(20)).await;
    }
}
