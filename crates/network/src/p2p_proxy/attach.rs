//! One stream to the host after the other.

use core::time::Duration;
use std::time::Instant;

use bytes::Bytes;
use theta_names::NodeId;
use theta_wire::host::{
    self, Frame, Frames, FromNode, Hello, ToNode, from_node, message_host_client::MessageHostClient, to_node,
};
use tokio::{
    sync::{mpsc, watch},
    time::{interval, sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::{
    HostConfig,
    connect::{ConnectError, connect, in_words, is_turned_away},
};
use crate::{
    HostStatus,
    carrier::{Carried, MOST_FRAME_BYTES},
    doorway::Occasionally,
};

/// How long the host may take to say that a node is welcome.
const PATIENCE: Duration = Duration::from_secs(5);
/// The frames of one message, and their bytes.
const BATCH_FRAMES: usize = 64;
const BATCH_BYTES: usize = 1 << 20;
/// What a message to the host may have: a batch, and what encodes it.
const MESSAGE_BYTES: usize = BATCH_BYTES + (64 << 10);
/// What is taken of the host in one message. It should not send more than a batch; but if one that did so lost the stream, whoever makes it fill a
/// longer one would make this node deaf.
const MOST_MESSAGE_BYTES: usize = 4 * MESSAGE_BYTES;
/// How often it is looked whether the host takes what there is.
const LOOK: Duration = Duration::from_millis(250);
/// How often it is said that the host sends too much at once.
const LONG_PERIOD: Duration = Duration::from_secs(60);
/// A host that takes nothing for so long is slow.
const SLOW: Duration = Duration::from_secs(1);

/// Why a node is not attached.
#[derive(Debug, thiserror::Error)]
enum Away {
    #[error("{0}")]
    Connect(#[from] ConnectError),
    #[error("it turned this node away: {0}")]
    Refused(String),
    #[error("it did not say within {0:?} that this node is welcome")]
    Late(Duration),
    #[error("it speaks version {0} of the protocol for hosts, this node {VERSION}", VERSION = host::VERSION)]
    Version(u32),
    #[error(
        "it carries frames of {host} bytes and this node makes them of {node}: set `frame_bytes` in [host] of node.toml"
    )]
    FrameBytes { host: u32, node: usize },
    #[error("it broke the protocol: {0}")]
    Protocol(&'static str),
    #[error("the stream broke: {0}")]
    Broken(String),
    #[error("it ended the stream")]
    Ended,
}

/// Attaches again and again, until one of the ends of the carrier is gone.
pub(super) async fn keep(
    config: HostConfig,
    mut frames: mpsc::Receiver<Carried>,
    arrivals: mpsc::Sender<Carried>,
    status: watch::Sender<HostStatus>,
) {
    let (first, longest) = config.backoff;
    let mut pause = first;
    loop {
        let mut since = None;
        let away = tokio::select! {
            () = arrivals.closed() => return,
            ended = attend(&config, &mut frames, &arrivals, &status, &mut since) => match ended {
                Ok(()) => return,
                Err(away) => explain(&config, away).await.to_string(),
            },
        };
        let news = status.borrow().away.as_deref() != Some(&away);
        if news {
            tracing::warn!(host = %config.address, reason = %away, "the host is away; attaching again and again");
        }
        // Frames go on coming while nobody takes them.
        let waiting = frames.len();
        status.send_modify(|status| {
            (status.away, status.stalled, status.waiting) = (Some(away), Duration::ZERO, waiting);
        });
        // A host that welcomes and ends the stream at once is called no more often than one that is away.
        if since.is_some_and(|since: Instant| since.elapsed() >= longest) {
            pause = first;
        }
        tokio::select! {
            () = arrivals.closed() => return,
            () = sleep(pause) => {}
        }
        pause = pause.saturating_mul(2).min(longest);
    }
}

/// Looks whether the reason is that the host does not know this node.
async fn explain(config: &HostConfig, away: Away) -> Away {
    let vague = matches!(away, Away::Refused(_) | Away::Connect(ConnectError::Unreached(_)));
    if vague && is_turned_away(config).await {
        return Away::Refused("it does not know this node's certificate".to_owned());
    }
    away
}

/// One stream; `since` says from when on the host has it. `Ok`: the transport has stopped.
async fn attend(
    config: &HostConfig,
    frames: &mut mpsc::Receiver<Carried>,
    arrivals: &mpsc::Sender<Carried>,
    status: &watch::Sender<HostStatus>,
    since: &mut Option<Instant>,
) -> Result<(), Away> {
    let channel = connect(config).await?;
    let mut client = MessageHostClient::new(channel)
        .max_decoding_message_size(MOST_MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    let (words, spoken) = mpsc::channel(1);
    let hello = Hello {
        version: host::VERSION,
        group: config.group.clone(),
        node: u32::from(config.node.get()),
        frame_bytes: u32::try_from(config.frame_bytes).unwrap_or(u32::MAX),
    };
    // There is room for the first.
    drop(words.try_send(FromNode { word: Some(from_node::Word::Hello(hello)) }));
    let welcome = async {
        let mut heard =
            client.attach(ReceiverStream::new(spoken)).await.map_err(|status| refused(&status))?.into_inner();
        let first = heard.message().await.map_err(|status| refused(&status))?;
        Ok::<_, Away>((heard, first.and_then(|message| message.word)))
    };
    let (heard, first) = timeout(PATIENCE, welcome).await.map_err(|_| Away::Late(PATIENCE))??;
    match first {
        Some(to_node::Word::Welcome(welcome)) if welcome.version != host::VERSION => {
            return Err(Away::Version(welcome.version));
        }
        Some(to_node::Word::Welcome(welcome)) => {
            if usize::try_from(welcome.frame_bytes).is_ok_and(|bytes| bytes < config.frame_bytes) {
                return Err(Away::FrameBytes { host: welcome.frame_bytes, node: config.frame_bytes });
            }
        }
        Some(to_node::Word::Frames(_)) => return Err(Away::Protocol("frames came before its welcome")),
        None => return Err(Away::Ended),
    }
    status.send_modify(|status| (status.away, status.attached) = (None, status.attached.saturating_add(1)));
    *since = Some(Instant::now());
    tracing::info!(host = %config.address, "attached to the host");
    tokio::select! {
        ended = give(config, frames, &words, status) => ended,
        ended = get(config, heard, arrivals, status) => ended,
    }
}

/// Gives the host what there is. `Ok`: nobody sends any more.
async fn give(
    config: &HostConfig,
    frames: &mut mpsc::Receiver<Carried>,
    words: &mpsc::Sender<FromNode>,
    status: &watch::Sender<HostStatus>,
) -> Result<(), Away> {
    let most = BATCH_FRAMES.min((BATCH_BYTES / config.frame_bytes.max(1)).max(1));
    let mut batch = Vec::with_capacity(most);
    let mut looks = interval(LOOK);
    loop {
        if frames.recv_many(&mut batch, most).await == 0 {
            return Ok(());
        }
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let since = Instant::now();
        let place = loop {
            tokio::select! {
                place = words.reserve() => break place.map_err(|_| Away::Ended)?,
                _ = looks.tick() => note_stall(config, status, since.elapsed(), frames.len().saturating_add(batch.len())),
            }
        };
        let given =
            batch.drain(..).map(|Carried { node, frame }| Frame { node: u32::from(node.get()), payload: frame });
        place.send(FromNode { word: Some(from_node::Word::Frames(Frames { frames: given.collect() })) });
        status.send_if_modified(|status| {
            status.given = status.given.saturating_add(count);
            (status.waiting, status.stalled) = (frames.len(), Duration::ZERO);
            false
        });
    }
}

/// The host has taken nothing for some time. Said once, when it becomes long.
fn note_stall(config: &HostConfig, status: &watch::Sender<HostStatus>, stalled: Duration, waiting: usize) {
    if stalled < LOOK {
        return;
    }
    let before = status.borrow().stalled;
    if before < SLOW && stalled >= SLOW {
        tracing::warn!(host = %config.address, waiting, ?stalled, "the host is slow: it takes no frames");
    }
    status.send_if_modified(|status| {
        (status.stalled, status.waiting) = (stalled, waiting);
        false
    });
}

/// Takes what the host gives.
async fn get(
    config: &HostConfig,
    mut heard: Streaming<ToNode>,
    arrivals: &mpsc::Sender<Carried>,
    status: &watch::Sender<HostStatus>,
) -> Result<(), Away> {
    let long = Occasionally::every(LONG_PERIOD);
    loop {
        let message = heard.message().await.map_err(|status| Away::Broken(said(&status)))?.ok_or(Away::Ended)?;
        let Some(to_node::Word::Frames(frames)) = message.word else {
            return Err(Away::Protocol("something else than frames came after its welcome"));
        };
        let bytes: usize = frames.frames.iter().map(|frame| frame.payload.len()).sum();
        if bytes > BATCH_BYTES {
            let host = &config.address;
            long.warn(format_args!(
                "the host at {host} sends {bytes} bytes of frames at once: it should send 1 MiB at most"
            ));
        }
        let (mut got, mut dropped) = (0_u64, 0_u64);
        for Frame { node, payload } in frames.frames {
            // A number that nobody has, and a frame that nobody makes, are nobody's. Others may make longer frames than this node.
            let node = u16::try_from(node).ok().and_then(|node| NodeId::try_from(node).ok());
            let Some(node) = node.filter(|_| payload.len() <= MOST_FRAME_BYTES) else {
                dropped = dropped.saturating_add(1);
                continue;
            };
            // A view would keep the whole message, of which this may be the smallest part.
            let carried = Carried { node, frame: Bytes::copy_from_slice(&payload) };
            if arrivals.send(carried).await.is_err() {
                return Ok(());
            }
            got = got.saturating_add(1);
        }
        status.send_if_modified(|status| {
            (status.got, status.dropped) = (status.got.saturating_add(got), status.dropped.saturating_add(dropped));
            false
        });
    }
}

fn refused(status: &Status) -> Away {
    Away::Refused(said(status))
}

/// What a status says: the host's own words, shortened, or the reason why the stream broke.
fn said(status: &Status) -> String {
    let inner = core::error::Error::source(status).map(in_words);
    let words = inner.unwrap_or_else(|| format!("{}: {}", status.code(), status.message()));
    words.chars().filter(|character| !character.is_control()).take(200).collect()
}
