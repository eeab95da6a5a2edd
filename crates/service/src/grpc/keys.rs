//! Serves ceremonies and key states, with the permission of this node's policy.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use theta_authority::{BackUp, ListCeremonies, Place, WatchCeremony, reason_of};
use theta_custody::{CeremonyError, CeremonyReport, ChangeReport};
use theta_names::{KeyState, Version};
use theta_orchestration::{ChangeKeyError, HoldError, NoCustodian};
use theta_statements::{CancelRequest, CeremonyRequest, KeyChange, StateChange};
use theta_wire::v1;
use tokio_stream::{
    Stream,
    wrappers::{ReceiverStream, WatchStream},
};
use tonic::{Request, Response, Status, codegen::BoxStream};

use super::{answer, backup, gate::Arrival, refusal, state::NodeState};

/// Serves `theta.v1.ThresholdKeys`.
pub(crate) struct Keys {
    node: Arc<NodeState>,
}

impl Keys {
    pub(crate) const fn new(node: Arc<NodeState>) -> Self {
        Self { node }
    }
}

#[tonic::async_trait]
impl v1::threshold_keys_server::ThresholdKeys for Keys {
    async fn hold_ceremony(
        &self,
        request: Request<v1::HoldCeremonyRequest>,
    ) -> Result<Response<v1::CeremonyStatus>, Status> {
        let v1::HoldCeremonyRequest { change, nonce, signed_request, approvals } = request.get_ref();
        let change =
            KeyChange::decode(change).map_err(|error| refusal::invalid(format!("not a change of a key: {error}")))?;
        let asks = CeremonyRequest { nonce: nonce_of(nonce)?, change };
        let granted = self.node.decide_seated(&request, (signed_request, approvals), asks).await?;
        let reason = reason_of(signed_request, approvals);
        let held = self.node.orchestrator.hold(granted, reason).await;
        let report = held.map_err(|error| self.node.or_not_ready(not_held(&error)))?;
        Ok(Response::new(answer::ceremony(&report)))
    }

    async fn cancel_ceremony(
        &self,
        request: Request<v1::CancelCeremonyRequest>,
    ) -> Result<Response<v1::CeremonyStatus>, Status> {
        let v1::CancelCeremonyRequest { change, nonce, signed_request, approvals } = request.get_ref();
        let change =
            KeyChange::decode(change).map_err(|error| refusal::invalid(format!("not a change of a key: {error}")))?;
        let asks = CancelRequest { request: CeremonyRequest { nonce: nonce_of(nonce)?, change } };
        let granted = self.node.decide_seated(&request, (signed_request, approvals), asks).await?;
        let reason = reason_of(signed_request, approvals);
        let report = self.node.orchestrator.cancel(granted, reason).await.map_err(|error| not_held(&error))?;
        Ok(Response::new(answer::ceremony(&report)))
    }

    async fn watch_ceremony(
        &self,
        request: Request<v1::WatchCeremonyRequest>,
    ) -> Result<Response<BoxStream<v1::CeremonyStatus>>, Status> {
        let id = &request.get_ref().id;
        let wrong = |_| refusal::invalid(format!("a ceremony's id has 32 bytes, this one has {}", id.len()));
        let id = <[u8; 32]>::try_from(id.as_ref()).map_err(wrong)?;
        let granted = self.node.decide_plain(&request, WatchCeremony(id)).await?;
        let stream = self.node.stream(granted.client())?;
        let reports = self.node.orchestrator.watch_ceremony(granted).await.ok_or_else(|| {
            refusal::not_found("no such ceremony is known here: it was never asked for here, or is long over")
        })?;
        let place = request.extensions().get::<Arrival>().cloned();
        let watching = Watching { reports: WatchStream::new(reports), ended: false, _places: (place, stream) };
        Ok(Response::new(Box::pin(watching)))
    }

    async fn list_ceremonies(
        &self,
        request: Request<v1::ListCeremoniesRequest>,
    ) -> Result<Response<v1::ListCeremoniesResponse>, Status> {
        let granted = self.node.decide_plain(&request, ListCeremonies).await?;
        let reports = self.node.orchestrator.ceremonies(granted).await;
        Ok(Response::new(v1::ListCeremoniesResponse { ceremonies: answer::ceremonies(&reports) }))
    }

    async fn change_key_state(
        &self,
        request: Request<v1::ChangeKeyStateRequest>,
    ) -> Result<Response<v1::ChangeKeyStateResponse>, Status> {
        let v1::ChangeKeyStateRequest { key, version, state, generation, not_before, signed_request, approvals } =
            request.get_ref();
        let (key, state) = (refusal::key_ref(key)?.name, state_of(state)?);
        if *generation == 0 {
            return Err(refusal::invalid(
                "the generation is missing: name the one after the key's, as ListKeys has it",
            ));
        }
        let version = Version::new(*version);
        let (generation, not_before) = (*generation, *not_before);
        let change = StateChange { key: key.clone(), version, state, generation, not_before };
        let granted = self.node.decide_seated(&request, (signed_request, approvals), change).await?;
        let reason = reason_of(signed_request, approvals);
        let changed = self.node.orchestrator.change_key(granted, reason).await;
        let report = changed.map_err(|error| self.node.or_not_ready(not_changed(&error)))?;
        let versions = self.node.orchestrator.keys().versions(key.as_ref());
        let versions = versions.iter().map(|entry| self.node.key_info(entry)).collect();
        let ChangeReport { decided, frozen, awaits } = report;
        let awaits = awaits.into_iter().map(|node| node.get().into()).collect();
        Ok(Response::new(v1::ChangeKeyStateResponse { versions, decided, frozen, awaits }))
    }

    async fn back_up(
        &self,
        request: Request<v1::BackUpRequest>,
    ) -> Result<Response<BoxStream<v1::BackUpPart>>, Status> {
        let v1::BackUpRequest { signed_request, approvals } = request.get_ref();
        let granted = self.node.decide(&request, (signed_request, approvals), BackUp).await?;
        let config = self.node.backups.config.clone().ok_or_else(|| {
            Status::failed_precondition(
                "this node makes no backups while it runs: whoever keeps it adds [backup.sealing] to its node.toml, for \
                 example with the line file = \"backup.key\", and starts it again",
            )
        })?;
        let turn = Arc::clone(&self.node.backups.turn)
            .try_acquire_owned()
            .map_err(|_| Status::aborted("another backup of this node is being made: ask again when that is done"))?;
        let stream_place = self.node.stream(granted.client())?;
        // The request keeps its place under the node's bounds for as long as its answer is read.
        let place = request.extensions().get::<Arrival>().cloned();
        let authority = Arc::clone(&self.node.authority);
        let (parts, stream) = backup::channel();
        tokio::task::spawn_blocking(move || {
            backup::send(authority.store(), &config, &parts);
            drop((place, stream_place, turn));
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// The state that a client names.
fn state_of(name: &str) -> Result<KeyState, Status> {
    match name {
        "active" => Ok(KeyState::Active),
        "retired" => Ok(KeyState::Retired),
        "disabled" => Ok(KeyState::Disabled),
        "destroyed" => Ok(KeyState::Destroyed),
        _ => Err(refusal::invalid("a key's state is made active, retired, disabled or destroyed")),
    }
}

/// The nonce, which determines the ceremony; approvals and signatures cover it.
pub(super) fn nonce_of(given: &Bytes) -> Result<[u8; 32], Status> {
    let wrong = |_| refusal::invalid("the nonce has not 32 bytes: give random ones, the same to all nodes");
    <[u8; 32]>::try_from(given.as_ref()).map_err(wrong)
}

fn not_held(error: &HoldError) -> Status {
    let message = refusal::short(error.to_string());
    match error {
        HoldError::Ceremony(CeremonyError::UnknownKey { .. } | CeremonyError::NotBegun) => Status::not_found(message),
        HoldError::Ceremony(CeremonyError::Exists(_)) => Status::already_exists(message),
        HoldError::Ceremony(CeremonyError::Busy { .. }) => Status::aborted(message),
        HoldError::Ceremony(CeremonyError::NotInLedger(_) | CeremonyError::StoreFailed(_))
        | HoldError::NoCustodian(NoCustodian::ShuttingDown) => Status::unavailable(message),
        HoldError::Ceremony(
            CeremonyError::Plan(_)
            | CeremonyError::NoNode(_)
            | CeremonyError::UnknownSuite(_)
            | CeremonyError::UnsupportedDelivery(_)
            | CeremonyError::UnfitThreshold(_),
        ) => Status::invalid_argument(message),
        HoldError::Ceremony(_) | HoldError::NoCustodian(NoCustodian::Fixed) => Status::failed_precondition(message),
    }
}

fn not_changed(error: &ChangeKeyError) -> Status {
    use theta_custody::ChangeError;
    use theta_store::KeyError;
    let message = refusal::short(error.to_string());
    match error {
        ChangeKeyError::Change(ChangeError::Key(KeyError::Unknown(_))) => Status::not_found(message),
        ChangeKeyError::Change(
            ChangeError::Key(KeyError::Store(_))
            | ChangeError::Custody(_)
            | ChangeError::NotInLedger(_)
            | ChangeError::Early { .. },
        )
        | ChangeKeyError::NoCustodian(NoCustodian::ShuttingDown) => Status::unavailable(message),
        ChangeKeyError::Change(ChangeError::Key(_) | ChangeError::Refused(_))
        | ChangeKeyError::NoCustodian(NoCustodian::Fixed) => Status::failed_precondition(message),
    }
}

/// Every change of a ceremony until it ends; the request keeps its place under the node's bounds that long.
pub(crate) struct Watching {
    reports: WatchStream<CeremonyReport>,
    ended: bool,
    _places: (Option<Arrival>, Place),
}

impl Stream for Watching {
    type Item = Result<v1::CeremonyStatus, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let report = ready!(Pin::new(&mut self.reports).poll_next(context));
        Poll::Ready(report.map(|report| {
            self.ended = report.state.is_over();
            Ok(answer::ceremony(&report))
        }))
    }
}
