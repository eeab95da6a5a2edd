//! Sends one question to every node and takes the first answer that passes the check.

mod problems;

use std::{future::Future, sync::Arc, time::Duration};

use theta_names::NodeId;
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tonic::{Code, Status};

pub(crate) use self::problems::{Problems, most_said};
use crate::{Client, ClientError, Connection, NodeProblem, Problem, error::is_for_later, keys::renewal::Under};

/// How long a call may go on after a good answer came. It must still reach its node: each node acts only on requests that
/// it receives itself, and the nodes that have not answered yet may need its share.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How long a good answer of the other nodes has to come after one could not be reached, before the client looks for new members.
const SOON: Duration = Duration::from_millis(100);

/// How long a node is left alone that is not ready yet, or busy.
pub(crate) const AGAIN: Duration = Duration::from_millis(300);

/// What one node answered.
pub(crate) type Reply<T> = (NodeId, Result<T, Problem>);

/// The good answer, and the bad ones.
pub(crate) struct Chosen<T> {
    pub(crate) node: NodeId,
    pub(crate) value: T,
    pub(crate) latency: Duration,
    /// The nodes that gave false answers before the good one came.
    pub(crate) false_answers: Vec<NodeProblem>,
}

/// Asks all nodes at once. Each call runs in its own task, with its own deadline, and outlives this function.
pub(crate) fn ask_all<T, F>(
    connections: &[Connection],
    patience: Duration,
    call: impl Fn(Connection) -> F,
) -> mpsc::Receiver<Reply<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Status>> + Send + 'static,
{
    let (replies, receiver) = mpsc::channel(connections.len().max(1));
    for connection in connections {
        let answer = call(connection.clone());
        tokio::spawn(ask(connection.clone(), patience, answer, replies.clone(), None));
    }
    receiver
}

/// The same. If a node cannot be reached and there is no good answer soon, the client looks whether the group has other members by now, or
/// the same at other addresses, and asks these, too.
pub(crate) fn ask_all_members<T, F>(
    client: &Client,
    connections: &[Connection],
    patience: Duration,
    call: impl Fn(Connection) -> F + Send + Sync + 'static,
) -> mpsc::Receiver<Reply<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Status>> + Send + 'static,
{
    let (replies, receiver) = mpsc::channel(connections.len().saturating_mul(2).max(1));
    let (away, missed) = mpsc::channel(1);
    let call = Arc::new(call);
    for connection in connections {
        let answer = until_ready(Arc::clone(&call), connection.clone(), patience);
        tokio::spawn(ask(connection.clone(), patience, answer, replies.clone(), Some(away.clone())));
    }
    drop(away);
    tokio::spawn(ask_others(client.clone(), (connections.to_vec(), missed), patience, call, replies));
    receiver
}

/// Asks a node again as long as it says that it has not caught up with its group, or has no room for the request, and there is time. Were a busy node left
/// out, nodes that are busy with different requests of many would all wait for shares that nobody was asked for.
async fn until_ready<T, F>(
    call: Arc<impl Fn(Connection) -> F>,
    connection: Connection,
    patience: Duration,
) -> Result<T, Status>
where
    F: Future<Output = Result<T, Status>>,
{
    let began = Instant::now();
    loop {
        match call(connection.clone()).await {
            Err(status) if is_for_later(&status) && began.elapsed() + AGAIN + AGAIN < patience => {
                time::sleep(AGAIN).await;
            }
            answer => return answer,
        }
    }
}

/// Waits until a node cannot be reached, and asks those that are members by now. While it lives, answers may come.
async fn ask_others<T, F>(
    client: Client,
    (before, mut missed): (Vec<Connection>, mpsc::Receiver<()>),
    patience: Duration,
    call: Arc<impl Fn(Connection) -> F + Send + Sync + 'static>,
    replies: mpsc::Sender<Reply<T>>,
) where
    T: Send + 'static,
    F: Future<Output = Result<T, Status>> + Send + 'static,
{
    let began = Instant::now();
    let learning = async {
        missed.recv().await?;
        // With a good answer of the others nobody has to know.
        time::sleep(SOON).await;
        client.learn_since(began, false).await;
        Some(client.connections())
    };
    let now = tokio::select! {
        now = learning => now.unwrap_or_default(),
        () = replies.closed() => return,
    };
    for connection in now.into_iter().filter(|now| !before.iter().any(|before| before.is_same(now))) {
        let answer = until_ready(Arc::clone(&call), connection.clone(), patience);
        tokio::spawn(ask(connection, patience, answer, replies.clone(), None));
    }
}

/// Asks one node; says at once if it cannot be reached.
async fn ask<T, F>(
    connection: Connection,
    patience: Duration,
    answer: F,
    replies: mpsc::Sender<Reply<T>>,
    away: Option<mpsc::Sender<()>>,
) where
    F: Future<Output = Result<T, Status>>,
{
    // To learn what a failure means is a part of the node's time: else one that fails late would have twice as much.
    let deadline = Instant::now().checked_add(patience);
    let left = || deadline.map_or(patience, |deadline| deadline.saturating_duration_since(Instant::now()));
    let answer = async {
        match time::timeout(patience, answer).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(status)) => {
                let problem = time::timeout(left(), connection.problem(&status, patience)).await;
                Err(problem.unwrap_or_else(|_| Problem::from_status(&status, patience)))
            }
            Err(_) => Err(Problem::Silent(patience)),
        }
    };
    let unwanted = async {
        replies.closed().await;
        time::sleep(GRACE).await;
    };
    tokio::select! {
        answer = answer => {
            if let (Err(Problem::Unreachable(_) | Problem::Silent(_)), Some(away)) = (&answer, &away) {
                let _ = away.try_send(());
            }
            let _ = replies.try_send((connection.node, answer));
        }
        () = unwanted => {}
    }
}

/// What all nodes were asked.
pub(crate) struct Question<'a> {
    pub(crate) operation: &'static str,
    pub(crate) connections: &'a [Connection],
    /// So many nodes that at least one of them is honest.
    pub(crate) quorum: usize,
    /// So many nodes that they can answer: the key's k where that is smaller, since its holders may be fewer than the group's k.
    pub(crate) least: usize,
    /// Since when the answers' latency counts, if there was a connection then.
    pub(crate) asked: Instant,
    /// The key that answers have to fit, if they fit one that may have changed.
    pub(crate) under: Option<Under<'a>>,
}

/// Takes the first reply that `check` accepts. Gives up when all nodes have failed, or when a quorum blames the request itself. When a
/// quorum gives answers that do not fit, the key has changed: what is new is learned, and they are checked again. Nobody is called a liar
/// before.
pub(crate) async fn first_good<A, T>(
    question: Question<'_>,
    mut replies: mpsc::Receiver<Reply<A>>,
    check: impl Fn(&A) -> Result<T, Problem>,
) -> Result<Chosen<T>, ClientError> {
    let mut judged =
        Judged { problems: Problems::new(question.connections), doubtful: Vec::new(), withheld: false, question };
    let mut learned = false;
    loop {
        let reply = replies.recv().await;
        let is_last = reply.is_none();
        if let Some((node, reply)) = reply {
            match reply.map(|answer| (check(&answer), answer)) {
                Ok((Ok(value), _)) => {
                    judged.clear_up(&check).await;
                    return Ok(judged.chosen(node, value));
                }
                Ok((Err(problem), answer)) => judged.doubt(node, problem, answer),
                Err(problem) => judged.problems.add(node, problem),
            }
        }
        let enough = judged.doubtful.len() >= judged.question.quorum || is_last;
        if let Some(under) = judged.question.under.filter(|_| !learned && enough && !judged.doubtful.is_empty()) {
            learned = true;
            under.follow().await;
            if let Some((node, value)) = judged.again(&check) {
                return Ok(judged.chosen(node, value));
            }
            judged.withheld = !under.ask_holders().await;
            if let Some((node, value)) = judged.again(&check) {
                return Ok(judged.chosen(node, value));
            }
        }
        let Question { operation, quorum, least, .. } = judged.question;
        if let Some(error) = judged.problems.hopeless_below(operation, quorum, least) {
            return Err(error);
        }
        if is_last {
            return Err(ClientError::NoAnswer { operation, nodes: judged.problems.all() });
        }
    }
}

/// The replies so far.
struct Judged<'a, A> {
    question: Question<'a>,
    problems: Problems,
    /// Those that do not fit what this client knows.
    doubtful: Vec<(NodeId, A)>,
    /// Whether the nodes refuse to say what this client would have to know to check them.
    withheld: bool,
}

impl<A> Judged<'_, A> {
    fn doubt(&mut self, node: NodeId, problem: Problem, answer: A) {
        let operation = self.question.operation;
        tracing::debug!(%node, operation, %problem, "an answer does not fit");
        self.add(node, problem);
        self.doubtful.push((node, answer));
    }

    /// Checks the doubtful answers with what was learned meanwhile, and gives the first that is good.
    fn again<T>(&mut self, check: impl Fn(&A) -> Result<T, Problem>) -> Option<(NodeId, T)> {
        let (mut good, mut found) = (None, Vec::new());
        for (node, answer) in &self.doubtful {
            match check(answer) {
                Ok(value) => {
                    self.problems.forget(*node);
                    good = good.or(Some((*node, value)));
                }
                Err(problem) => found.push((*node, problem)),
            }
        }
        found.into_iter().for_each(|(node, problem)| self.add(node, problem));
        good
    }

    fn add(&mut self, node: NodeId, problem: Problem) {
        let problem = match problem {
            Problem::FalseAnswer(reason) if self.withheld => Problem::KeyWithheld(reason),
            other => other,
        };
        self.problems.add(node, problem);
    }

    /// Looks whether those whose answers do not fit are liars, now that there is a good answer.
    async fn clear_up<T>(&mut self, check: impl Fn(&A) -> Result<T, Problem>) {
        if let Some(under) = self.question.under.filter(|_| !self.doubtful.is_empty()) {
            under.glance().await;
            self.again(check);
        }
    }

    fn chosen<T>(&self, node: NodeId, value: T) -> Chosen<T> {
        let Question { operation, connections, asked, .. } = self.question;
        let false_answers = self.problems.false_answers();
        for NodeProblem { node, problem, .. } in &false_answers {
            tracing::warn!(%node, operation, %problem, "a node lies or is broken");
        }
        let sent = connections.iter().find(|connection| connection.node == node);
        let latency = sent.map_or(asked, |connection| connection.sent(asked)).elapsed();
        Chosen { node, value, latency, false_answers }
    }
}

/// The status for an answer that lacks a mandatory field.
pub(crate) fn incomplete(what: &'static str) -> Status {
    Status::new(Code::Internal, format!("the answer has no {what}"))
}
