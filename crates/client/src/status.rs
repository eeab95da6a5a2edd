//! The state of the nodes.

use std::time::Duration;

use theta_names::NodeId;
use theta_wire::v1;
use tokio::time::Instant;

use crate::{Client, NodeProblem, fan_out};

/// One node's report about itself, or why there is none.
#[derive(Debug)]
pub struct NodeStatus {
    /// The node.
    pub node: NodeId,
    /// The address of its API.
    pub address: String,
    /// The report, and how long the question took over an established connection.
    pub status: Result<(v1::GetStatusResponse, Duration), NodeProblem>,
}

impl Client {
    /// Asks every node for its state. There is one entry a node, in ascending order, also for nodes that do not answer.
    pub async fn status(&self) -> Vec<NodeStatus> {
        let patience = self.shared.options.timeout;
        let asked = Instant::now();
        let enclosed = self.enclose_token();
        let mut replies = fan_out::ask_all(&self.shared.connections, patience, |connection| {
            let request = enclosed.request(v1::GetStatusRequest {}, patience);
            async move {
                let status = connection.protocol().get_status(request).await?.into_inner();
                Ok((status, connection.sent(asked).elapsed()))
            }
        });
        let mut statuses = Vec::with_capacity(self.shared.connections.len());
        while let Some((node, reply)) = replies.recv().await {
            let address = self.connection(node).map(|connection| connection.address.to_string()).unwrap_or_default();
            let status = reply.map_err(|problem| NodeProblem { node, address: address.clone(), problem });
            statuses.push(NodeStatus { node, address, status });
        }
        statuses.sort_by_key(|status| status.node);
        statuses
    }
}
