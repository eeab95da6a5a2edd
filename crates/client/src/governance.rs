//! What one node decided, and how it would decide. Nothing here is checked against other nodes.

use bytes::Bytes;
use theta_names::{NodeId, Operation};
use theta_statements::audit::{AuditRecord, Checkpoint, LogEntry};
use theta_statements::{Ask, Digest, UnixTime};
use theta_wire::v1;
use tonic::Status;

use crate::{Client, ClientError, Connection, NodeProblem, Problem};

impl Client {
    /// The records of a node's audit log from number `from` on, at most `count`, or all if `count` is 0. They are returned
    /// as the node sent them: [`theta_statements::audit::verify`] checks that they form a chain.
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`] with what the node did instead; [`ClientError::UnknownNode`].
    pub async fn audit(&self, node: NodeId, from: u64, count: u64) -> Result<Vec<LogEntry>, ClientError> {
        const OPERATION: &str = "read the audit log";
        let connection = &self.connection(node)?;
        let request = self.enclose_token().request(v1::ReadAuditRequest { from, count }, self.shared.options.timeout);
        let opened = connection.governance().read_audit(request).await;
        let mut stream = self.answered(OPERATION, connection, opened.map(tonic::Response::into_inner)).await?;
        let mut entries = Vec::new();
        while let Some(entry) = self.answered(OPERATION, connection, stream.message().await).await? {
            let entry = log_entry(&entry)
                .ok_or_else(|| self.failed(OPERATION, connection, Problem::FalseAnswer("not a record".to_owned())))?;
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Removes from a node's log the records that a checkpoint covers; they are to be kept elsewhere. Says how many were removed, and
    /// after what the log begins now.
    ///
    /// # Errors
    /// As [`Client::audit`]; [`ClientError::Denied`].
    pub async fn prune_audit(&self, node: NodeId, through: Checkpoint) -> Result<(u64, Checkpoint), ClientError> {
        const OPERATION: &str = "prune the audit log";
        let connection = &self.connection(node)?;
        let statement = through.to_string();
        let enclosed = self.enclose(&self.ask_for(Operation::AuditPrune, None, statement.as_bytes()))?;
        let message = v1::PruneAuditRequest {
            count: through.count,
            head: Bytes::copy_from_slice(&through.head.0),
            signed_request: enclosed.signed_request.clone(),
            approvals: enclosed.approvals.clone(),
        };
        let request = enclosed.request(message, self.shared.options.timeout);
        let answer = connection.governance().prune_audit(request).await.map(tonic::Response::into_inner);
        let v1::PruneAuditResponse { removed, first, previous } = self.answered(OPERATION, connection, answer).await?;
        let head = <[u8; 32]>::try_from(previous.as_ref()).map(Digest);
        let head = head.map_err(|_| {
            self.failed(OPERATION, connection, Problem::FalseAnswer("its log begins after no record".to_owned()))
        })?;
        Ok((removed, Checkpoint { count: first, head }))
    }

    /// How a node's policy would decide about a request, rule by rule.
    ///
    /// # Errors
    /// As [`Client::audit`].
    pub async fn explain(
        &self,
        node: NodeId,
        question: v1::ExplainPolicyRequest,
    ) -> Result<v1::ExplainPolicyResponse, ClientError> {
        let (connection, patience) = (&self.connection(node)?, self.shared.options.timeout);
        let request = self.enclose_token().request(question, patience);
        let answer = connection.governance().explain_policy(request).await;
        self.answered("explain the policy", connection, answer.map(tonic::Response::into_inner)).await
    }

    /// The policy that is in force at a node; nodes with the same file have the same digest.
    ///
    /// # Errors
    /// As [`Client::audit`].
    pub async fn policy(&self, node: NodeId) -> Result<v1::GetPolicyResponse, ClientError> {
        let (connection, patience) = (&self.connection(node)?, self.shared.options.timeout);
        let request = self.enclose_token().request(v1::GetPolicyRequest {}, patience);
        let answer = connection.governance().get_policy(request).await;
        self.answered("read the policy", connection, answer.map(tonic::Response::into_inner)).await
    }

    pub(crate) async fn answered<T>(
        &self,
        operation: &'static str,
        connection: &Connection,
        answer: Result<T, Status>,
    ) -> Result<T, ClientError> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(status) => {
                let problem = connection.problem(&status, self.shared.options.timeout).await;
                Err(self.failed(operation, connection, problem))
            }
        }
    }

    pub(crate) fn failed(&self, operation: &'static str, connection: &Connection, problem: Problem) -> ClientError {
        let problem = match problem {
            Problem::Denied { rule, reason, message } => {
                return ClientError::Denied { operation, rule, reason, message };
            }
            problem => problem,
        };
        let problem = NodeProblem { node: connection.node, address: connection.address.to_string(), problem };
        ClientError::NoAnswer { operation, nodes: vec![problem] }
    }
}

/// The request of [`Client::explain`]: how would the node decide if `client` asked this at time `at`, or now?
#[must_use]
pub fn explain_request(client: &str, ask: &Ask<'_>, at: Option<UnixTime>) -> v1::ExplainPolicyRequest {
    v1::ExplainPolicyRequest {
        client: client.to_owned(),
        operation: ask.operation.to_string(),
        key: ask.key.unwrap_or_default().to_owned(),
        label: Bytes::copy_from_slice(ask.label.bytes()),
        statement: Bytes::copy_from_slice(ask.statement),
        slot: ask.slot,
        approvals: ask.approvals.iter().map(|approval| approval.encode().into()).collect(),
        at: at.map_or(0, |at| at.0),
    }
}

fn log_entry(entry: &v1::AuditEntry) -> Option<LogEntry> {
    let digest = |bytes: &[u8]| bytes.try_into().ok().map(Digest);
    Some(LogEntry {
        sequence: entry.sequence,
        previous: digest(&entry.previous)?,
        hash: digest(&entry.hash)?,
        record: AuditRecord::decode(&entry.record).ok()?,
    })
}
