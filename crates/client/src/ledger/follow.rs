//! Asking the nodes for what the group has decided since, and checking it.
//!
//! All nodes are asked at once, since one alone may be behind or hold back what is new. Each first shows the last entry that is known, and
//! so whether it follows the same history. Where there is much to read, one node is asked for the rest.

use std::{collections::BTreeSet, time::Duration};

use bytes::Bytes;
use theta_ledger::founding::MOST_MEMBERS;
use theta_ledger::{CertifiedEntry, Digest, LedgerError, LedgerState};
use theta_names::NodeId;
use theta_wire::v1;
use tokio::time::{self, Instant};
use tonic::Status;

use super::{
    Book,
    history::{Heads, History},
};
use crate::{
    Client, ClientError, Connection, NodeProblem, Problem,
    credentials::Enclosed,
    fan_out::{self, Problems},
};

pub(super) const OPERATION: &str = "read the ledger";
/// How much of a node's first answer is read, in bytes; of more, the rest is asked of one node.
const FIRST_READ: usize = 256 << 10;
/// The bytes that count for an entry besides its own.
pub(super) const OVERHEAD: usize = 64;
/// How long the others have, if nobody has time, after so many nodes have answered that one of them is honest.
const OTHERS: Duration = Duration::from_millis(300);
/// How long one node may take to show the way to a checkpoint, while all others are asked for the same.
pub(super) const REST: Duration = Duration::from_secs(10);
/// How long one node is asked for all the rest, before another one is asked for what is left: one that gives little by little must not keep
/// what is newer from a caller that has a few seconds.
const TURN: Duration = Duration::from_secs(2);
/// How long it may take for the next entry meanwhile.
const STALL: Duration = Duration::from_secs(1);

/// A caller's state, with the entries that are new.
struct Growing<'a> {
    state: &'a mut LedgerState,
    entries: Vec<CertifiedEntry>,
}

impl History for Growing<'_> {
    fn height(&self) -> u64 {
        self.state.height()
    }

    fn head(&self) -> Option<Digest> {
        Some(*self.state.head())
    }

    fn digest(&self, certified: &CertifiedEntry) -> Option<Digest> {
        Some(certified.entry.digest(self.state.id()))
    }

    fn take(&mut self, certified: CertifiedEntry) -> Result<(), LedgerError> {
        self.state.advance(&certified)?;
        self.entries.push(certified);
        Ok(())
    }
}

/// What came of following the ledger.
#[derive(Clone, Debug)]
pub struct Followed {
    /// The entries that were new, each checked.
    pub entries: Vec<CertifiedEntry>,
    /// The nodes that gave nothing, or something false, and what.
    pub problems: Vec<NodeProblem>,
}

impl Client {
    /// Takes into `state` all that the nodes have decided since, from whichever of them has it. All nodes are asked, since one alone may
    /// be behind or hold back what is new; what they give is checked entry by entry. This is for those who keep the entries themselves:
    /// a client follows the ledger without it ([`Client::renew`]).
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`] if no node gave anything that is true.
    pub async fn follow_ledger(&self, state: &mut LedgerState) -> Result<Followed, ClientError> {
        let mut growing = Growing { state, entries: Vec::new() };
        let problems = self.follow(&mut growing, Duration::MAX).await?;
        Ok(Followed { entries: growing.entries, problems })
    }

    /// Brings what this client knows of the group's ledger up to date, and with it the keys, versions and epochs that it knows. The client
    /// does so by itself when it meets a key that it does not know, or an answer that does not fit; this is for those who are about to
    /// use a key without any node, such as to encrypt. Says whether anything was new; `false` where the group keeps no ledger.
    ///
    /// # Errors
    /// [`ClientError::NoAnswer`] if no node gave anything that is true.
    pub async fn renew(&self) -> Result<bool, ClientError> {
        let book = self.known().book();
        let mut turns = book.turns.lock().await;
        let began = Instant::now();
        let learned = self.read_new(OTHERS).await?;
        turns.done(began, learned);
        Ok(learned)
    }

    /// The same, if nobody did since this time and it was not done in vain too often. With patience it waits for its turn.
    pub(crate) async fn learn_since(&self, time: Instant, patient: bool) {
        let book = self.known().book();
        let mut turns = book.turns.lock().await;
        if turns.asked_since(time) {
            return;
        }
        while let Err(next) = turns.take(Instant::now()) {
            if !patient {
                return;
            }
            time::sleep_until(next).await;
        }
        let began = Instant::now();
        let read = self.read_new(OTHERS).await;
        if let Err(error) = &read {
            tracing::debug!(%error, "the ledger was not read");
        }
        // Who asked at the same time need not ask for the same failure.
        turns.done(began, read.unwrap_or(false));
    }

    /// Asks the members that are known for what is new, and, if none of them can be reached, whoever the group file names besides. Whom
    /// the ledger names meanwhile is asked as well.
    async fn follow(&self, history: &mut impl History, others: Duration) -> Result<Vec<NodeProblem>, ClientError> {
        let present = self.present();
        let known = self.heads_above(history.height(), &present.connections).await?;
        let round = Round::new(self, &present.connections, self.enclose_token(), known.clone());
        let mut found = round.follow(history, others).await;
        if found.is_err() && !present.hints.is_empty() {
            // They are strangers so far, and get no token to see.
            let round = Round::new(self, &present.hints, Enclosed::default(), known.clone());
            let hinted = round.follow(history, others).await;
            found = hinted.or(found);
        }
        let now = self.present();
        if found.is_ok() && !now.is_of(&present) {
            let round = Round::new(self, &now.connections, self.enclose_token(), known);
            let again = round.follow(history, others).await;
            found = again.or(found);
        }
        found
    }

    async fn read_new(&self, others: Duration) -> Result<bool, ClientError> {
        let mut book = self.known().book();
        let Some(before) = book.look(LedgerState::height) else { return Ok(false) };
        // Also what was read for a caller that does not wait for the rest.
        let _kept = Kept(book);
        let problems = self.follow(&mut book, others).await?;
        for NodeProblem { node, problem, .. } in problems {
            if let Problem::FalseAnswer(reason) = problem {
                tracing::warn!(%node, reason, "a node showed a false ledger");
            }
        }
        book.keep().await;
        Ok(book.height() > before)
    }
}

/// What was read until this is dropped, and not kept so far, is in the file then.
struct Kept<'a>(&'a Book);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.0.keep_now();
    }
}

/// What one node gave at once.
struct Read {
    entries: Vec<Bytes>,
    /// Whether there is more.
    more: bool,
}

/// One attempt to learn what is new.
struct Round<'a> {
    client: &'a Client,
    connections: &'a [Connection],
    enclosed: Enclosed,
    problems: Problems,
    /// The nodes that answered well in the end.
    good: BTreeSet<NodeId>,
    /// The entries that are known to be the group's, as far as nodes may show them: those up to the checkpoint, and the newest ones.
    known: Heads,
}

impl<'a> Round<'a> {
    fn new(client: &'a Client, connections: &'a [Connection], enclosed: Enclosed, known: Heads) -> Self {
        let problems = Problems::new(connections);
        Self { client, connections, enclosed, problems, good: BTreeSet::new(), known }
    }

    /// Follows until nobody has more. After a quorum's answers the others have time `others`.
    async fn follow(mut self, history: &mut impl History, others: Duration) -> Result<Vec<NodeProblem>, ClientError> {
        let mut nodes: Vec<Connection> = self.connections.to_vec();
        // Those that were asked for the rest since all of them were: who was slow comes behind the others.
        let mut had = BTreeSet::new();
        loop {
            let before = history.height();
            let longer = self.ask_all(&nodes, history, others).await;
            nodes.retain(|connection| self.good.contains(&connection.node));
            let next = longer.iter().find(|node| !had.contains(*node)).or_else(|| {
                had.clear();
                longer.first()
            });
            let Some(connection) = next.and_then(|next| nodes.iter().find(|connection| connection.node == *next))
            else {
                break;
            };
            let node = connection.node;
            had.insert(node);
            // If its time is over, it gave what it had the time for, and another one is asked for what is left.
            let rest = time::timeout(TURN, self.read_rest(connection, history)).await;
            if let Ok(Err(problem)) = rest {
                nodes.retain(|connection| connection.node != node);
                self.good.remove(&node);
                self.problems.add(node, problem);
            }
            if history.height() == before {
                break;
            }
        }
        let problems = self.problems.all();
        if self.good.is_empty() {
            return Err(ClientError::NoAnswer { operation: OPERATION, nodes: problems });
        }
        Ok(problems)
    }

    /// Asks these nodes, and gives those that have more than they could say at once, the quickest first.
    async fn ask_all(&mut self, nodes: &[Connection], history: &mut impl History, others: Duration) -> Vec<NodeId> {
        // The last entry again: that of a node with another history is another one.
        let after = history.height().saturating_sub(1);
        if let Some(head) = history.head().filter(|_| history.height() > 0) {
            self.known.insert(history.height(), head);
        }
        let patience = self.client.shared.options.timeout;
        let longest = CertifiedEntry::longest(MOST_MEMBERS) + OVERHEAD;
        let mut replies = fan_out::ask_all(nodes, patience, |connection| {
            let request = self.enclosed.request(&connection, v1::ReadLedgerRequest { after }, patience);
            read_some(connection, request, longest)
        });
        let (mut longer, mut deadline, mut answered) = (Vec::new(), None, 0);
        loop {
            let next = match deadline {
                None => replies.recv().await,
                Some(deadline) => time::timeout_at(deadline, replies.recv()).await.unwrap_or_default(),
            };
            let Some((node, reply)) = next else { break };
            let judged = reply.and_then(|read| {
                // One after the other: what is told twice would only take time.
                let heights = (1..).map(|place| after.saturating_add(place));
                read.entries.iter().zip(heights).try_for_each(|(entry, height)| self.take(entry, height, history))?;
                Ok(read.more)
            });
            match judged {
                Ok(more) => {
                    self.good.insert(node);
                    longer.extend(more.then_some(node));
                    answered += 1;
                }
                Err(problem) => {
                    self.good.remove(&node);
                    self.problems.add(node, problem);
                }
            }
            if answered >= self.client.quorum() && others < patience {
                deadline = deadline.or_else(|| Some(Instant::now() + others));
            }
        }
        longer
    }

    /// Reads what one node has, until it has no more or does not go on.
    async fn read_rest(&mut self, connection: &Connection, history: &mut impl History) -> Result<(), Problem> {
        let patience = self.client.shared.options.timeout;
        let longest = CertifiedEntry::longest(MOST_MEMBERS) + OVERHEAD;
        let after = history.height();
        let request = v1::ReadLedgerRequest { after };
        let request = self.enclosed.request(connection, request, patience);
        let mut governance = connection.governance().max_decoding_message_size(longest);
        let mut stream = match time::timeout(STALL, governance.read_ledger(request)).await {
            Ok(Ok(stream)) => stream.into_inner(),
            Ok(Err(status)) => return Err(connection.problem(&status, patience).await),
            Err(_) => return Ok(()),
        };
        for place in 1.. {
            match time::timeout(STALL, stream.message()).await {
                Ok(Ok(None)) | Err(_) => break,
                Ok(Ok(Some(read))) => self.take(&read.entry, after.saturating_add(place), history)?,
                Ok(Err(status)) => return Err(connection.problem(&status, patience).await),
            }
        }
        Ok(())
    }

    /// Judges one entry that a node showed as that of this height.
    fn take(&mut self, bytes: &[u8], height: u64, history: &mut impl History) -> Result<(), Problem> {
        let certified = CertifiedEntry::decode(bytes)
            .map_err(|error| Problem::FalseAnswer(format!("not an entry of the ledger: {error}")))?;
        if certified.entry.height != height {
            let shown = certified.entry.height;
            return Err(Problem::FalseAnswer(format!("entry {shown} of the ledger in the place of entry {height}")));
        }
        let digest = history.digest(&certified);
        if self.known.get(&height).is_some_and(|known| Some(*known) != digest) {
            return Err(other_history(height));
        }
        if height <= history.height() {
            return Ok(());
        }
        history.take(certified).map_err(|error| match error {
            LedgerError::Fork(height) => other_history(height),
            error => Problem::FalseAnswer(error.to_string()),
        })?;
        if let Some(digest) = digest {
            self.known.insert(height, digest);
        }
        Ok(())
    }
}

/// What is said of a node whose entry is another than the one that this client has with the votes of a quorum, or follows another one.
fn other_history(height: u64) -> Problem {
    Problem::FalseAnswer(format!(
        "it shows another history of the group: its entry {height} does not fit the entries that this client has, each with the \
         votes of a quorum; it lies, or belongs to another group"
    ))
}

async fn read_some(
    connection: Connection,
    request: tonic::Request<v1::ReadLedgerRequest>,
    longest: usize,
) -> Result<Read, Status> {
    let mut governance = connection.governance().max_decoding_message_size(longest);
    let mut stream = governance.read_ledger(request).await?.into_inner();
    let (mut entries, mut size) = (Vec::new(), 0_usize);
    while let Some(read) = stream.message().await? {
        size = size.saturating_add(read.entry.len()).saturating_add(OVERHEAD);
        entries.push(read.entry);
        if size >= FIRST_READ {
            return Ok(Read { entries, more: true });
        }
    }
    Ok(Read { entries, more: false })
}
