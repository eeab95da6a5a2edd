//! How the nodes are.

use std::time::Duration;

use theta_network::PeerId;
use theta_wire::v1;
use tokio::time::Instant;
use tonic::Request;

use crate::{Client, NodeProblem, fan_out};

/// One node's own account, or why there is none.
#[derive(Debug)]
pub struct NodeStatus {
    /// Which node.
    pub node: PeerId,
    /// Where its API is.
    pub address: String,
    /// What it says, and how long the question took.
    pub status: Result<(v1::GetStatusResponse, Duration), NodeProblem>,
}

impl Client {
    /// Asks every node how it is; one entry a node, in order. A node that does not answer is an entry, not an error.
    pub async fn status(&self) -> Vec<NodeStatus> {
        let patience = self.0.options.timeout;
        let asked = Instant::now();
        let mut replies = fan_out::ask_all(&self.0.connections, patience, |connection| async move {
            let mut request = Request::new(v1::GetStatusRequest {});
            request.set_timeout(patience);
            let status = connection.protocol().get_status(request).await?.into_inner();
            Ok((status, asked.elapsed()))
        });
        let mut statuses = Vec::with_capacity(self.0.connections.len());
        while let Some((node, reply)) = replies.recv().await {
            let address = self.connection(node).map(|connection| connection.address.to_string()).unwrap_or_default();
            let status = reply.map_err(|problem| NodeProblem { node, address: address.clone(), problem });
            statuses.push(NodeStatus { node, address, status });
        }
        statuses.sort_by_key(|status| status.node);
        statuses
    }
}
