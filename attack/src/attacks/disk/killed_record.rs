//! A node that is killed at random moments while clients get shares from it.

use std::{collections::HashSet, time::Duration};

use theta_client::Client;
use theta_statements::Digest;
use tokio::{sync::watch, task::JoinSet, time};

use crate::{
    ask::Asked,
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::Group,
    until::until,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "killed-record",
    promise: "A share that left a node is in the node's audit log, whenever the node was killed",
    who: Who::Disk,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// The node that is killed.
const NODE: u16 = 1;
const KEY: &str = "beacon";
/// The number of clients that get shares at once.
const CLIENTS: usize = 8;

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let kills: usize = field.size(60, 5);
    let (mut taken, mut missing) = (HashSet::new(), HashSet::new());
    for round in 0..kills {
        let (stop, stopping) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for number in 0..CLIENTS {
            let (client, node) = (field.group().client()?, field.group().node(NODE)?.clone());
            let (stopping, name) = (stopping.clone(), format!("{round} {number}"));
            tasks.spawn(async move {
                let mut taken = Vec::new();
                while !*stopping.borrow() {
                    let asked = Asked::new(KEY, format!("killed {name} {}", taken.len()));
                    match asked.share(&client, &node).await {
                        Ok(_) => taken.push(Digest::of(&asked.message)),
                        Err(_) => time::sleep(Duration::from_millis(10)).await,
                    }
                }
                taken
            });
        }
        let random = getrandom::u32().map_err(|error| Trouble::new(error.to_string()))?;
        time::sleep(Duration::from_millis(u64::from(random % 400) + 200)).await;
        field.group_mut().kill(NODE)?;
        stop.send_replace(true);
        let mut all = HashSet::new();
        while let Some(ended) = tasks.join_next().await {
            all.extend(ended.map_err(|error| Trouble::new(format!("bug: a client ended: {error}")))?);
        }
        field.group_mut().start(NODE)?;
        let recorded = recorded(field.group(), &field.group().client()?).await?;
        missing.extend(all.difference(&recorded).copied());
        taken.extend(all);
    }
    if taken.is_empty() {
        return Err(Trouble::new("no client got a share of the node that was killed"));
    }
    Ok(Happened {
        kept: missing.is_empty(),
        words: format!(
            "in {kills} kills, clients got {} shares of node {NODE}; {} of them are not on its record",
            taken.len(),
            missing.len()
        ),
        effort: Effort { connections: CLIENTS * kills, bytes: taken.len() * 64 },
    })
}

/// The statements whose shares the node allowed, according to its log after a restart.
async fn recorded(group: &Group, client: &Client) -> Result<HashSet<Digest>, Trouble> {
    let id = group.node(NODE)?.id;
    let entries = until(Duration::from_secs(60), || client.audit(id, 0, 0)).await?;
    let allowed = entries.iter().filter(|entry| entry.record.allowed && entry.record.operation == "sign");
    Ok(allowed.map(|entry| entry.record.statement).collect())
}
