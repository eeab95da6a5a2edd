//! A thief that copies whole nodes, t in every epoch of a key, and tries in the end all that it has on all that it has.
//!
//! This is the mobile adversary of spec/ceremonies.md, with the files of real nodes: store and sealing key, copied while nothing
//! happens and in the middle of refreshes. What was said in ceremonies it has from the stores: nodes keep it for those who come late. In
//! a laboratory of its own it runs the stolen nodes against each other, believes whoever speaks, and adds up shares of whatever
//! epochs. It does not look into free pages of the files, against which nothing is promised (docs/adr/0017).

mod thief;

use std::{fs, time::Duration};
use theta_names::Epoch;

use tokio::time;

use self::thief::{Theft, Thief};
use crate::{
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    custody,
    group::{Group, NODES, THRESHOLD},
    process::Stopped,
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
/// The node that is slow where a ceremony is to last; it is robbed in other epochs, if at all.
const LATE: u16 = NODES - 1;
/// Between two copies of a node in one ceremony, and how many of them are made.
const PAUSE: Duration = Duration::from_millis(50);
const COPIES: usize = 6;

/// The one node that is stolen in an epoch. Where it is the same in two, it is stolen in the ceremony between them, too.
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
            // The others wait for its key before they deal: time for the thief.
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
        // Until all of them have the new epoch: who is late is not robbed of two.
        time::sleep(Duration::from_secs(2)).await;
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

/// Copies a node's store and sealing key at one moment of its life.
fn steal(group: &Group, node: u16, epoch: u32) -> Result<Theft, Trouble> {
    let dir = group.node_dir(node);
    let stopped = Stopped::stop(group.pid(node)?)?;
    let store = fs::read(dir.join("theta.redb"));
    drop(stopped);
    Ok(Theft { node, epoch: Epoch::new(epoch), store: store?, key: dir.join("store.key") })
}
