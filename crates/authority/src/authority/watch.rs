//! Watches the policy file.

use std::{sync::Weak, time::Duration};

use tokio::time::{self, MissedTickBehavior};

use super::Authority;

/// The time between two looks at the file.
const EVERY: Duration = Duration::from_secs(1);

/// Puts each change of the file in force within about a second, as long as the authority lives.
pub async fn watch(authority: Weak<Authority>) {
    let mut ticks = time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(authority) = authority.upgrade() else { return };
        if tokio::task::spawn_blocking(move || authority.look_after()).await.is_err() {
            tracing::error!("reading the policy file panicked: it is not looked at any more");
            return;
        }
    }
}
