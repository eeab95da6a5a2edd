//! Streams of what is in the store, which is read as fast as the caller takes it.
//!
//! A thread that may block is taken for each piece and given back: it does not wait for callers, who may take their time.

use std::sync::Arc;

use bytes::Bytes;
use theta_authority::{Authority, Place};
use theta_store::{AuditRecord, Store};
use theta_wire::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, codegen::BoxStream};

use super::super::{gate::Arrival, refusal};

/// The number of records read from the store at a time.
const RECORDS: usize = 64;
/// Bytes of the ledger that are read from the store at a time; at least one entry is.
const LEDGER: usize = 64 << 10;
/// Pieces that wait until the caller takes them, besides those that were read with them.
const WAITING: usize = 8;

/// The places that a stream keeps: the request's under the node's bounds, and that of its client.
type Places = (Option<Arrival>, Place);

/// Records of the audit log from the first number on, as many as the second says, all if that is 0.
pub(super) fn records(
    authority: Arc<Authority>,
    (from, count): (u64, u64),
    places: Places,
) -> BoxStream<v1::AuditEntry> {
    let most = if count == 0 { u64::MAX } else { count };
    let (mut next, mut left, mut flushed) = (from, most, false);
    streamed(places, move || {
        if !flushed {
            authority.flush().map_err(|refusal| refusal::gate(&refusal))?;
            flushed = true;
        }
        let chunk = usize::try_from(left).unwrap_or(RECORDS).min(RECORDS);
        if chunk == 0 {
            return Ok(Vec::new());
        }
        let records = authority.store().audit(next, chunk).map_err(|error| {
            tracing::error!(%error, "the audit log cannot be read");
            Status::unavailable("the audit log of this node cannot be read: see the node's log")
        })?;
        if let Some(last) = records.last() {
            next = last.index.saturating_add(1);
        }
        left = left.saturating_sub(u64::try_from(records.len()).unwrap_or(u64::MAX));
        Ok(records.into_iter().map(entry).collect())
    })
}

/// Entries of the ledger after that of this height.
pub(super) fn entries(store: Arc<Store>, mut after: u64, places: Places) -> BoxStream<v1::LedgerEntry> {
    streamed(places, move || {
        let chunk = store.ledger_entries(after, LEDGER).map_err(|error| {
            tracing::error!(%error, "the ledger cannot be read");
            Status::unavailable("the ledger of this node cannot be read: see the node's log")
        })?;
        after = after.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        Ok(chunk.into_iter().map(|entry| v1::LedgerEntry { entry: entry.into() }).collect())
    })
}

/// What `read` returns, which may block, until that is nothing or an error, or nobody wants any more.
fn streamed<T: Send + 'static>(
    places: Places,
    mut read: impl FnMut() -> Result<Vec<T>, Status> + Send + 'static,
) -> BoxStream<T> {
    let (pieces, stream) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        loop {
            let reading = tokio::task::spawn_blocking(move || {
                let chunk = read();
                (read, chunk)
            });
            let Ok((reader, chunk)) = reading.await else {
                let _ = pieces.send(Err(Status::internal("bug: reading the store panicked; please report it"))).await;
                break;
            };
            read = reader;
            match chunk {
                Ok(chunk) if chunk.is_empty() => break,
                Ok(chunk) => {
                    for piece in chunk {
                        if pieces.send(Ok(piece)).await.is_err() {
                            return;
                        }
                    }
                }
                Err(refusal) => {
                    // Fails only if the client is gone.
                    let _ = pieces.send(Err(refusal)).await;
                    break;
                }
            }
        }
        drop(places);
    });
    Box::pin(ReceiverStream::new(stream))
}

fn entry(record: AuditRecord) -> v1::AuditEntry {
    let AuditRecord { index, previous, hash, body } = record;
    v1::AuditEntry {
        sequence: index,
        previous: Bytes::copy_from_slice(&previous),
        hash: Bytes::copy_from_slice(&hash),
        record: body.into(),
    }
}
