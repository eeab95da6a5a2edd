//! A node whose files cannot grow for a while.

use std::{
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    time::Duration,
};

use theta_client::Client;
use theta_network::group::GroupNode;
use tokio::{
    task,
    time::{self, Instant},
};

use crate::{
    ask::Asked,
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::Group,
    until::until,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "full-disk",
    promise: "A node whose disk is full says so at /readyz, and serves again by itself when there is room",
    who: Who::Disk,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// The node whose disk is full.
const NODE: u16 = 1;
const KEY: &str = "beacon";
/// Requests at once, to fill the room that is left in the file.
const AT_ONCE: usize = 64;
/// A node that refuses this many batches in a row and still reports that it is ready has not noticed.
const MANY: usize = 20;
/// The latest time at which the disk is full, and at which the node serves again.
const LATEST: Duration = Duration::from_secs(60);

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let times: usize = field.size(5, 1);
    // The system kills a process that writes beyond its limit, unless the process ignores the signal.
    field.group_mut().kill(NODE)?;
    field.group_mut().start_ignoring_limits(NODE)?;
    let (client, node) = (field.group().client()?, field.group().node(NODE)?.clone());
    let up = until(LATEST, || async { if ready(field.group()).await == Some(200) { Ok(()) } else { Err(()) } });
    up.await.map_err(|()| Trouble::new("the node does not come up"))?;
    let (mut noticed, mut back, mut requests) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    for round in 0..times {
        let size = std::fs::metadata(field.group().node_dir(NODE).join("theta.redb"))?.len();
        limit(field.group(), &size.to_string())?;
        requests += fill(field.group(), &client, &node, &format!("full {round}")).await?;
        noticed += usize::from(ready(field.group()).await == Some(503));
        // Long enough for a node to shut down, if it reacts in this way.
        time::sleep(Duration::from_secs(2)).await;
        limit(field.group(), "unlimited")?;
        let room = Instant::now();
        let again = until(LATEST, || async {
            let request = Asked::new(KEY, format!("room {round} {:?}", room.elapsed()));
            let serves = ready(field.group()).await == Some(200) && request.share(&client, &node).await.is_ok();
            if serves { Ok(()) } else { Err(()) }
        });
        back += usize::from(again.await.is_ok());
        slowest = slowest.max(room.elapsed());
    }
    Ok(Happened {
        kept: noticed == times && back == times,
        words: format!(
            "the store of node {NODE} could not grow {times} times, {requests} requests: /readyz said so {noticed} times; it served \
             again {back} times when there was room, after {slowest:.1?} at most"
        ),
        effort: Effort { connections: 1, bytes: requests * 64 },
    })
}

/// Asks for shares until there is no room for their records, and returns how many.
async fn fill(group: &Group, client: &Client, node: &GroupNode, name: &str) -> Result<usize, Trouble> {
    let (mut requests, mut refused) = (0, 0);
    let deadline = Instant::now() + LATEST;
    while ready(group).await != Some(503) && refused < MANY {
        if Instant::now() > deadline {
            return Err(Trouble::new(format!(
                "{requests} requests did not fill the room that is left in the store's file"
            )));
        }
        let mut asked = task::JoinSet::new();
        for number in 0..AT_ONCE {
            let (client, node) = (client.clone(), node.clone());
            let request = Asked::new(KEY, format!("{name} {requests} {number}"));
            asked.spawn(async move { request.share(&client, &node).await.is_ok() });
        }
        let given = asked.join_all().await;
        requests += given.len();
        refused = if given.contains(&true) { 0 } else { refused + 1 };
    }
    Ok(requests)
}

/// Limits the length of the files that the node writes, in bytes; `unlimited` removes the limit.
fn limit(group: &Group, bytes: &str) -> Result<(), Trouble> {
    let pid = group.pid(NODE)?.to_string();
    let status = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:")]).status()?;
    if status.success() { Ok(()) } else { Err(Trouble::new("prlimit cannot limit the node's files")) }
}

/// The status code of /readyz; `None` if nobody answers.
async fn ready(group: &Group) -> Option<u16> {
    let port = group.metrics_port(NODE);
    let asked = task::spawn_blocking(move || -> std::io::Result<String> {
        let mut socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_read_timeout(Some(Duration::from_secs(30)))?;
        socket.write_all(b"GET /readyz HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n")?;
        let mut answer = [0; 12];
        socket.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    });
    asked.await.ok()?.ok()?.get(9..12)?.parse().ok()
}
