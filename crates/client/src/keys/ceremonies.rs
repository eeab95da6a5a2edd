//! Ceremonies: sent to all nodes, and believed when max(group k, key k) of them report the same.

use std::{collections::BTreeMap, fs, future::Future, sync::Arc, time::Duration};

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
use tonic::Code;

use crate::{
    Client, ClientError, Connection, NodeProblem, Problem,
    answer::node,
    credentials::{Enclosed, random},
    fan_out::{self, Problems},
};

/// How long the client waits before it asks a node again that was unreachable or did not know the ceremony yet.
const AGAIN: Duration = Duration::from_millis(300);
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
    /// The nodes that lied, with evidence that anybody can check.
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

/// A node that provably lied in a ceremony. This client does not check the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The culprit.
    pub node: NodeId,
    /// What it did.
    pub misbehaviour: String,
    /// The proof.
    pub evidence: Bytes,
    /// The nodes that report it.
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

/// What the follower of one node reports.
enum News {
    Status(Box<v1::CeremonyStatus>),
    /// The node will report nothing more.
    Ended(Problem),
    /// The node failed, and may come back.
    Trouble(Problem),
}

/// The values on which nodes must agree: id, version, epoch, state, key id.
type Verdict = (Bytes, Version, Epoch, i32, Bytes);

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
        // The nodes have been asked already; their reports wait in the channel meanwhile.
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
        let outcome = reports.outcome(in_words(&request.change), first.elapsed())?;
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
            let request = enclosed.request(message.clone(), patience);
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
        let (sender, receiver) = mpsc::channel(64);
        for connection in connections {
            let follower = Follower {
                connection: connection.clone(),
                request: request.clone(),
                enclosed: Arc::clone(&enclosed),
                patience: self.shared.options.timeout,
                watch_for: self.shared.options.ceremony_timeout,
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
        let connections = self.connections();
        let mut replies = fan_out::ask_all(&connections, patience, |connection| {
            let request = enclosed.request(v1::ListCeremoniesRequest {}, patience);
            async move { Ok(connection.keys().list_ceremonies(request).await?.into_inner().ceremonies) }
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

/// Asks one node and follows it to the end.
struct Follower {
    connection: Connection,
    request: v1::HoldCeremonyRequest,
    enclosed: Arc<Enclosed>,
    patience: Duration,
    watch_for: Duration,
    news: mpsc::Sender<(NodeId, News)>,
}

impl Follower {
    async fn follow(self) {
        loop {
            let closed = self.news.closed();
            let turn = tokio::select! {
                turn = self.turn() => turn,
                () = closed => return,
            };
            match turn {
                // The ceremony is over at this node.
                Ok(()) => return,
                Err(problem) if is_final(&problem) => return self.tell(News::Ended(problem)).await,
                Err(problem) => self.tell(News::Trouble(problem)).await,
            }
            time::sleep(AGAIN).await;
        }
    }

    /// Asks for the ceremony, then watches it. A node that has the ceremony already reports its state.
    async fn turn(&self) -> Result<(), Problem> {
        let held = self.connection.clone();
        let request = self.enclosed.request(self.request.clone(), self.patience);
        let ask = async { held.keys().hold_ceremony(request).await };
        let status = self.within(ask).await?.into_inner();
        let (id, over) = (status.id.clone(), is_over(&status));
        self.tell(News::Status(Box::new(status))).await;
        if over {
            return Ok(());
        }
        let request = self.enclosed.request(v1::WatchCeremonyRequest { id }, self.watch_for);
        let watch = async { self.connection.keys().watch_ceremony(request).await };
        let mut reports = self.within(watch).await?.into_inner();
        loop {
            match reports.message().await {
                Ok(Some(status)) => {
                    let over = is_over(&status);
                    self.tell(News::Status(Box::new(status))).await;
                    if over {
                        return Ok(());
                    }
                }
                Ok(None) => return Err(Problem::Unreachable("it stopped telling how the ceremony stands".to_owned())),
                Err(status) => return Err(self.connection.problem(&status, self.watch_for).await),
            }
        }
    }

    async fn within<T>(&self, call: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, Problem> {
        match time::timeout(self.patience, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) => Err(self.connection.problem(&status, self.patience).await),
            Err(_) => Err(Problem::Silent(self.patience)),
        }
    }

    async fn tell(&self, news: News) {
        // Sending fails only when the receiver is gone; nobody needs the report then.
        let _ = self.news.send((self.connection.node, news)).await;
    }
}

/// Whether asking the same node again is pointless.
fn is_final(problem: &Problem) -> bool {
    match problem {
        Problem::Denied { reason, .. } => reason != "too-often" && reason != "rates-full",
        Problem::FalseAnswer(_) | Problem::TurnedAway { .. } => true,
        Problem::Refused { code, .. } => {
            !matches!(code, Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded)
        }
        Problem::Unreachable(_)
        | Problem::Silent(_)
        | Problem::NotReady(_)
        | Problem::OtherVersion(_)
        | Problem::KeyWithheld(_)
        | Problem::Unconfirmed(_) => false,
    }
}

fn is_over(status: &v1::CeremonyStatus) -> bool {
    !matches!(status.state(), v1::CeremonyState::Running | v1::CeremonyState::Unspecified)
}

/// The latest report of every node.
struct Reports<'a> {
    connections: &'a [Connection],
    quorum: usize,
    latest: BTreeMap<NodeId, v1::CeremonyStatus>,
    problems: Problems,
    /// The nodes that do not take part.
    lost: Vec<NodeId>,
}

impl<'a> Reports<'a> {
    fn new(connections: &'a [Connection], quorum: usize) -> Self {
        let problems = Problems::new(connections);
        Self { connections, quorum, latest: BTreeMap::new(), problems, lost: Vec::new() }
    }

    fn add(&mut self, CeremonyProgress { node, status }: CeremonyProgress) {
        self.problems.forget(node);
        self.latest.insert(node, status);
    }

    /// The end that k nodes report, with its version and epoch, and these nodes.
    fn agreed(&self) -> Option<(&v1::CeremonyStatus, (Version, Epoch), Vec<NodeId>)> {
        let mut votes: BTreeMap<Verdict, Vec<NodeId>> = BTreeMap::new();
        for (node, status) in self.latest.iter().filter(|(_, status)| is_over(status)) {
            let v1::CeremonyStatus { id, version, epoch, state, key_id, .. } = status;
            // No honest node reports a version or an epoch that cannot exist, so such a report does not count.
            let (Some(version), Some(epoch)) = (Version::new(*version), Epoch::from_wide(*epoch)) else { continue };
            votes.entry((id.clone(), version, epoch, *state, key_id.clone())).or_default().push(*node);
        }
        let ((_, version, epoch, ..), nodes) = votes.into_iter().find(|(_, nodes)| nodes.len() >= self.quorum)?;
        let status = nodes.first().and_then(|node| self.latest.get(node))?;
        Some((status, (version, epoch), nodes))
    }

    fn all_have_ended(&self) -> bool {
        let over = self.latest.values().filter(|status| is_over(status)).count();
        over + self.lost.iter().filter(|node| !self.latest.contains_key(node)).count() >= self.connections.len()
    }

    /// Whether too few nodes are left to agree.
    fn is_hopeless(&self) -> bool {
        self.connections.len().saturating_sub(self.lost.len()) < self.quorum
    }

    fn outcome(self, operation: &'static str, latency: Duration) -> Result<CeremonyOutcome, ClientError> {
        let Some((status, (version, epoch), agreed)) = self.agreed() else {
            return Err(self.without_end(operation));
        };
        let end = match status.state() {
            v1::CeremonyState::Activated => CeremonyEnd::Activated {
                key_id: status.key_id.as_ref().try_into().unwrap_or_default(),
                certificate: status.certificate.clone(),
            },
            v1::CeremonyState::Recovered => CeremonyEnd::Recovered,
            v1::CeremonyState::Aborted => CeremonyEnd::Aborted,
            v1::CeremonyState::Cancelled => CeremonyEnd::Cancelled,
            v1::CeremonyState::Failed | v1::CeremonyState::Running | v1::CeremonyState::Unspecified => {
                CeremonyEnd::Failed(status.failure.clone())
            }
        };
        let mut silent: Vec<NodeId> =
            self.latest.values().flat_map(|status| &status.silent).copied().filter_map(node).collect();
        silent.sort_unstable();
        silent.dedup();
        Ok(CeremonyOutcome {
            id: status.id.as_ref().try_into().unwrap_or_default(),
            key: status.key.clone(),
            version,
            epoch,
            aim: status.aim.clone(),
            end,
            evidence: self.evidence(),
            silent,
            agreed,
            problems: self.problems.all(),
            latency,
        })
    }

    fn without_end(&self, operation: &'static str) -> ClientError {
        if let Some(error) = self.problems.hopeless(operation, self.quorum) {
            return error;
        }
        let mut problems = Problems::new(self.connections);
        for (node, status) in &self.latest {
            let words = match status.state() {
                v1::CeremonyState::Failed => status.failure.clone(),
                v1::CeremonyState::Activated | v1::CeremonyState::Recovered => "it is done there".to_owned(),
                v1::CeremonyState::Aborted => "it was given up there".to_owned(),
                v1::CeremonyState::Cancelled => "it was cancelled".to_owned(),
                v1::CeremonyState::Running | v1::CeremonyState::Unspecified => {
                    format!("it goes on there, {} of {} steps are done", status.done, status.of)
                }
            };
            problems.add(*node, Problem::Refused { code: Code::Aborted, message: words });
        }
        for NodeProblem { node, problem, .. } in self.problems.all() {
            problems.add(node, problem);
        }
        ClientError::NoAnswer { operation, nodes: problems.all() }
    }

    fn evidence(&self) -> Vec<Evidence> {
        let mut all: Vec<Evidence> = Vec::new();
        for (reporter, status) in &self.latest {
            for found in &status.evidence {
                let Some(culprit) = node(found.node) else { continue };
                let same = |known: &&mut Evidence| known.node == culprit && known.misbehaviour == found.misbehaviour;
                match all.iter_mut().find(same) {
                    Some(known) => known.reported_by.push(*reporter),
                    None => all.push(Evidence {
                        node: culprit,
                        misbehaviour: found.misbehaviour.clone(),
                        evidence: found.evidence.clone(),
                        reported_by: vec![*reporter],
                    }),
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes report the same version and epoch of a ceremony.
    fn agreed(version: u32, epoch: u64) -> Option<(Version, Epoch)> {
        let mut reports = Reports::new(&[], 2);
        for number in 1..=2 {
            let state = v1::CeremonyState::Activated.into();
            let status = v1::CeremonyStatus { version, epoch, state, ..Default::default() };
            reports.add(CeremonyProgress { node: NodeId::try_from(number).unwrap(), status });
        }
        reports.agreed().map(|(_, sharing, _)| sharing)
    }

    #[test]
    fn a_sharing_that_there_cannot_be_is_nobodys_word() {
        assert_eq!(agreed(1, 0), Some((Version::FIRST, Epoch::FIRST)));
        assert_eq!(agreed(2, u64::from(u32::MAX)), Some((Version::new(2).unwrap(), Epoch::new(u32::MAX))));
        assert_eq!((agreed(0, 0), agreed(1, 1 << 32)), (None, None));
    }
}
