//! Changes of the group's members: sent to all nodes, and done when the group's ledger says so.

pub(crate) mod roster;
mod take_back;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

pub use take_back::TakenBack;

use bytes::Bytes;
use theta_ledger::{Action, Digest, LedgerState, MemberChange, Warrant};
use theta_names::{NodeId, Operation};
use theta_statements::MemberRequest;
use theta_wire::v1;
use tokio::time::{self, Instant};
use tonic::{Code, Status};

use crate::{
    Client, ClientError, Connection, NodeProblem, Problem,
    answer::node,
    connection::MOST_ANSWER,
    credentials::{Enclosed, random},
    error::text::one_line,
    fan_out::{self, Problems},
};

/// How long the client waits before it asks the nodes again how far it is.
const AGAIN: Duration = Duration::from_millis(300);
/// How long the others have to answer after the first one has.
const OTHERS: Duration = Duration::from_secs(1);
/// How long one signature of the request is used. It is valid for longer.
const SIGNED_FOR: Duration = Duration::from_secs(200);

/// A change of the members that the group has decided.
#[derive(Clone, Debug)]
pub struct MembersChanged {
    /// The number of the entry that has made it.
    pub height: u64,
    /// What nodes did that did not say so.
    pub problems: Vec<NodeProblem>,
    /// The time from the request until this client had the entry.
    pub latency: Duration,
}

/// What the nodes say of a change that is not decided yet. Nothing of it is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembersProgress {
    /// The nodes that have it before them.
    pub asked: Vec<NodeId>,
    /// The members that these wait for.
    pub awaited: Vec<NodeId>,
}

/// What nodes are asked, again and again.
#[derive(Clone, Debug)]
enum Question {
    Change(MemberRequest),
    Warrant(Bytes),
}

impl Question {
    /// What it is for error messages.
    const fn in_words(&self) -> &'static str {
        match self {
            Self::Change(_) => "change the members",
            Self::Warrant(_) => "bring the warrant",
        }
    }

    /// How many members have to agree to it by their policies; `None` for what proves itself.
    fn needed(&self, state: &LedgerState) -> Option<usize> {
        match self {
            Self::Change(request) if !request.claims_proof() => Some(state.quorum()),
            _ => None,
        }
    }

    fn enclose(&self, client: &Client) -> Result<Enclosed, ClientError> {
        match self {
            Self::Change(request) => {
                let statement = request.encode();
                let ask = client.ask_for(request.operation(), None, &statement);
                // What the members have to agree to they tell each other.
                if request.claims_proof() { client.enclose(&ask) } else { client.enclose_for_members(&ask) }
            }
            Self::Warrant(warrant) => client.enclose(&client.ask_for(Operation::GroupRenew, None, warrant)),
        }
    }

    async fn ask(
        self: Arc<Self>,
        connection: Connection,
        enclosed: Arc<Enclosed>,
        patience: Duration,
    ) -> Result<v1::MembersStatus, Status> {
        let (signed_request, approvals) = (enclosed.signed_request.clone(), enclosed.approvals.clone());
        let mut governance = connection.governance().max_decoding_message_size(MOST_ANSWER);
        let answer = match &*self {
            Self::Change(MemberRequest { nonce, change, proof }) => {
                let message = v1::ChangeMembersRequest {
                    change: Bytes::copy_from_slice(change),
                    nonce: Bytes::copy_from_slice(nonce),
                    signed_request,
                    approvals,
                    proof: Bytes::copy_from_slice(proof),
                };
                governance.change_members(enclosed.request(&connection, message, patience)).await?
            }
            Self::Warrant(warrant) => {
                let message = v1::BringWarrantRequest { warrant: warrant.clone(), signed_request, approvals };
                governance.bring_warrant(enclosed.request(&connection, message, patience)).await?
            }
        };
        Ok(answer.into_inner())
    }
}

impl Client {
    /// The request for a change of the group's members. The proof is the signature of the member's operator, for a replacement that has
    /// one, and otherwise empty. Approvals cover the nonce; without one it is drawn here.
    ///
    /// # Errors
    /// [`ClientError::Unsigned`]: there is no randomness.
    pub fn member_request(
        change: &MemberChange,
        proof: Vec<u8>,
        nonce: Option<[u8; 32]>,
    ) -> Result<MemberRequest, ClientError> {
        Ok(MemberRequest { nonce: nonce.map_or_else(random, Ok)?, change: change.encode(), proof })
    }

    /// Changes the group's members: asks all nodes, again and again, until the change stands in the ledger, as far as this client has
    /// checked it, or until [`crate::ClientOptions::ceremony_timeout`] is over. `on_progress` hears what the nodes say meanwhile.
    ///
    /// # Errors
    /// [`ClientError::Refused`] or [`ClientError::Denied`] if so many nodes refuse that it cannot come about; [`ClientError::NoAnswer`] if it
    /// has not come about in time. It may still come about: nodes go on with what they have agreed to for a while.
    pub async fn change_members(
        &self,
        request: MemberRequest,
        on_progress: impl FnMut(&MembersProgress) + Send,
    ) -> Result<MembersChanged, ClientError> {
        let action = MemberChange::decode(&request.change).map(|change| Action::Members(change).digest());
        let action = action.map_err(|error| ClientError::Unsigned(format!("not a change of members: {error}")))?;
        self.until_decided(Question::Change(request), vec![action], on_progress).await
    }

    /// Brings the group a warrant, and waits until all machines that it is for are members' (`spec/ledger.md`, Small groups).
    ///
    /// # Errors
    /// As [`Client::change_members`].
    pub async fn bring_warrant(
        &self,
        warrant: &Warrant,
        on_progress: impl FnMut(&MembersProgress) + Send,
    ) -> Result<MembersChanged, ClientError> {
        let replacements = warrant.stand_ins().iter().map(|stand_in| {
            let change = MemberChange::Replace { node: stand_in.node.get(), card: stand_in.card.clone() };
            Action::Members(change).digest()
        });
        let replacements = replacements.collect();
        self.until_decided(Question::Warrant(warrant.encode().into()), replacements, on_progress).await
    }

    /// Looks at what this client has checked of the group's ledger; `None` if the group keeps none.
    pub fn ledger<T>(&self, look: impl FnOnce(&LedgerState) -> T) -> Option<T> {
        self.known().book().look(look)
    }

    /// At which height the last of these changes was decided, if all were.
    fn decided(&self, actions: &[Digest]) -> Option<u64> {
        let heights = |state: &LedgerState| {
            actions.iter().map(|action| state.changed_at(action)).collect::<Option<Vec<u64>>>()?.into_iter().max()
        };
        self.ledger(heights).flatten()
    }

    async fn until_decided(
        &self,
        question: Question,
        actions: Vec<Digest>,
        mut on_progress: impl FnMut(&MembersProgress) + Send,
    ) -> Result<MembersChanged, ClientError> {
        let (started, operation, question) = (Instant::now(), question.in_words(), Arc::new(question));
        let deadline = started + self.shared.options.ceremony_timeout;
        let (mut enclosed, mut signed) = (Arc::new(question.enclose(self)?), started);
        loop {
            if signed.elapsed() > SIGNED_FOR {
                (enclosed, signed) = (Arc::new(question.enclose(self)?), Instant::now());
            }
            let (progress, problems) = self.ask_how_far(&question, &enclosed).await;
            // What the nodes say of it does not count: whoever has the votes knows.
            if let Err(error) = self.renew().await {
                tracing::debug!(%error, "the ledger was not read");
            }
            if let Some(height) = self.decided(&actions) {
                return Ok(MembersChanged { height, problems: problems.all(), latency: started.elapsed() });
            }
            let of_members = self.ledger(|state| question.needed(state)).flatten();
            let too_few = || of_members.and_then(|members| problems.hopeless(operation, members));
            if let Some(error) = problems.hopeless(operation, self.quorum()).or_else(too_few) {
                return Err(error);
            }
            if Instant::now() >= deadline {
                return Err(ClientError::NoAnswer { operation, nodes: undecided(&progress, problems) });
            }
            on_progress(&progress);
            time::sleep(AGAIN).await;
        }
    }

    /// Asks all nodes once.
    async fn ask_how_far(&self, question: &Arc<Question>, enclosed: &Arc<Enclosed>) -> (MembersProgress, Problems) {
        let patience = self.shared.options.timeout;
        let connections = self.connections();
        let mut replies = fan_out::ask_all(&connections, patience, |connection| {
            Arc::clone(question).ask(connection, Arc::clone(enclosed), patience)
        });
        let mut problems = Problems::new(&connections);
        let (mut asked, mut awaited, mut deadline) = (BTreeSet::new(), BTreeSet::new(), None);
        loop {
            let next = match deadline {
                None => replies.recv().await,
                Some(deadline) => time::timeout_at(deadline, replies.recv()).await.unwrap_or_default(),
            };
            let Some((from, reply)) = next else { break };
            deadline = deadline.or_else(|| Some(Instant::now() + OTHERS));
            match reply {
                Ok(status) if status.state == "refused" => {
                    problems.add(
                        from,
                        Problem::Refused { code: Code::FailedPrecondition, message: one_line(&status.text) },
                    );
                }
                Ok(status) => {
                    asked.insert(from);
                    awaited.extend(status.awaits.into_iter().filter_map(node));
                }
                Err(problem) => problems.add(from, problem),
            }
        }
        let (asked, awaited) = (asked.into_iter().collect(), awaited.into_iter().collect());
        (MembersProgress { asked, awaited }, problems)
    }
}

/// What each node did when the time was over.
fn undecided(progress: &MembersProgress, mut problems: Problems) -> Vec<NodeProblem> {
    let others: Vec<String> = progress.awaited.iter().map(ToString::to_string).collect();
    let words = match others.as_slice() {
        [] => "it has not been decided there yet".to_owned(),
        others => format!("it waits for node {}", others.join(", node ")),
    };
    for node in &progress.asked {
        problems.add(*node, Problem::Refused { code: Code::DeadlineExceeded, message: words.clone() });
    }
    problems.all()
}
