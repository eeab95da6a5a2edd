//! One node: its instances, and the threads and tasks that drive them.

mod burning;
mod custody;
mod engine;
mod error;
mod keeping;
mod keys;
mod mail;
mod orchestrator;
mod router;
mod slots;

use core::time::Duration;
use std::sync::{Arc, RwLock, atomic::AtomicBool};

use prometheus_client::registry::Registry;
use theta_network::Transport;
use tokio::sync::watch;

pub use custody::Forwarded;
pub use engine::{Engine, Pending};
pub use error::{ChangeKeyError, ChangeMembersError, ComputeError, HoldError, NoCustodian, StartError};
pub use keys::Keys;
pub use orchestrator::Orchestrator;

use crate::{
    OrchestratorConfig,
    burning::{Burning, Today},
    culprits::Culprits,
    instances::{Failure, ShardLoad, Shared},
    metrics::Metrics,
    quota::Quota,
};

/// Checks the arguments of a node's start, and makes what all its parts share.
fn share(
    config: OrchestratorConfig,
    keys: &Keys,
    transport: Arc<dyn Transport>,
    registry: &mut Registry,
    burning: Burning,
) -> Result<Arc<Shared>, StartError> {
    config.check()?;
    let (keys, store, quarantines) = (Arc::clone(keys.table()), keys.store(), keys.quarantines());
    let local = transport.local();
    if let Some(node) = keys.local().filter(|node| *node != local) {
        return Err(StartError::WrongNode { keys: node.get(), local: local.get() });
    }
    Ok(Arc::new(Shared {
        local,
        peers: RwLock::new(transport.peers().into()),
        metrics: Metrics::new(registry),
        culprits: Culprits::default(),
        running: Quota::new(config.max_instances),
        queued: Quota::new(config.max_queued_requests),
        statements: Quota::new(config.max_statement_bytes),
        computations: Quota::new(config.max_computations),
        shards: (0..config.thread_count()).map(|_| ShardLoad::default()).collect(),
        stopping: AtomicBool::new(false),
        store,
        quarantines,
        failure: Failure::default(),
        departure: Failure::default(),
        behind: AtomicBool::new(false),
        members: watch::Sender::new(None),
        fillings: Arc::default(),
        set_up_room: theta_protocols::ecdsa::SetUpRoom::new(config.set_up_pairs),
        burning,
        today: Today::default(),
        failures: theta_network::doorway::Occasionally::default(),
        failed_programs: [(); 3].map(|()| theta_network::doorway::Occasionally::every(Duration::from_secs(60))),
        config,
        keys,
        transport,
    }))
}
