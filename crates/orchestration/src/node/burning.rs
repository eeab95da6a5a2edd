//! The thread that records used nonces, many in one commit.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::Ordering::Acquire,
};

use theta_custody::Burner;
use tokio::sync::mpsc;
use tracing::error;

use super::router::{Inboxes, inbox_of};
use crate::{
    burning::{Burn, burn_all},
    instances::{Command, Shared},
};

/// The most nonces that are recorded in one commit.
const BATCH: usize = 256;

/// Records the nonces that come, and supplies the instances, until the node stops.
pub(super) fn keep(burner: &Burner, mut inbox: mpsc::Receiver<Option<Burn>>, inboxes: &Inboxes, shared: &Shared) {
    let mut batch = Vec::with_capacity(BATCH);
    while inbox.blocking_recv_many(&mut batch, BATCH) > 0 && !shared.stopping.load(Acquire) {
        let (instances, used): (Vec<_>, Vec<_>) =
            batch.drain(..).flatten().map(|Burn { instance, key, used }| (instance, (key, used))).unzip();
        let Ok(supplies) = catch_unwind(AssertUnwindSafe(|| burn_all(burner, used, &shared.today))) else {
            error!("bug: the store panicked; this node signs nothing with what was to go on record: please report it");
            continue;
        };
        for (instance, supply) in instances.into_iter().zip(supplies) {
            // A thread that stops needs no supplies.
            if let Some(inbox) = inbox_of(inboxes, &instance) {
                drop(inbox.blocking_send(Command::Supply { instance, supply }));
            }
        }
    }
}
