//! Requests to one node. The node's answer is not checked; the reason of a refusal is kept.

use std::time::Duration;

use bytes::Bytes;
use theta_client::Client;
use theta_network::group::GroupNode;
use theta_wire::v1::{self, Wait, statement};
use tonic::{Code, Request, Status};

/// A message for one node to sign.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) key: &'static str,
    pub(crate) message: Bytes,
    /// The slot of the message, for a key with a signing rule.
    pub(crate) slot: Option<u64>,
    pub(crate) patience: Duration,
}

impl Asked {
    pub(crate) fn new(key: &'static str, message: impl Into<Bytes>) -> Self {
        Self { key, message: message.into(), slot: None, patience: Duration::from_secs(10) }
    }

    pub(crate) fn for_slot(self, slot: u64) -> Self {
        Self { slot: Some(slot), ..self }
    }

    /// The signature, as the node returns it.
    pub(crate) async fn sign(&self, client: &Client, node: &GroupNode) -> Result<Bytes, Status> {
        Ok(self.outcome(client, node).await?.result)
    }

    /// The signature, with the nodes whose shares are in it, as the node returns them.
    pub(crate) async fn outcome(&self, client: &Client, node: &GroupNode) -> Result<v1::Outcome, Status> {
        let mut protocol = client.protocol(node.id).map_err(|error| Status::internal(error.to_string()))?;
        let answer = protocol.sign(self.request(Wait::Done)).await?.into_inner();
        Ok(answer.outcome.unwrap_or_default())
    }

    /// Starts the instance and returns its id at once.
    pub(crate) async fn submit(&self, client: &Client, node: &GroupNode) -> Result<Bytes, Status> {
        let mut protocol = client.protocol(node.id).map_err(|error| Status::internal(error.to_string()))?;
        Ok(protocol.sign(self.request(Wait::Started)).await?.into_inner().instance_id)
    }

    /// The bare share of the node.
    pub(crate) async fn share(&self, client: &Client, node: &GroupNode) -> Result<Bytes, Status> {
        let mut scheme = client.scheme(node.id).map_err(|error| Status::internal(error.to_string()))?;
        let message = statement::Statement::Message(self.message.clone());
        let statement = Some(v1::Statement { statement: Some(message) });
        let share =
            v1::CreateShareRequest { key: self.key.to_owned(), statement, slot: self.slot, ..Default::default() };
        let mut request = Request::new(share);
        request.set_timeout(self.patience);
        Ok(scheme.create_share(request).await?.into_inner().share)
    }

    fn request(&self, wait: Wait) -> Request<v1::SignRequest> {
        let mut request = Request::new(v1::SignRequest {
            key: self.key.to_owned(),
            message: self.message.clone(),
            slot: self.slot,
            wait: wait.into(),
            ..Default::default()
        });
        request.set_timeout(self.patience);
        request
    }
}

/// Why a request was refused: the reason of the policy, or else the error of the call.
pub(crate) fn reason(status: &Status) -> String {
    let word = status.metadata().get("theta-reason").and_then(|reason| reason.to_str().ok());
    word.map_or_else(|| format!("{:?}", status.code()), str::to_owned)
}

/// Whether the node refused because it has no room at present.
pub(crate) fn is_exhausted(status: &Status) -> bool {
    status.code() == Code::ResourceExhausted
}
