//! Ceremonies: sent to all nodes, and believed when max(group k, key k) of them report the same.

mod follower;
mod reports;

use std::{collections::BTreeMap, fs, sync::Arc, time::Duration};

use bytes::Bytes;
use theta_keyfiles::PublicKeyText as _;
use theta_ledger::{Ended, LedgerState};
use theta_names::{Epoch, KeyRef, NodeId, Version};
use theta_schemes::keys::KeyName;
use theta_statements::{CancelRequest, CeremonyRequest, KeyChange};
use theta_wire::v1;
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};

use self::{
    follower::{Follower, MOST_FIELDS, News},
    reports::{Reports, trim},
};
use crate::{
    Client, ClientError, Connection, NodeProblem,
    connection::bounded,
    credentials::random,
    fan_out::{self, Problems},
};

/// How long the client waits before it asks a node again that was unreachable or did not know the ceremony yet.
const AGAIN: Duration = Duration::from_millis(300);
/// The method that lists ceremonies, and how many a node may list.
const LIST: &str = "/theta.v1.ThresholdKeys/ListCeremonies";
const MOST_LISTED: usize = 1024;
/// How long the other nodes have after k nodes have reported the same end.
const STRAGGLERS: Duration = Duration::from_secs(2);

/// What one node says about a ceremony, unchecked.
#[derive(Clone, Debug)]
pub struct CeremonyProgress {
    /// The node.
    pub node: NodeId,
    /// The state of the ceremony at this node.
    pub status: v1::CeremonyStatus,
}

/// A ceremony whose end k nodes report alike.
#[derive(Clone, Debug)]
pub struct CeremonyOutcome {
    /// The ceremony's id.
    pub id: [u8; 32],
    /// The key's name.
    pub key: String,
    /// The version.
    pub version: Version,
    /// The epoch that the ceremony made, or in which it recovered a share.
    pub epoch: Epoch,
    /// `create`, `rotate`, `refresh`, `reshare` or `recover`.
    pub aim: String,
    /// How it ended.
    pub end: CeremonyEnd,
    /// The nodes that report this end, at least k.
    pub agreed: Vec<NodeId>,
    /// The nodes that lied, according to others, with evidence that anybody can check: of each reporter two accusations of a member at most.
    pub evidence: Vec<Evidence>,
    /// The nodes that some node had to wait for.
    pub silent: Vec<NodeId>,
    /// What the other nodes did.
    pub problems: Vec<NodeProblem>,
    /// The time from the request to the agreement.
    pub latency: Duration,
}

/// How a ceremony ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CeremonyEnd {
    /// The key, or its new sharing, is in service.
    Activated {
        /// The key's id.
        key_id: [u8; 32],
        /// What the holders signed.
        certificate: Bytes,
    },
    /// The owner has its share again.
    Recovered,
    /// The ceremony was aborted; no node changed anything.
    Aborted,
    /// The group cancelled it, as a client asked; no node changed anything.
    Cancelled,
    /// The ceremony failed, for the reason given.
    Failed(String),
}

/// What nodes say that another one did in a ceremony. This client does not check the evidence: without a check it is their word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The culprit, a member.
    pub node: NodeId,
    /// What it did.
    pub misbehaviour: String,
    /// The proof; empty if there is none.
    pub evidence: Bytes,
    /// The nodes that report exactly this.
    pub reported_by: Vec<NodeId>,
}

/// What a ceremony does, for error messages.
const fn in_words(change: &KeyChange) -> &'static str {
    match change {
        KeyChange::Create { .. } => "make the key",
        KeyChange::Rotate { .. } => "make the key's next version",
        KeyChange::Refresh { .. } => "refresh the key's shares",
        KeyChange::Reshare { .. } => "move the key to its holders",
        KeyChange::Recover { .. } => "recover the share",
    }
}

impl Client {
    /// Holds a ceremony: asks all nodes, follows it at each of them, asks unreachable nodes again, and returns when
    /// max(group k, key k) nodes report the same end. `on_progress` is called with every report of every node.
    ///
    /// After a key was made or renewed, the client takes its public key from the nodes and writes it into its folder.
    ///
    /// The request's nonce is drawn here; [`Client::hold_request`] takes a request that others have approved.
    ///
    /// # Errors
    /// As [`Client::hold_request`].
    pub async fn hold(
        &self,
        change: KeyChange,
        on_progress: impl FnMut(&CeremonyProgress) + Send,
    ) -> Result<CeremonyOutcome, ClientError> {
        self.hold_request(CeremonyRequest { nonce: random()?, change }, on_progress).await
    }

    /// Holds the ceremony of a request whose nonce is given. Approvals cover the nonce, and the nodes hold one ceremony for
    /// it at most.
    ///
    /// # Errors
    /// [`ClientError::Refused`] or [`ClientError::Denied`] if too few nodes take part, [`ClientError::NoAnswer`] if too few
    /// report the same end in [`crate::ClientOptions::ceremony_timeout`].
    pub async fn hold_request(
        &self,
        request: CeremonyRequest,
        mut on_progress: impl FnMut(&CeremonyProgress) + Send,
    ) -> Result<CeremonyOutcome, ClientError> {
        let (started, patience) = (Instant::now(), self.shared.options.ceremony_timeout);
        let connections = self.connections();
        let mut news = self.follow_all(&connections, &request)?;
        // The nodes have been asked already; their reports wait meanwhile.
        let k = time::timeout(STRAGGLERS, self.k_of(&request.change)).await.unwrap_or(0);
        let mut reports = Reports::new(&connections, self.quorum().max(usize::from(k)));
        let mut deadline = started + patience;
        while let Ok(Some((node, event))) = time::timeout_at(deadline, news.recv()).await {
            match event {
                News::Status(status) => {
                    let progress = CeremonyProgress { node, status: *status };
                    on_progress(&progress);
                    reports.add(progress);
                    if reports.agreed().is_some() {
                        deadline = deadline.min(Instant::now() + STRAGGLERS);
                    }
                }
                News::Trouble(problem) => reports.problems.add(node, problem),
                News::Ended(problem) => {
                    reports.problems.add(node, problem);
                    reports.lost.push(node);
                    if reports.is_hopeless() {
                        break;
                    }
                }
            }
            if reports.all_have_ended() {
                break;
            }
        }
        // The ceremony began with the first node that could be asked.
        let first = connections.iter().map(|connection| connection.sent(started)).min().unwrap_or(started);
        let outcome = reports.outcome(&request.change, first.elapsed())?;
        if matches!(outcome.end, CeremonyEnd::Activated { .. }) {
            self.keep_public_key(request.change.key()).await;
        }
        Ok(outcome)
    }

    /// The ceremonies that run in the group, as its ledger has them, by their numbers.
    ///
    /// # Errors
    /// [`ClientError`] if no node gave anything that is true.
    pub async fn running_ceremonies(&self) -> Result<Vec<CeremonyRequest>, ClientError> {
        self.renew().await?;
        let running = |ledger: &LedgerState| ledger.running().values().map(|begun| begun.request.clone()).collect();
        Ok(self.known().book().look(running).unwrap_or_default())
    }

    /// The requests for ceremonies that wait at some node, and that the group has not begun. A node may say what it likes here: whoever takes such a
    /// request back can only make it come to nothing.
    pub async fn waiting_ceremonies(&self) -> Vec<CeremonyRequest> {
        let (listed, _) = self.ceremonies().await;
        let mut waiting: BTreeMap<[u8; 32], CeremonyRequest> = BTreeMap::new();
        for status in listed.iter().flat_map(|(_, statuses)| statuses) {
            let (change, nonce) = (KeyChange::decode(&status.change), <[u8; 32]>::try_from(status.nonce.as_ref()));
            if let (Ok(change), Ok(nonce)) = (change, nonce) {
                let request = CeremonyRequest { nonce, change };
                waiting.insert(request.digest(), request);
            }
        }
        waiting.into_values().collect()
    }

    /// Asks all nodes to let a ceremony come to nothing that runs or waits, and waits for the group's decision for as long as the client's timeout.
    /// Says how it ended: it may have ended otherwise before. It takes as many nodes as it took to begin it.
    ///
    /// # Errors
    /// [`ClientError`] if the nodes refuse, too few can be asked, or it is not decided in time.
    pub async fn cancel(&self, request: &CeremonyRequest) -> Result<Ended, ClientError> {
        const OPERATION: &str = "cancel the ceremony";
        let cancel = CancelRequest { request: request.clone() };
        let (change, statement) = (&request.change, cancel.encode());
        let enclosed =
            self.enclose_for_group(&self.ask_for(change.operation(), Some(change.key().as_ref()), &statement))?;
        let message = v1::CancelCeremonyRequest {
            change: change.encode().into(),
            nonce: Bytes::copy_from_slice(&request.nonce),
            signed_request: enclosed.signed_request.clone(),
            approvals: enclosed.approvals.clone(),
        };
        let patience = self.shared.options.timeout;
        let deadline = Instant::now() + patience;
        let connections = self.connections();
        let mut replies = fan_out::ask_all(&connections, patience, |connection| {
            let request = enclosed.request(&connection, message.clone(), patience);
            async move { Ok(connection.keys().cancel_ceremony(request).await?.into_inner()) }
        });
        let (mut taken, mut withdrawn, mut problems) = (0, 0, Problems::new(&connections));
        while let Some((node, reply)) = replies.recv().await {
            match reply {
                Ok(status) => {
                    taken += 1;
                    withdrawn += usize::from(status.state() == v1::CeremonyState::Cancelled);
                }
                Err(problem) => problems.add(node, problem),
            }
        }
        loop {
            let read = self.renew().await;
            let ended = |ledger: &LedgerState| ledger.request(&request.digest()).and_then(|history| history.ended);
            if let Some(ended) = self.known().book().look(ended).flatten() {
                return Ok(ended);
            }
            let unbegun =
                |ledger: &LedgerState| ledger.request(&request.digest()).is_none() && withdrawn >= enough(ledger);
            if read.is_ok() && self.known().book().look(unbegun) == Some(true) {
                return Ok(Ended::Cancelled);
            }
            if taken == 0 || read.is_err() || Instant::now() + AGAIN >= deadline {
                let hopeless = problems.hopeless(OPERATION, self.quorum());
                return Err(
                    hopeless.unwrap_or_else(|| ClientError::NoAnswer { operation: OPERATION, nodes: problems.all() })
                );
            }
            time::sleep(AGAIN).await;
        }
    }

    /// The larger of the key's k before and after the change: one more than the holders that may lie.
    async fn k_of(&self, change: &KeyChange) -> u16 {
        let key = KeyRef { name: change.key().clone(), version: change.version() };
        let afterwards = match change {
            KeyChange::Create { k, .. } => return *k,
            KeyChange::Reshare { k, .. } => *k,
            KeyChange::Rotate { .. } | KeyChange::Refresh { .. } | KeyChange::Recover { .. } => 0,
        };
        let before = match self.public_key(&key.to_string()).await {
            Ok(public) => public.threshold().k(),
            Err(ClientError::KeyDisagreement { needed, .. }) => needed,
            // A client that may not ask, or gets no answer, is left with the group's k.
            Err(_) => 0,
        };
        afterwards.max(before)
    }

    /// Follows a ceremony at every node at once. The receiver ends when all followers have.
    fn follow_all(
        &self,
        connections: &[Connection],
        asked: &CeremonyRequest,
    ) -> Result<mpsc::Receiver<(NodeId, News)>, ClientError> {
        let CeremonyRequest { nonce, change } = asked;
        let (key, statement) = (change.key(), asked.encode());
        let ask = self.ask_for(change.operation(), Some(key.as_ref()), &statement);
        let enclosed = Arc::new(self.enclose_for_group(&ask)?);
        let request = v1::HoldCeremonyRequest {
            change: change.encode().into(),
            nonce: Bytes::copy_from_slice(nonce),
            signed_request: enclosed.signed_request.clone(),
            approvals: enclosed.approvals.clone(),
        };
        // Reports may be long: nodes wait until theirs is taken.
        let (sender, receiver) = mpsc::channel(1);
        for connection in connections {
            let follower = Follower {
                connection: connection.clone(),
                request: request.clone(),
                enclosed: Arc::clone(&enclosed),
                patience: self.shared.options.timeout,
                watch_for: self.shared.options.ceremony_timeout,
                most_bytes: self.shared.options.max_message_bytes,
                news: sender.clone(),
            };
            tokio::spawn(follower.follow());
        }
        Ok(receiver)
    }

    /// Stores the public key of a key that changed, in this client and in its folder.
    async fn keep_public_key(&self, name: &KeyName) {
        let key = KeyRef { name: name.clone(), version: None };
        let text = match self.renew_public_key(&key).await {
            Ok(public) => public.to_text(name),
            Err(error) => return tracing::warn!(%name, %error, "the public key was not renewed"),
        };
        let Some(folder) = self.shared.folder.as_ref().map(|folder| folder.join("keys")) else { return };
        let file = folder.join(format!("{name}.pub"));
        // Written to another file and renamed, so that no reader sees half of it.
        let beside = folder.join(format!(".{name}.pub.new"));
        let written = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&beside, text))
            .and_then(|()| fs::rename(&beside, &file));
        if let Err(error) = written {
            tracing::warn!(file = %file.display(), %error, "the public key was not written");
        }
    }

    /// The ceremonies that the nodes hold or held lately, by node. The second value has the nodes that did not answer.
    pub async fn ceremonies(&self) -> (Vec<(NodeId, Vec<v1::CeremonyStatus>)>, Vec<NodeProblem>) {
        let (patience, enclosed) = (self.shared.options.timeout, self.enclose_token());
        let (connections, most_bytes) = (self.connections(), self.shared.options.max_message_bytes);
        let mut replies = fan_out::ask_all(&connections, patience, |connection| {
            let request = enclosed.request(&connection, v1::ListCeremoniesRequest {}, patience);
            async move {
                let entries = connection.list::<_, MOST_LISTED>(LIST, request, most_bytes).await?;
                entries.into_iter().map(|entry| Ok(trim(bounded::entry::<_, MOST_FIELDS>(entry)?))).collect()
            }
        });
        let (mut listed, mut problems) = (Vec::new(), Problems::new(&connections));
        while let Some((node, reply)) = replies.recv().await {
            match reply {
                Ok(ceremonies) => listed.push((node, ceremonies)),
                Err(problem) => problems.add(node, problem),
            }
        }
        listed.sort_by_key(|(node, _)| *node);
        (listed, problems.all())
    }
}

/// How many members have to vote against a request so that the others are no quorum, though as many of them lie as may.
pub(crate) fn enough(ledger: &LedgerState) -> usize {
    let (members, quorum) = (ledger.members().len(), ledger.quorum());
    members.saturating_sub(quorum).saturating_add(1).saturating_add(ledger.faulty()).min(members)
}
