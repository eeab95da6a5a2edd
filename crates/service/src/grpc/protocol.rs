//! The protocol API: operations carried out by the whole group.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use theta_keyfiles::PublicKeyText as _;
use theta_names::{KeyRef, Operation};
use theta_orchestration::{Finished, InstanceId, KeyRequest, Request as Submission, Seed};
use theta_schemes::groups::Secret;
use theta_wire::v1;
use tokio::time;
use tokio_stream::{Stream, wrappers::WatchStream};
use tonic::{Request, Response, Status};

use super::{
    answer, deadline,
    gate::Arrival,
    refusal,
    state::{NodeState, header_of},
};
use crate::authority::{Asked, Place, Presented, key_ref};

/// Serves `theta.v1.ThresholdProtocol`.
pub(crate) struct Protocol {
    node: Arc<NodeState>,
}

/// An instance, and its outcome if it was waited for.
type Performed = (InstanceId, Option<Arc<Finished>>);

impl Protocol {
    pub(crate) const fn new(node: Arc<NodeState>) -> Self {
        Self { node }
    }

    /// Decides about a request; if it is allowed, starts or joins its instance, and waits for the outcome if the caller does.
    async fn perform<T>(
        &self,
        request: &Request<T>,
        key: &KeyRef,
        asked: Asked,
        operation: KeyRequest,
        wait: i32,
    ) -> Result<Performed, Status> {
        let wait = v1::Wait::try_from(wait).map_err(|_| refusal::invalid("wait is WAIT_DONE or WAIT_STARTED"))?;
        let authority = &self.node.authority;
        let grant = self.node.decide(request, asked).await?;
        let began = Instant::now();
        let left = || Some(deadline::patience(request.metadata())?.saturating_sub(began.elapsed()));
        let entry = self.node.certified_entry(key, header_to_open(&operation), &grant, left()).await?;
        let key = key.to_string();
        self.node.decoded(request, entry.suite);
        let orchestrator = &self.node.orchestrator;
        let submission = Submission { key, operation: operation.clone() };
        let load = orchestrator.load();
        let asker = authority.account(&grant, operation.statement_len(), (load.running, load.max_running))?;
        if wait == v1::Wait::Started {
            let id = orchestrator.submit_for(submission, asker).await.map_err(|error| refusal::submit(&error))?;
            authority.remember(id, &grant);
            return Ok((id, None));
        }
        let run = orchestrator.run_for(submission, asker);
        let ran = match left() {
            None => run.await,
            Some(patience) => match time::timeout(patience, run).await {
                Ok(ran) => ran,
                Err(_) => {
                    let id = InstanceId::of(&entry.key_id, entry.epoch, operation);
                    let snapshot = orchestrator.status(id).await;
                    return Err(refusal::deadline(patience, snapshot.as_ref(), &self.node.unreachable()));
                }
            },
        };
        let (id, finished) = ran.map_err(|error| refusal::submit(&error))?;
        authority.remember(id, &grant);
        let finished = finished.map_err(|error| refusal::instance(&error))?;
        self.node.returned(request, entry.suite, id);
        Ok((id, Some(finished)))
    }
}

/// The header of what is to be opened, which names the key's version.
fn header_to_open(operation: &KeyRequest) -> Option<&Bytes> {
    match operation {
        KeyRequest::Decapsulate(header) => Some(header),
        _ => None,
    }
}

#[tonic::async_trait]
impl v1::threshold_protocol_server::ThresholdProtocol for Protocol {
    async fn decrypt(&self, request: Request<v1::DecryptRequest>) -> Result<Response<v1::DecryptResponse>, Status> {
        let v1::DecryptRequest { key, ciphertext, wait, signed_request, approvals } = request.get_ref();
        let (key, header) = (key_ref(key)?, header_of(ciphertext)?);
        let asked = Asked::to_open(&key, Operation::Decrypt, &header)?.with(signed_request, approvals);
        let operation = KeyRequest::Decapsulate(header);
        let (id, finished) = self.perform(&request, &key, asked, operation, *wait).await?;
        let outcome = match finished {
            None => None,
            Some(finished) => {
                let plaintext = self.node.open(Arc::clone(&finished), ciphertext.clone()).await?;
                Some(answer::outcome(&finished, plaintext))
            }
        };
        Ok(Response::new(v1::DecryptResponse { instance_id: answer::id(id), outcome }))
    }

    async fn decapsulate(
        &self,
        request: Request<v1::DecapsulateRequest>,
    ) -> Result<Response<v1::DecapsulateResponse>, Status> {
        let v1::DecapsulateRequest { key, header, wait, signed_request, approvals } = request.get_ref();
        let key = key_ref(key)?;
        let asked = Asked::to_open(&key, Operation::Decapsulate, header)?.with(signed_request, approvals);
        let operation = KeyRequest::Decapsulate(header.clone());
        let (id, finished) = self.perform(&request, &key, asked, operation, *wait).await?;
        let outcome = finished.as_deref().map(answer::whole_outcome);
        Ok(Response::new(v1::DecapsulateResponse { instance_id: answer::id(id), outcome }))
    }

    async fn sign(&self, request: Request<v1::SignRequest>) -> Result<Response<v1::SignResponse>, Status> {
        let v1::SignRequest { key, message, wait, randomizer, signed_request, approvals, slot } = request.get_ref();
        let (key, message) = (key_ref(key)?, message.clone());
        let asked =
            Asked::of(&key, Operation::Sign, message.clone(), randomizer).with(signed_request, approvals).at(*slot);
        if randomizer.is_empty() {
            let (id, finished) = self.perform(&request, &key, asked, KeyRequest::Sign(message), *wait).await?;
            let (instance_id, outcome) = (answer::id(id), finished.as_deref().map(answer::whole_outcome));
            return Ok(Response::new(v1::SignResponse { instance_id, outcome, randomized_key: Bytes::new() }));
        }
        let seed = Seed::new(Secret::new(randomizer.to_vec()));
        let operation = KeyRequest::SignRandomized { message, seed: Arc::clone(&seed) };
        let (id, finished) = self.perform(&request, &key, asked, operation, *wait).await?;
        let randomized_key = match &finished {
            None => Bytes::new(),
            Some(finished) => self.node.randomized_key(&key, seed, Arc::clone(finished)).await?,
        };
        let outcome = finished.as_deref().map(answer::whole_outcome);
        Ok(Response::new(v1::SignResponse { instance_id: answer::id(id), outcome, randomized_key }))
    }

    async fn flip_coin(&self, request: Request<v1::FlipCoinRequest>) -> Result<Response<v1::FlipCoinResponse>, Status> {
        let v1::FlipCoinRequest { key, name, wait, signed_request, approvals, slot } = request.get_ref();
        let key = key_ref(key)?;
        let asked = Asked::of(&key, Operation::FlipCoin, name.clone(), &[]).with(signed_request, approvals).at(*slot);
        let (id, finished) = self.perform(&request, &key, asked, KeyRequest::FlipCoin(name.clone()), *wait).await?;
        let outcome = finished.as_deref().map(answer::whole_outcome);
        Ok(Response::new(v1::FlipCoinResponse { instance_id: answer::id(id), outcome }))
    }

    async fn get_result(&self, request: Request<v1::GetResultRequest>) -> Result<Response<v1::InstanceStatus>, Status> {
        let id = instance_id(&request.get_ref().instance_id)?;
        self.node.authority.decide_result(&Presented::of(&request), id).await?;
        let snapshot = self.node.orchestrator.status(id).await.ok_or_else(|| refusal::unknown_instance(id))?;
        Ok(Response::new(answer::status(id, &snapshot)))
    }

    type WatchInstanceStream = Watching;

    async fn watch_instance(&self, request: Request<v1::WatchInstanceRequest>) -> Result<Response<Watching>, Status> {
        let id = instance_id(&request.get_ref().instance_id)?;
        let client = self.node.authority.decide_result(&Presented::of(&request), id).await?;
        let place = self.node.authority.stream(&client)?;
        let changes = self.node.orchestrator.watch(id).await.ok_or_else(|| refusal::unknown_instance(id))?;
        let arrival = request.extensions().get::<Arrival>().cloned();
        Ok(Response::new(Watching { id, changes: WatchStream::new(changes), ended: false, _places: (arrival, place) }))
    }

    async fn list_keys(&self, request: Request<v1::ListKeysRequest>) -> Result<Response<v1::ListKeysResponse>, Status> {
        self.node.decide(&request, Asked::new(Operation::KeysList)).await?;
        Ok(Response::new(v1::ListKeysResponse { keys: self.node.keys() }))
    }

    async fn get_public_key(
        &self,
        request: Request<v1::GetPublicKeyRequest>,
    ) -> Result<Response<v1::GetPublicKeyResponse>, Status> {
        let key = key_ref(&request.get_ref().key)?;
        self.node.decide(&request, Asked::of(&key, Operation::KeysList, Bytes::new(), &[])).await?;
        let entry = self.node.key_entry(&key)?;
        Ok(Response::new(v1::GetPublicKeyResponse {
            info: Some(answer::key_info(&entry)),
            public_key_file: entry.public.to_text(&entry.name),
        }))
    }

    async fn get_status(
        &self,
        request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        self.node.decide(&request, Asked::new(Operation::Status)).await?;
        Ok(Response::new(self.node.status()))
    }
}

fn instance_id(bytes: &Bytes) -> Result<InstanceId, Status> {
    let wrong = |_| refusal::invalid(format!("an instance id has 32 bytes, this one has {}", bytes.len()));
    <[u8; 32]>::try_from(bytes.as_ref()).map(InstanceId).map_err(wrong)
}

/// Every change of an instance until it ends; the request keeps its places under the node's bounds and its client's that long.
pub(crate) struct Watching {
    id: InstanceId,
    changes: WatchStream<theta_orchestration::InstanceSnapshot>,
    ended: bool,
    _places: (Option<Arrival>, Place),
}

impl Stream for Watching {
    type Item = Result<v1::InstanceStatus, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let snapshot = ready!(Pin::new(&mut self.changes).poll_next(context));
        Poll::Ready(snapshot.map(|snapshot| {
            let status = answer::status(self.id, &snapshot);
            self.ended = status.state != i32::from(v1::InstanceState::Running);
            Ok(status)
        }))
    }
}
