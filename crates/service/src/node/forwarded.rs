//! Asks this node's policy about requests to the group that came by other nodes.
//!
//! Each node decides by its own policy, whoever brings a request: a client that reaches one node has asked them all, as long as it has
//! signed what it asks for. A certificate or a token proves a client to one node only, so that such requests go no further.

use std::sync::{Arc, Weak};

use theta_authority::{Authority, Presented};
use theta_custody::GroupRequest;
use theta_orchestration::{Forwarded, Orchestrator};
use tokio::sync::mpsc;

/// Decides about one after the other, until the node stops.
pub(super) async fn decide(
    mut forwarded: mpsc::Receiver<Forwarded>,
    authority: Weak<Authority>,
    orchestrator: Weak<Orchestrator>,
) {
    while let Some(Forwarded { request, reason }) = forwarded.recv().await {
        let (Some(authority), Some(orchestrator)) = (authority.upgrade(), orchestrator.upgrade()) else { return };
        let Some(presented) = Presented::by_reason(&reason) else { continue };
        if let Err(why) = ask(&authority, &orchestrator, (request, presented), reason).await {
            tracing::info!(why, "a request that another node was asked for is not granted here");
        }
    }
}

async fn ask(
    authority: &Arc<Authority>,
    orchestrator: &Arc<Orchestrator>,
    (request, presented): (GroupRequest, Presented),
    reason: Vec<u8>,
) -> Result<(), String> {
    match request {
        GroupRequest::Ceremony(request) => {
            let granted = authority.decide(presented, request).await.map_err(|refusal| refusal.to_string())?;
            orchestrator.hold(granted, reason).await.map(drop).map_err(|error| error.to_string())
        }
        GroupRequest::Cancel(cancel) => {
            let granted = authority.decide(presented, cancel).await.map_err(|refusal| refusal.to_string())?;
            orchestrator.cancel(granted, reason).await.map(drop).map_err(|error| error.to_string())
        }
        GroupRequest::State(change) => {
            let granted = authority.decide(presented, change).await.map_err(|refusal| refusal.to_string())?;
            orchestrator.change_key(granted, reason).await.map(drop).map_err(|error| error.to_string())
        }
        GroupRequest::Members(request) => {
            let granted = authority.decide(presented, request).await.map_err(|refusal| refusal.to_string())?;
            orchestrator.change_members(granted, reason).await.map(drop).map_err(|error| error.to_string())
        }
    }
}
