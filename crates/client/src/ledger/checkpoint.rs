//! The way from the founding to the checkpoint of a client file (`spec/client.md`).
//!
//! Whoever has the keys of machines that were members long ago, enough of them to be a quorum of then, can write a history of its own that
//! begins with the founding. The checkpoint is an entry of the true one, and each entry names the one before by its digest: so what stands
//! before the checkpoint is known, once a node has shown it, and no other entry is taken there, whoever voted for it.

use std::sync::{
    Arc, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use theta_ledger::{CertifiedEntry, LedgerId, founding::MOST_MEMBERS};
use theta_wire::v1;
use tonic::{Code, Status};

use super::follow::{OPERATION, OVERHEAD, REST};
use super::history::Heads;
use crate::{
    Checkpoint, Client, ClientError, Connection, Problem,
    fan_out::{self, Problems},
};

impl Client {
    /// What stands for the entries up to the checkpoint, as the first of these nodes shows it; nothing if a history of this height has come
    /// there already.
    pub(super) async fn heads_above(&self, height: u64, connections: &[Connection]) -> Result<Heads, ClientError> {
        let book = self.known().book();
        let checkpoint = book.checkpoint.filter(|checkpoint| height < checkpoint.height);
        let id = book.look(|state| *state.id());
        let (Some(checkpoint), Some(id)) = (checkpoint, id) else { return Ok(Heads::new()) };
        let known = book.heads.read().unwrap_or_else(PoisonError::into_inner).clone();
        if !known.is_empty() {
            return Ok(known);
        }
        let (enclosed, found) = (self.enclose_token(), Arc::new(AtomicBool::new(false)));
        let mut replies = fan_out::ask_all(connections, REST, |connection| {
            let request = enclosed.request(&connection, v1::ReadLedgerRequest { after: 0 }, REST);
            read_heads(connection, request, (id, checkpoint), Arc::clone(&found))
        });
        let mut problems = Problems::new(connections);
        while let Some((node, reply)) = replies.recv().await {
            match reply.and_then(|judged| judged) {
                Ok(heads) => {
                    // The others need not read on.
                    found.store(true, Ordering::Relaxed);
                    book.heads.write().unwrap_or_else(PoisonError::into_inner).clone_from(&heads);
                    return Ok(heads);
                }
                Err(problem) => problems.add(node, problem),
            }
        }
        Err(ClientError::NoAnswer { operation: OPERATION, nodes: problems.all() })
    }
}

/// Reads a node's entries up to the checkpoint, and keeps what stands for each, if each follows the one before and the last is the
/// checkpoint's. Votes are not looked at here: the checkpoint stands for all entries before it.
async fn read_heads(
    connection: Connection,
    request: tonic::Request<v1::ReadLedgerRequest>,
    (id, checkpoint): (LedgerId, Checkpoint),
    found: Arc<AtomicBool>,
) -> Result<Result<Heads, Problem>, Status> {
    let longest = CertifiedEntry::longest(MOST_MEMBERS) + OVERHEAD;
    let mut governance = connection.governance().max_decoding_message_size(longest);
    let mut stream = governance.read_ledger(request).await?.into_inner();
    let (mut heads, mut head) = (Heads::new(), *id.as_bytes());
    for height in 1..=checkpoint.height {
        let Some(read) = stream.message().await? else {
            let message =
                format!("its ledger ends before entry {}, to which this client's file goes", checkpoint.height);
            return Ok(Err(Problem::Refused { code: Code::Unavailable, message }));
        };
        if found.load(Ordering::Relaxed) {
            return Err(Status::cancelled("another node has shown it"));
        }
        let entry = match CertifiedEntry::decode(&read.entry) {
            Ok(certified) => certified.entry,
            Err(error) => return Ok(Err(Problem::FalseAnswer(format!("not an entry of the ledger: {error}")))),
        };
        if (entry.height, entry.previous) != (height, head) {
            return Ok(Err(Problem::FalseAnswer(format!(
                "its entry {height} of the ledger does not follow the one before"
            ))));
        }
        head = entry.digest(&id);
        heads.insert(height, head);
    }
    if head == checkpoint.entry {
        return Ok(Ok(heads));
    }
    Ok(Err(Problem::FalseAnswer(format!(
        "it shows another history of the group: its entry {} is not the one in this client's file, which was checked from the founding \
         on; it lies, or belongs to another group",
        checkpoint.height
    ))))
}
