//! The thread that puts on record which nonces are used up: many in one commit.

use std::sync::atomic::Ordering::Acquire;

use theta_custody::Burner;
use tokio::sync::mpsc;

use super::router::{Inboxes, inbox_of};
use crate::{
    burning::{Burn, burn_all},
    instances::{Command, Shared},
};

/// Nonces that go on record in one commit.
const BATCH: usize = 256;

/// Puts on record what comes, and tells the instances, until the node stops.
pub(super) fn keep(burner: &Burner, mut inbox: mpsc::Receiver<Option<Burn>>, inboxes: &Inboxes, shared: &Shared) {
    let mut batch = Vec::with_capacity(BATCH);
    while inbox.blocking_recv_many(&mut batch, BATCH) > 0 && !shared.stopping.load(Acquire) {
        let (instances, used): (Vec<_>, Vec<_>) =
            batch.drain(..).flatten().map(|Burn { instance, key, used }| (instance, (key, used))).unzip();
        for (instance, supply) in instances.into_iter().zip(burn_all(burner, used)) {
            let Some(inbox) = inbox_of(inboxes, &instance) else { return };
            if inbox.blocking_send(Command::Supply { instance, supply }).is_err() {
                return;
            }
        }
    }
}
