//! A thief copies whole nodes, t in every epoch of a key, and in the end tries all combinations of what it has.
//!
//! This is the mobile adversary of spec/ceremonies.md, with the files of real nodes: store and sealing key, copied at rest
//! and in the middle of refreshes. The thief has the messages of ceremonies from the stores, which keep them for nodes that
//! come late. It runs the stolen nodes against each other, makes them believe whoever speaks, and combines shares of any
//! epochs. It does not look into free pages of the files, against which nothing is promised
//! (docs/adr/0017-forward-secret-ceremonies.md).

mod thief;

use std::{fs, time::Duration};
use theta_client::ListedKey;
use theta_names::Epoch;

use tokio::time;

use self::thief::{Theft, Thief};
use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    custody,
    group::{Group, NODES, THRESHOLD},
    process::Stopped,
    until::until,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "stolen-stores",
    promise: "Who steals t nodes whole in every epoch of a key has t shares of each, and neither another share nor the key",
    who: Who::Disk,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

/// A key on ristretto255, 2 of 4.
const KEY: &str = "coin";
/// The node that is stopped to make a ceremony last. It is robbed in other epochs, if at all.
const LATE: u16 = NODES - 1;
/// The pause between two copies of a node in one ceremony, and the number of copies.
const PAUSE: Duration = Duration::from_millis(50);
const COPIES: usize = 6;

/// The one node that is robbed in an epoch. If it is the same in two epochs, it is robbed during the ceremony between them,
/// too.
const fn robbed(epoch: u32) -> u16 {
    match epoch % 6 {
        0 => 1,
        1 | 2 => 2,
        3 => 3,
        _ => 4,
    }
}

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let group = field.group();
    let client = group.client()?;
    let refreshes: u32 = field.size(9, 2);
    let mut thief = Thief::new(group)?;
    let mut meanwhile = 0;
    for epoch in 0..=refreshes {
        let node = robbed(epoch);
        thief.takes(steal(group, node, epoch)?);
        if epoch == refreshes {
            break;
        }
        let held = custody::refresh(client.clone(), KEY);
        if robbed(epoch + 1) == node {
            // The others wait for this node's key before they deal, which gives the thief time.
            let _late = Stopped::stop(group.pid(LATE)?)?;
            for _ in 0..COPIES {
                time::sleep(PAUSE).await;
                thief.takes(steal(group, node, epoch)?);
                meanwhile += 1;
            }
        }
        let outcome = held.await.map_err(|error| Trouble::new(format!("bug: a client ended: {error}")))?;
        let outcome = outcome.map_err(Trouble::new)?;
        if outcome.epoch != Epoch::new(epoch + 1) || outcome.agreed.len() < usize::from(THRESHOLD) {
            return Err(Trouble::new(format!("a refresh led to epoch {}", outcome.epoch)));
        }
        // Wait until all nodes have the new epoch, so that no late node is robbed of two.
        let all_have_it = || async {
            let (keys, _) = client.list_keys().await;
            let is_it = |key: &ListedKey| {
                let (name, at) = (key.info.name.as_str(), key.info.epoch);
                name == KEY && at == u64::from(epoch) + 1 && key.nodes.len() == usize::from(NODES)
            };
            if keys.iter().any(is_it) { Ok(()) } else { Err(Trouble::new("not all nodes have the new epoch")) }
        };
        until(Duration::from_secs(60), all_have_it).await?;
    }
    let found = tokio::task::spawn_blocking(move || thief.tries(KEY));
    let found = found.await.map_err(|error| Trouble::new(format!("bug: the thief ended: {error}")))??;
    if found.epochs < 2 {
        return Err(Trouble::new("the stolen stores have shares of one epoch alone"));
    }
    let opened = if found.opened.is_empty() { "none".to_owned() } else { found.opened.join(", ") };
    Ok(Happened {
        kept: found.opened.is_empty() && !found.key,
        words: format!(
            "one node of 4 stolen in each of {} epochs, {meanwhile} copies in the middle of refreshes ({} of them with a running \
             ceremony): {} shares were in the stores; shares opened beside those: {opened}; of {} pairs of shares the key {}",
            refreshes + 1,
            found.running,
            found.shares,
            found.pairs,
            if found.key { "FOLLOWS" } else { "does not follow" }
        ),
        effort: Effort { connections: 0, bytes: 0 },
    })
}

/// Copies a node's store and sealing key as they are now.
fn steal(group: &Group, node: u16, epoch: u32) -> Result<Theft, Trouble> {
    let dir = group.node_dir(node);
    let stopped = Stopped::stop(group.pid(node)?)?;
    let store = fs::read(dir.join("theta.redb"));
    drop(stopped);
    Ok(Theft { node, epoch: Epoch::new(epoch), store: store?, key: dir.join("store.key") })
}
