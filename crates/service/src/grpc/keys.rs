//! Keys and their ceremonies, by leave of this node's policy.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use theta_custody::{CeremonyError, CeremonyReport};
use theta_names::{KeyRef, KeyState, Operation};
use theta_orchestration::{ChangeKeyError, HoldError, NoCustodian};
use theta_statements::{CeremonyRequest, KeyChange, StateChange};
use theta_wire::v1;
use tokio_stream::{Stream, wrappers::WatchStream};
use tonic::{Request, Response, Status};

use super::{answer, gate::Arrival, refusal, state::NodeState};
use crate::authority::{Asked, Place, key_ref};

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
        let asked = Asked {
            key: Some(asks.change.key().to_string()),
            statement: asks.encode().into(),
            recorded_first: true,
            ..Asked::new(asks.change.operation())
        };
        self.node.decide(&request, asked.with(signed_request, approvals)).await?;
        let report = self.node.orchestrator.hold(asks).await.map_err(|error| not_held(&error))?;
        Ok(Response::new(answer::ceremony(&report)))
    }

    type WatchCeremonyStream = Watching;

    async fn watch_ceremony(&self, request: Request<v1::WatchCeremonyRequest>) -> Result<Response<Watching>, Status> {
        let id = &request.get_ref().id;
        let wrong = |_| refusal::invalid(format!("a ceremony's id has 32 bytes, this one has {}", id.len()));
        let id = <[u8; 32]>::try_from(id.as_ref()).map_err(wrong)?;
        let asked = Asked { statement: Bytes::copy_from_slice(&id), ..Asked::new(Operation::KeysList) };
        let grant = self.node.decide(&request, asked).await?;
        let stream = self.node.authority.stream(grant.client())?;
        let reports = self.node.orchestrator.watch_ceremony(id).await.ok_or_else(|| {
            refusal::not_found("no such ceremony is known here: it was never asked for here, or is long over")
        })?;
        let place = request.extensions().get::<Arrival>().cloned();
        Ok(Response::new(Watching { reports: WatchStream::new(reports), ended: false, _places: (place, stream) }))
    }

    async fn list_ceremonies(
        &self,
        request: Request<v1::ListCeremoniesRequest>,
    ) -> Result<Response<v1::ListCeremoniesResponse>, Status> {
        self.node.decide(&request, Asked::new(Operation::KeysList)).await?;
        let reports = self.node.orchestrator.ceremonies().await;
        Ok(Response::new(v1::ListCeremoniesResponse { ceremonies: reports.iter().map(answer::ceremony).collect() }))
    }

    async fn change_key_state(
        &self,
        request: Request<v1::ChangeKeyStateRequest>,
    ) -> Result<Response<v1::ChangeKeyStateResponse>, Status> {
        let v1::ChangeKeyStateRequest { key, version, state, generation, signed_request, approvals } =
            request.get_ref();
        let key = KeyRef { version: None, ..key_ref(key)? };
        let (operation, state) = state_of(state)?;
        if *generation == 0 {
            return Err(refusal::invalid(
                "the generation is missing: name the one after the key's, as ListKeys has it",
            ));
        }
        let version = Some(*version).filter(|version| *version > 0);
        let change = StateChange { key: key.name.clone(), version, state, generation: *generation };
        let asked = Asked {
            key: Some(key.name.to_string()),
            statement: change.encode().into(),
            recorded_first: true,
            ..Asked::new(operation)
        };
        self.node.decide(&request, asked.with(signed_request, approvals)).await?;
        self.node.orchestrator.change_key(change).await.map_err(|error| not_changed(&error))?;
        let versions = self.node.orchestrator.keys().versions(key.name.as_ref());
        let versions = versions.iter().map(|entry| answer::key_info(entry)).collect();
        Ok(Response::new(v1::ChangeKeyStateResponse { versions }))
    }
}

/// The state that a client may ask for, and the operation that it is.
fn state_of(name: &str) -> Result<(Operation, KeyState), Status> {
    match name {
        "active" => Ok((Operation::KeysEnable, KeyState::Active)),
        // What is retired signs no more: a way of disabling that leaves decryption.
        "retired" => Ok((Operation::KeysDisable, KeyState::Retired)),
        "disabled" => Ok((Operation::KeysDisable, KeyState::Disabled)),
        "destroyed" => Ok((Operation::KeysDestroy, KeyState::Destroyed)),
        _ => Err(refusal::invalid("a key's state is made active, retired, disabled or destroyed")),
    }
}

/// What names the ceremony; approvals and signatures cover it.
fn nonce_of(given: &Bytes) -> Result<[u8; 32], Status> {
    let wrong = |_| refusal::invalid("the nonce has not 32 bytes: give random ones, the same to all nodes");
    <[u8; 32]>::try_from(given.as_ref()).map_err(wrong)
}

fn not_held(error: &HoldError) -> Status {
    let message = refusal::short(error.to_string());
    match error {
        HoldError::Ceremony(CeremonyError::UnknownKey { .. }) => Status::not_found(message),
        HoldError::Ceremony(CeremonyError::Exists(_)) => Status::already_exists(message),
        HoldError::Ceremony(CeremonyError::Busy { .. }) => Status::aborted(message),
        HoldError::Ceremony(CeremonyError::NotHereYet(..) | CeremonyError::StoreFailed(_))
        | HoldError::NoCustodian(NoCustodian::ShuttingDown) => Status::unavailable(message),
        HoldError::Ceremony(CeremonyError::Plan(_) | CeremonyError::NoNode(_) | CeremonyError::UnknownSuite(_)) => {
            Status::invalid_argument(message)
        }
        HoldError::Ceremony(_) | HoldError::NoCustodian(NoCustodian::Fixed) => Status::failed_precondition(message),
    }
}

fn not_changed(error: &ChangeKeyError) -> Status {
    use theta_custody::ChangeError;
    use theta_store::KeyError;
    let message = refusal::short(error.to_string());
    match error {
        ChangeKeyError::Change(ChangeError::Key(KeyError::Unknown(_))) => Status::not_found(message),
        ChangeKeyError::Change(ChangeError::Key(KeyError::Store(_)) | ChangeError::Custody(_))
        | ChangeKeyError::NoCustodian(NoCustodian::ShuttingDown) => Status::unavailable(message),
        ChangeKeyError::Change(ChangeError::Key(_)) | ChangeKeyError::NoCustodian(NoCustodian::Fixed) => {
            Status::failed_precondition(message)
        }
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
