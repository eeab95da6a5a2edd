//! Ends requests and connections without progress.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::{MissedTickBehavior, interval};

use super::{admission::Admission, connections::Connections};

/// How often it checks.
const ROUND: Duration = Duration::from_millis(500);

/// Checks requests and connections until it is aborted.
pub(crate) async fn patrol(admission: Arc<Admission>, connections: Arc<Connections>) {
    let mut rounds = interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        let now = Instant::now();
        admission.patrol(now);
        connections.patrol(now);
    }
}
