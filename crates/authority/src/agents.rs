//! Asking agents: programs beside the node that consent to a request by its content ([`theta_policy::Agent`]).

use core::{fmt, future::Future, pin::Pin};

use bytes::Bytes;
use theta_names::{Label, NodeId, Operation};
use theta_policy::{Agent, Heard};
use theta_statements::{Name, UnixTime};

use crate::{Asked, Gate, Presented};

/// What an agent is asked.
#[derive(Clone)]
pub struct Question {
    /// The name of the group.
    pub group: String,
    /// The number of the node.
    pub node: NodeId,
    /// The client that asks.
    pub client: Name,
    /// On whose account the agent is asked: the client's, or that of whoever brings a copy of its signed request; nobody's if that is a stranger.
    pub account: Option<Name>,
    /// The key's name, without a version.
    pub key: Option<String>,
    /// The operation.
    pub operation: Operation,
    /// The label of a ciphertext, empty if there is none.
    pub label: Label<Bytes>,
    /// The whole subject of the operation: the message, its digest (`sign-digest`), the ciphertext's header, the coin's name.
    pub statement: Bytes,
    /// The slot, where a signing rule counts slots.
    pub slot: Option<u64>,
    /// The time of the request.
    pub time: UnixTime,
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Question");
        shown.field("client", &self.client).field("key", &self.key).field("operation", &self.operation);
        shown.field("statement_bytes", &self.statement.len()).finish_non_exhaustive()
    }
}

/// What will have been heard of an agent.
pub type Hearing<'a> = Pin<Box<dyn Future<Output = Heard> + Send + 'a>>;

/// Reaches agents. Whoever has sockets implements it.
pub trait Agents: fmt::Debug + Send + Sync {
    /// Asks an agent, for at most as long as it may take. Whatever goes wrong is [`Heard::silence`].
    fn ask<'a>(&'a self, agent: &'a Agent, question: Question) -> Hearing<'a>;
}

/// An agent that has to be asked before a request is decided.
pub(crate) struct Due {
    pub(crate) agent: Agent,
    pub(crate) question: Question,
    /// Whether the request will count as one of the client's submissions if it is allowed.
    pub(crate) is_submission: bool,
}

impl<S: theta_policy::SlotState> Gate<S> {
    /// The agent that has to be asked about this request, if a rule with one would decide, and its rate and approvals would let it pass. Verifies signatures of
    /// the request.
    pub(crate) fn agent_due(&self, presented: &Presented, asked: &Asked, time: UnixTime) -> Option<Due> {
        let policy = self.policy().current();
        if !policy.has_agents() {
            return None;
        }
        let enclosed = presented.enclosed().ok()?;
        let ask = asked.ask(self.group(), &enclosed.approvals);
        let asking = presented.asks(&policy, enclosed.signed.as_ref(), ask, time).ok()?;
        let agent = policy.agent_for(&asking, time, self.policy().state())?.clone();
        let is_copy = self.policy().state().is_copy(&asking);
        let is_submission = asked.is_submission && !is_copy && !asking.is_counted();
        let account = if is_copy { presented.client(&policy) } else { Some(asking.client().clone()) };
        let question = Question {
            group: self.group().to_owned(),
            node: self.node(),
            client: asking.client().clone(),
            account,
            key: asked.key.clone(),
            operation: asked.operation,
            label: asked.label.clone(),
            statement: asked.statement.clone(),
            slot: asked.slot,
            time,
        };
        Some(Due { agent, question, is_submission })
    }
}
