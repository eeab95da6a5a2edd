//! What one node decided, and how it would decide. Nothing here is checked against other nodes.

use std::future::Future;

use bytes::Bytes;
use theta_names::{NodeId, Operation};
use theta_statements::audit::{AuditRecord, Checkpoint, LogEntry};
use theta_statements::{Ask, Digest, UnixTime};
use theta_wire::v1;
use tokio::time;
use tonic::Status;

use crate::{Client, ClientError, Connection, NodeProblem, Problem};

/// The most records that are read in one call, and the longest in bytes.
const MOST_RECORDS: usize = 1 << 16;
const MOST_RECORD: usize = 256 << 10;

impl Client {
    /// The records of a node's audit log from number `from` on, at most `count`, and at most 65,536, also if `count` is 0 or more: who wants
    /// all asks again from after the last one until there is none. They are returned as the node sent them: [`theta_statements::audit::verify`] checks that they form a chain.
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`] with what the node did instead, such as not to have sent them all in the client's timeout;
    /// [`ClientError::UnknownNode`].
    pub async fn audit(&self, node: NodeId, from: u64, count: u64) -> Result<Vec<LogEntry>, ClientError> {
        const OPERATION: &str = "read the audit log";
        let connection = &self.connection(node)?;
        let request =
            self.enclose_token().request(connection, v1::ReadAuditRequest { from, count }, self.shared.options.timeout);
        let most =
            usize::try_from(count).ok().filter(|count| (1..=MOST_RECORDS).contains(count)).unwrap_or(MOST_RECORDS);
        let read = async {
            let mut governance = connection.governance().max_decoding_message_size(MOST_RECORD);
            let mut stream = governance.read_audit(request).await?.into_inner();
            let mut entries = Vec::new();
            // A node that sends on is not heard.
            while entries.len() < most {
                let Some(entry) = stream.message().await? else { break };
                // What comes after a record that is none is not read.
                let Some(entry) = log_entry(&entry) else { return Ok(None) };
                entries.push(entry);
            }
            Ok(Some(entries))
        };
        let wrong = || self.failed(OPERATION, connection, Problem::FalseAnswer("not a record".to_owned()));
        self.within(OPERATION, connection, read).await?.ok_or_else(wrong)
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
        let request = enclosed.request(connection, message, self.shared.options.timeout);
        let mut governance = connection.governance();
        let answer = async { Ok(governance.prune_audit(request).await?.into_inner()) };
        let v1::PruneAuditResponse { removed, first, previous } = self.within(OPERATION, connection, answer).await?;
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
        let request = self.enclose_token().request(connection, question, patience);
        let mut governance = connection.governance();
        let answer = async { Ok(governance.explain_policy(request).await?.into_inner()) };
        self.within("explain the policy", connection, answer).await
    }

    /// The policy that is in force at a node; nodes with the same file have the same digest.
    ///
    /// # Errors
    /// As [`Client::audit`].
    pub async fn policy(&self, node: NodeId) -> Result<v1::GetPolicyResponse, ClientError> {
        let (connection, patience) = (&self.connection(node)?, self.shared.options.timeout);
        let request = self.enclose_token().request(connection, v1::GetPolicyRequest {}, patience);
        let mut governance = connection.governance();
        let answer = async { Ok(governance.get_policy(request).await?.into_inner()) };
        self.within("read the policy", connection, answer).await
    }

    /// What one node answers in the client's timeout. The timeout of a request ends with the answer's first bytes.
    pub(crate) async fn within<T>(
        &self,
        operation: &'static str,
        connection: &Connection,
        answer: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, ClientError> {
        let patience = self.shared.options.timeout;
        match time::timeout(patience, answer).await {
            Ok(answer) => self.answered(operation, connection, answer).await,
            Err(_) => Err(self.failed(operation, connection, Problem::Silent(patience))),
        }
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
