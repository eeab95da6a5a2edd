//! One client submits and watches as much as it can, and never waits for a result.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use theta_client::Client;
use theta_network::group::GroupNode;
use theta_wire::rpc::Incoming;
use theta_wire::v1;
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

use crate::{
    ask::{Asked, is_exhausted},
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::NODES,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "quotas",
    promise: "One client that submits and watches all it can takes no more than a client's part, and the others are served",
    who: Who::Client,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

const GREEDY: &str = "greedy";
const RULE: &str = "[[rule]]\nname = \"greedy-signs\"\neffect = \"allow\"\nclients = [\"greedy\"]\nkeys = [\"*\"]\n\
                    operations = [\"sign\", \"keys.list\"]\n";
const KEY: &str = "beacon";
/// The greedy client's connections to each node, and requests under way on each of them.
const CONNECTIONS: usize = 16;
const AT_ONCE: usize = 8;
/// A node's bounds for one client (spec/policy.md, Limits): running instances, and streams.
const MOST_INSTANCES: u64 = 4_096;
const MOST_STREAMS: usize = 256;
/// The most instances that honest clients have running when the instances are counted.
const OTHERS: u64 = 64;

/// What the nodes did with the submissions.
#[derive(Default)]
struct Counts {
    next: AtomicUsize,
    taken: AtomicUsize,
    refused: AtomicUsize,
    otherwise: AtomicUsize,
}

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let group = field.group();
    let lines = group.add_client(GREEDY)?;
    group.begin_policies_with(&format!("{lines}\n{RULE}")).await?;
    let clients = (0..CONNECTIONS).map(|_| group.client_of(GREEDY)).collect::<Result<Vec<_>, _>>()?;
    let watched = watch(&clients, group.nodes(), field.size(5_000, 1_500)).await?;
    let submissions: usize = field.size(100_000, 6_000);
    let deadline = Instant::now() + field.size(Duration::from_secs(120), Duration::from_secs(12));
    let counts = Arc::new(Counts::default());
    // The short form sends everything to one node, so that this node's bound is reached.
    let targets: Vec<GroupNode> = group.nodes().iter().take(field.size(group.nodes().len(), 1)).cloned().collect();
    let mut tasks = JoinSet::new();
    for client in &clients {
        for _ in 0..AT_ONCE {
            let (counts, client, nodes) = (Arc::clone(&counts), client.clone(), targets.clone());
            tasks.spawn(async move { submit(&client, &nodes, &counts, submissions, deadline).await });
        }
    }
    let observer = group.client()?;
    let mut running = 0;
    while !tasks.is_empty() {
        for status in observer.status().await {
            running = running.max(status.status.map_or(0, |(status, _)| status.instances_running));
        }
        while tasks.try_join_next().is_some() {}
        time::sleep(Duration::from_millis(300)).await;
    }
    let [taken, refused, otherwise] =
        [&counts.taken, &counts.refused, &counts.otherwise].map(|count| count.load(Relaxed));
    if taken == 0 || watched.most == 0 {
        return Err(Trouble::new("no submission of the greedy client was taken, or no stream"));
    }
    let kept = watched.most <= MOST_STREAMS && running <= MOST_INSTANCES + OTHERS;
    Ok(Happened {
        kept,
        words: format!(
            "of {} submissions {taken} were taken, {refused} refused as too many, {otherwise} failed; {running} instances ran at one \
             node at most; of {} watch streams the nodes held {} each at most",
            taken + refused + otherwise,
            watched.asked,
            watched.most
        ),
        effort: Effort {
            connections: CONNECTIONS * usize::from(NODES),
            bytes: (taken + refused + otherwise + watched.asked) * 128,
        },
    })
}

/// Submits requests that no other node receives, so that their instances cannot end.
async fn submit(client: &Client, nodes: &[GroupNode], counts: &Counts, submissions: usize, deadline: Instant) {
    while Instant::now() < deadline {
        let number = counts.next.fetch_add(1, Relaxed);
        if number >= submissions {
            return;
        }
        let Some(node) = nodes.get(number % nodes.len().max(1)) else { return };
        let count = match Asked::new(KEY, format!("greedy {number}")).submit(client, node).await {
            Ok(_) => &counts.taken,
            Err(status) if is_exhausted(&status) => &counts.refused,
            Err(_) => &counts.otherwise,
        };
        count.fetch_add(1, Relaxed);
    }
}

/// The streams that were opened.
struct Watched {
    asked: usize,
    /// The most that one node held at once.
    most: usize,
    /// Keeps the streams open.
    _streams: Vec<Incoming<v1::InstanceStatus>>,
}

/// Watches instances that do not end, one at each node, over and over.
async fn watch(clients: &[Client], nodes: &[GroupNode], streams: usize) -> Result<Watched, Trouble> {
    let mut watched = Watched { asked: 0, most: 0, _streams: Vec::new() };
    let each = streams / nodes.len().max(1);
    for node in nodes {
        let first = clients.first().ok_or_else(|| Trouble::new("bug: no clients"))?;
        let submitted = Asked::new(KEY, format!("watched at {}", node.api_address)).submit(first, node).await;
        let instance_id = submitted.map_err(|status| Trouble::new(status.to_string()))?;
        let (mut held, mut tasks) = (0, JoinSet::new());
        for client in clients.iter().cycle().take(each) {
            let mut protocol = client.protocol(node.id)?;
            let request = v1::WatchInstanceRequest { instance_id: instance_id.clone() };
            // A stream that waits does not count: the node has not accepted it.
            tasks.spawn(async move {
                time::timeout(Duration::from_secs(5), protocol.watch_instance(request)).await.ok()?.ok()
            });
        }
        while let Some(answered) = tasks.join_next().await {
            if let Ok(Some(stream)) = answered {
                held += 1;
                watched._streams.push(stream.into_inner());
            }
        }
        watched.asked += each;
        watched.most = watched.most.max(held);
    }
    Ok(watched)
}
