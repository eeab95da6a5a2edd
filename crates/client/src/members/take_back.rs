//! Taking back a change of the members that the group has not decided.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use theta_ledger::{Action, LedgerState, MemberChange};
use theta_names::{NodeId, Operation};
use theta_statements::TakeBackRequest;
use theta_wire::v1;
use tokio::time::{self, Instant};
use tonic::Code;

use super::AGAIN;
use crate::{
    Client, ClientError, Problem,
    connection::MOST_ANSWER,
    credentials::random,
    error::text::one_line,
    fan_out::{self, Problems},
    keys::ceremonies::enough,
};

/// What became of a change that was to be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// So many members vote against it that the others cannot decide it, though as many of them lie as may.
    Done {
        /// These.
        nodes: Vec<NodeId>,
    },
    /// It was decided before, by the entry of this height.
    TooLate {
        /// The entry.
        height: u64,
    },
}

impl Client {
    /// The request that a change of the members come to nothing. Approvals cover the nonce; without one it is drawn here.
    ///
    /// # Errors
    /// [`ClientError::Unsigned`]: there is no randomness.
    pub fn take_back_request(change: &MemberChange, nonce: Option<[u8; 32]>) -> Result<TakeBackRequest, ClientError> {
        Ok(TakeBackRequest { nonce: nonce.map_or_else(random, Ok)?, change: change.encode() })
    }

    /// Takes back a change of the members that the group has not decided: asks all nodes to vote against it, whatever they have agreed to
    /// before, for as long as the client's timeout. Nodes that could not be asked may still want it; of those that were asked so many vote
    /// against it that nothing comes of that.
    ///
    /// # Errors
    /// [`ClientError::Refused`] or [`ClientError::Denied`] if the nodes refuse; [`ClientError::NoAnswer`] if too few could be asked, each
    /// of which votes against it all the same.
    pub async fn take_back(&self, request: &TakeBackRequest) -> Result<TakenBack, ClientError> {
        const OPERATION: &str = "take back the change of the members";
        let change = MemberChange::decode(&request.change)
            .map_err(|error| ClientError::Unsigned(format!("not a change of members: {error}")))?;
        let action = Action::Members(change).digest();
        let statement = request.encode();
        let enclosed = Arc::new(self.enclose(&self.ask_for(Operation::GroupChange, None, &statement))?);
        let message = v1::TakeBackChangeRequest {
            change: request.change.clone().into(),
            nonce: Bytes::copy_from_slice(&request.nonce),
            signed_request: enclosed.signed_request.clone(),
            approvals: enclosed.approvals.clone(),
        };
        let patience = self.shared.options.timeout;
        let deadline = Instant::now() + patience;
        loop {
            if let Err(error) = self.renew().await {
                tracing::debug!(%error, "the ledger was not read");
            }
            if let Some(height) = self.ledger(|state| state.changed_at(&action)).flatten() {
                return Ok(TakenBack::TooLate { height });
            }
            let connections = self.connections();
            let left = deadline.saturating_duration_since(Instant::now()).max(AGAIN);
            let mut replies = fan_out::ask_all(&connections, left, |connection| {
                let request = enclosed.request(&connection, message.clone(), patience);
                async move {
                    let mut governance = connection.governance().max_decoding_message_size(MOST_ANSWER);
                    Ok(governance.take_back_change(request).await?.into_inner())
                }
            });
            let (mut against, mut problems) = (BTreeSet::new(), Problems::new(&connections));
            while let Some((node, reply)) = replies.recv().await {
                match reply {
                    Ok(status) if status.state == "taken back" => {
                        against.insert(node);
                    }
                    Ok(status) => problems.add(node, not_yet(&status)),
                    Err(problem) => problems.add(node, problem),
                }
            }
            // Decided by those who had voted before.
            let needed = self.ledger(enough).unwrap_or(usize::MAX);
            if against.len() >= needed {
                return Ok(TakenBack::Done { nodes: against.into_iter().collect() });
            }
            let quorum = self.ledger(LedgerState::quorum).unwrap_or(self.quorum());
            if let Some(error) = problems.hopeless(OPERATION, quorum).filter(|_| against.is_empty()) {
                return Err(error);
            }
            if Instant::now() + AGAIN >= deadline {
                return Err(ClientError::NoAnswer { operation: OPERATION, nodes: problems.all() });
            }
            time::sleep(AGAIN).await;
        }
    }
}

/// What a node says that does not vote against the change yet.
fn not_yet(status: &v1::MembersStatus) -> Problem {
    let (code, message) = match status.state.as_str() {
        "refused" => (Code::FailedPrecondition, one_line(&status.text)),
        "decided" => (Code::Unavailable, "it says that the change is decided".to_owned()),
        _ => (Code::Unavailable, "it has voted for the change in the decision that runs".to_owned()),
    };
    Problem::Refused { code, message }
}
