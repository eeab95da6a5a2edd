//! Answers that the client never reads: large ones, on streams whose flow-control window stays shut.

use bytes::Bytes;
use std::time::Duration;
use theta_wire::v1;
use tokio::{task::JoinSet, time};

use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    door::{Http, Shown, Windows, framed, headers},
    process,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "unread-answers",
    promise: "A client that does not read holds no more of a node's memory than the node gives to one client",
    who: Who::Client,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// The size of one answer in bytes.
const ANSWER: usize = 15 << 20;
/// A key for decryption: an answer is as long as its request.
const CIPHER: &str = "files";
/// What one client may make a node hold, in MiB: requests and answers together, and as much again for the allocator and the
/// buffers of TLS.
const MOST_MIB: u64 = 400;

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let requests: usize = field.size(80, 40);
    let identity = field.group().client_identity()?;
    // One node suffices to show it and saves memory of this machine.
    let node = field.group().nodes().first().ok_or_else(|| Trouble::new("a group without nodes"))?;
    let pid = field.group().pid(1)?;
    let before = process::memory(pid);
    let shut = Windows { stream: 0, connection: 1 << 16 };
    let http = Http::open(node, &Shown::Certificate(&identity), shut).await?;
    let request =
        v1::EncryptRequest { key: CIPHER.to_owned(), plaintext: Bytes::from(vec![7; ANSWER]), ..Default::default() };
    let request = framed(&request);
    let mut sending = JoinSet::new();
    for _ in 0..requests {
        sending.spawn(send(http.requests.clone(), request.clone()));
    }
    let (mut most, mut held, mut bytes) = (before, Vec::new(), 0);
    let deadline = time::Instant::now() + field.size(Duration::from_secs(40), Duration::from_secs(10));
    let mut tick = time::interval(Duration::from_millis(100));
    while time::Instant::now() < deadline {
        tick.tick().await;
        while let Some(Ok(sent)) = sending.try_join_next() {
            bytes += sent.bytes;
            held.extend(sent.answer);
        }
        most = most.max(process::memory(pid));
    }
    drop(sending);
    if held.is_empty() {
        return Err(Trouble::new("the node began no answer, so that none was left unread"));
    }
    let grown = most.saturating_sub(before) >> 20;
    Ok(Happened {
        kept: grown <= MOST_MIB,
        words: format!(
            "{} of {requests} answers of 15 MiB were begun and not taken; the node grew by {grown} MiB at most, {MOST_MIB} are its word",
            held.len()
        ),
        effort: Effort { connections: 1, bytes },
    })
}

/// The outcome of a request.
struct Sent {
    bytes: usize,
    /// The answer, held open and not read.
    answer: Option<http::Response<h2::RecvStream>>,
}

/// Sends a whole request, as fast as the node accepts it.
async fn send(requests: h2::client::SendRequest<Bytes>, mut request: Bytes) -> Sent {
    let mut bytes = 0;
    let answer = async {
        let mut requests = requests.ready().await.ok()?;
        let (answer, mut body) =
            requests.send_request(headers("/theta.v1.ThresholdScheme/Encrypt").ok()?, false).ok()?;
        while !request.is_empty() {
            body.reserve_capacity(request.len());
            let room = core::future::poll_fn(|context| body.poll_capacity(context)).await?.ok()?;
            let piece = request.split_to(room.min(request.len()));
            bytes += piece.len();
            body.send_data(piece, request.is_empty()).ok()?;
        }
        answer.await.ok()
    };
    let answer = answer.await;
    Sent { bytes, answer }
}
