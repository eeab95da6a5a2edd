//! The state of the nodes.

use std::time::Duration;

use theta_names::{NodeId, WallTime};
use theta_wire::v1;
use tokio::time::Instant;

use crate::{Client, Connection, NodeProblem, Problem, fan_out};

/// The longest report of a node, in bytes: it names its peers.
const MOST_STATUS: usize = 1 << 20;

/// One node's report about itself, or why there is none.
#[derive(Debug)]
pub struct NodeStatus {
    /// The node.
    pub node: NodeId,
    /// The address of its API.
    pub address: String,
    /// The report, and how long the question took over an established connection.
    pub status: Result<(v1::GetStatusResponse, Duration), NodeProblem>,
    /// By how many milliseconds its clock is ahead of this machine's, half of the question's time taken off; 0 if it does not say.
    pub clock_offset_ms: i64,
}

impl Client {
    /// Asks every node for its state. There is one entry a node, in ascending order, also for nodes that do not answer. If some cannot be
    /// reached, the client looks whether the group has other members by now.
    pub async fn status(&self) -> Vec<NodeStatus> {
        let (asked, before) = (Instant::now(), self.present());
        let statuses = self.statuses(&before.connections).await;
        let is_away = |status: &NodeStatus| {
            matches!(&status.status, Err(NodeProblem { problem: Problem::Unreachable(_) | Problem::Silent(_), .. }))
        };
        if !statuses.iter().any(is_away) {
            return statuses;
        }
        self.learn_since(asked, false).await;
        let now = self.present();
        if now.is_of(&before) { statuses } else { self.statuses(&now.connections).await }
    }

    async fn statuses(&self, connections: &[Connection]) -> Vec<NodeStatus> {
        let patience = self.shared.options.timeout;
        let asked = Instant::now();
        let enclosed = self.enclose_token();
        let mut replies = fan_out::ask_all(connections, patience, |connection| {
            let request = enclosed.request(&connection, v1::GetStatusRequest {}, patience);
            async move {
                let mut protocol = connection.protocol().max_decoding_message_size(MOST_STATUS);
                let status = protocol.get_status(request).await?.into_inner();
                let took = connection.sent(asked).elapsed();
                let offset = clock_offset(status.clock, took, WallTime::now());
                Ok((status, took, offset))
            }
        });
        let mut statuses = Vec::with_capacity(connections.len());
        while let Some((node, reply)) = replies.recv().await {
            let address = connections.iter().find(|connection| connection.node == node);
            let address = address.map(|connection| connection.address.to_string()).unwrap_or_default();
            let clock_offset_ms = reply.as_ref().map_or(0, |(_, _, offset)| *offset);
            let status = reply.map(|(status, took, _)| (status, took));
            let status = status.map_err(|problem| NodeProblem { node, address: address.clone(), problem });
            statuses.push(NodeStatus { node, address, status, clock_offset_ms });
        }
        statuses.sort_by_key(|status| status.node);
        statuses
    }
}

/// By how much a node's clock is ahead of this one, if it said this time in the middle of a question that took so long until `now`.
fn clock_offset(clock: u64, took: Duration, now: WallTime) -> i64 {
    if clock == 0 {
        return 0;
    }
    let milliseconds = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let middle = milliseconds(now.duration().saturating_sub(took / 2));
    i64::try_from(clock).unwrap_or(i64::MAX).saturating_sub(middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_of_the_middle_of_the_question() {
        let now = WallTime::since_1970(Duration::from_millis(10_000));
        let offset = |clock| clock_offset(clock, Duration::from_millis(400), now);
        assert_eq!((offset(9_800), offset(9_900), offset(9_000)), (0, 100, -800));
        assert_eq!(offset(0), 0, "it does not say");
        assert_eq!(offset(u64::MAX), i64::MAX - 9_800);
        let last = WallTime::since_1970(Duration::MAX);
        assert_eq!(clock_offset(1, Duration::ZERO, last), 1 - i64::MAX);
    }
}
