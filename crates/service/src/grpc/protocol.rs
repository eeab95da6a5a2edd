//! The protocol API: operations of the whole group.

mod batch;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use theta_authority::{Granted, KeyRequest, Look, Place, Request as KeyUse, Seed};
use theta_keyfiles::PublicKeyText as _;
use theta_orchestration::{Finished, InstanceId};
use theta_schemes::{groups::Secret, keys::AnyPublicKey};
use theta_wire::v1;
use tokio::time;
use tokio_stream::{Stream, wrappers::WatchStream};
use tonic::{Request, Response, Status, codegen::BoxStream};

use super::{
    answer, deadline, door,
    gate::Arrival,
    refusal,
    state::{NodeState, header_of},
};

/// Serves `theta.v1.ThresholdProtocol`.
#[derive(Clone)]
pub(crate) struct Protocol {
    node: Arc<NodeState>,
}

/// An instance, the public key of the version that answers, and the outcome if the caller waited for it.
struct Performed {
    id: InstanceId,
    public: AnyPublicKey,
    finished: Option<Arc<Finished>>,
}

impl Performed {
    fn instance_id(&self) -> Bytes {
        answer::id(self.id)
    }

    /// The outcome whose result is the instance's own.
    fn outcome(&self) -> Option<v1::Outcome> {
        self.finished.as_deref().map(answer::whole_outcome)
    }
}

impl Protocol {
    pub(crate) const fn new(node: Arc<NodeState>) -> Self {
        Self { node }
    }

    /// Decides about a request. If it is granted, starts or joins its instance and, if the caller waits, waits for the
    /// outcome.
    async fn perform<T>(
        &self,
        request: &Request<T>,
        enclosed: (&Bytes, &[Bytes]),
        key_use: KeyUse,
        wait: i32,
    ) -> Result<Performed, Status> {
        let wait = waiting(wait)?;
        let granted = self.node.decide_use(request, enclosed, key_use).await?;
        self.carry_out(request, granted, wait).await
    }

    /// Starts or joins the instance of a granted request and, if the caller waits, waits for the outcome.
    async fn carry_out<T>(
        &self,
        request: &Request<T>,
        granted: Granted<KeyUse>,
        wait: v1::Wait,
    ) -> Result<Performed, Status> {
        let authority = &self.node.authority;
        let terms = granted.terms().clone();
        let began = Instant::now();
        let left = || Some(deadline::patience(request.metadata())?.saturating_sub(began.elapsed()));
        let certified = self.node.certified(granted, left()).await?;
        // Only the public key: a long wait must not keep a share alive that has left the key table.
        let public = certified.entry().public.clone();
        self.node.decoded(request, public.suite());
        let orchestrator = &self.node.orchestrator;
        let (load, len) = (orchestrator.load(), certified.request().statement().len());
        let asker = authority.account(&terms, len, (load.running, load.max_running));
        let asker = asker.map_err(|refusal| refusal::gate(&refusal))?;
        if wait == v1::Wait::Started {
            let id = orchestrator.submit_for(certified, asker).await.map_err(|error| refusal::submit(&error))?;
            authority.remember(id, &terms);
            return Ok(Performed { id, public, finished: None });
        }
        let identification = certified.identification();
        let run = orchestrator.run_for(certified, asker);
        let ran = match left() {
            None => run.await,
            Some(patience) => match time::timeout(patience, run).await {
                Ok(ran) => ran,
                Err(_) => {
                    let progress = orchestrator.progress(identification()).await;
                    return Err(refusal::deadline(patience, progress, &self.node.unreachable()));
                }
            },
        };
        let (id, finished) = ran.map_err(|error| refusal::submit(&error))?;
        authority.remember(id, &terms);
        let finished = finished.map_err(|error| refusal::instance(&error))?;
        self.node.returned(request, public.suite(), id);
        Ok(Performed { id, public, finished: Some(finished) })
    }

    /// The answer to a request for a signature.
    async fn signed(&self, performed: Performed, seed: Option<Seed>) -> Result<v1::SignResponse, Status> {
        let randomized_key = match (seed, &performed.finished) {
            (Some(seed), Some(finished)) => {
                self.node.randomized_key(performed.public.clone(), seed, Arc::clone(finished)).await?
            }
            _ => Bytes::new(),
        };
        let (instance_id, outcome) = (performed.instance_id(), performed.outcome());
        Ok(v1::SignResponse { instance_id, outcome, randomized_key })
    }

    /// Decides whether a client may have the result of an instance.
    async fn decide_result<T>(&self, request: &Request<T>, id: &Bytes) -> Result<Granted<InstanceId>, Status> {
        let (id, presented) = (instance_id(id)?, door::presented(request));
        self.node.authority.decide_result(&presented, id).await.map_err(|refusal| refusal::gate(&refusal))
    }
}

#[tonic::async_trait]
impl v1::threshold_protocol_server::ThresholdProtocol for Protocol {
    async fn decrypt(&self, request: Request<v1::DecryptRequest>) -> Result<Response<v1::DecryptResponse>, Status> {
        let v1::DecryptRequest { key, ciphertext, wait, signed_request, approvals } = request.get_ref();
        let header = header_of(ciphertext).map_err(|error| refusal::request(&error))?;
        let key_use = self.node.key_use(key, KeyRequest::Decrypt(header.clone()), None)?;
        let performed = self.perform(&request, (signed_request, approvals), key_use, *wait).await?;
        let outcome = match &performed.finished {
            None => None,
            Some(finished) => {
                let plaintext = self.node.open(Arc::clone(finished), header, ciphertext.clone()).await?;
                Some(answer::outcome(finished, plaintext))
            }
        };
        Ok(Response::new(v1::DecryptResponse { instance_id: performed.instance_id(), outcome }))
    }

    async fn decapsulate(
        &self,
        request: Request<v1::DecapsulateRequest>,
    ) -> Result<Response<v1::DecapsulateResponse>, Status> {
        let v1::DecapsulateRequest { key, header, wait, signed_request, approvals } = request.get_ref();
        let key_use = self.node.key_use(key, KeyRequest::Decapsulate(header.clone()), None)?;
        let performed = self.perform(&request, (signed_request, approvals), key_use, *wait).await?;
        let (instance_id, outcome) = (performed.instance_id(), performed.outcome());
        Ok(Response::new(v1::DecapsulateResponse { instance_id, outcome }))
    }

    async fn sign(&self, request: Request<v1::SignRequest>) -> Result<Response<v1::SignResponse>, Status> {
        let v1::SignRequest { key, wait, signed_request, approvals, slot, .. } = request.get_ref();
        let (asked, seed) = to_sign(request.get_ref())?;
        let key_use = self.node.key_use(key, asked, *slot)?;
        let performed = self.perform(&request, (signed_request, approvals), key_use, *wait).await?;
        Ok(Response::new(self.signed(performed, seed).await?))
    }

    async fn flip_coin(&self, request: Request<v1::FlipCoinRequest>) -> Result<Response<v1::FlipCoinResponse>, Status> {
        let v1::FlipCoinRequest { key, name, wait, signed_request, approvals, slot } = request.get_ref();
        let key_use = self.node.key_use(key, KeyRequest::FlipCoin(name.clone()), *slot)?;
        let performed = self.perform(&request, (signed_request, approvals), key_use, *wait).await?;
        let (instance_id, outcome) = (performed.instance_id(), performed.outcome());
        Ok(Response::new(v1::FlipCoinResponse { instance_id, outcome }))
    }

    async fn batch(&self, request: Request<v1::BatchRequest>) -> Result<Response<BoxStream<v1::BatchAnswer>>, Status> {
        let answers = self.answer_batch(request).await?;
        Ok(answers.map(|answers| -> BoxStream<v1::BatchAnswer> { Box::pin(answers) }))
    }

    async fn get_result(&self, request: Request<v1::GetResultRequest>) -> Result<Response<v1::InstanceStatus>, Status> {
        let granted = self.decide_result(&request, &request.get_ref().instance_id).await?;
        let id = *granted.request();
        let snapshot = self.node.orchestrator.status(granted).await.ok_or_else(|| refusal::unknown_instance(id))?;
        Ok(Response::new(answer::status(id, &snapshot)))
    }

    async fn watch_instance(
        &self,
        request: Request<v1::WatchInstanceRequest>,
    ) -> Result<Response<BoxStream<v1::InstanceStatus>>, Status> {
        let granted = self.decide_result(&request, &request.get_ref().instance_id).await?;
        let place = self.node.stream(granted.client())?;
        let id = *granted.request();
        let changes = self.node.orchestrator.watch(granted).await.ok_or_else(|| refusal::unknown_instance(id))?;
        let arrival = request.extensions().get::<Arrival>().cloned();
        let watching = Watching { id, changes: WatchStream::new(changes), ended: false, _places: (arrival, place) };
        Ok(Response::new(Box::pin(watching)))
    }

    async fn list_keys(&self, request: Request<v1::ListKeysRequest>) -> Result<Response<v1::ListKeysResponse>, Status> {
        let _ = self.node.decide_plain(&request, Look::Keys).await?;
        Ok(Response::new(v1::ListKeysResponse { keys: self.node.keys() }))
    }

    async fn get_public_key(
        &self,
        request: Request<v1::GetPublicKeyRequest>,
    ) -> Result<Response<v1::GetPublicKeyResponse>, Status> {
        let entry = self.node.key_seen(&request, &request.get_ref().key).await?;
        Ok(Response::new(v1::GetPublicKeyResponse {
            // What the node has made for it, and whom it caught, is for those who may list keys.
            info: Some(answer::key_info(&entry, None, Vec::new())),
            public_key_file: entry.public.to_text(&entry.name),
        }))
    }

    async fn get_status(
        &self,
        request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        let _ = self.node.decide_plain(&request, Look::Status).await?;
        // It looks at the store and its disk.
        let node = Arc::clone(&self.node);
        let status = tokio::task::spawn_blocking(move || node.status()).await;
        Ok(Response::new(status.map_err(|error| Status::internal(format!("bug: a status panicked: {error}")))?))
    }
}

/// How long the caller of a request waits.
///
/// # Errors
/// It says neither.
fn waiting(wait: i32) -> Result<v1::Wait, Status> {
    v1::Wait::try_from(wait).map_err(|_| refusal::invalid("wait is WAIT_DONE or WAIT_STARTED"))
}

/// What is to be signed, and the seed of the re-randomised key, if any.
///
/// # Errors
/// The caller's mistake.
fn to_sign(request: &v1::SignRequest) -> Result<(KeyRequest, Option<Seed>), Status> {
    let v1::SignRequest { message, digest, randomizer, .. } = request;
    let more = !message.is_empty() || !randomizer.is_empty();
    if !digest.is_empty() && more {
        return Err(refusal::invalid("send the message or its digest, not both; a digest takes no randomizer"));
    }
    let (message, seed) =
        (message.clone(), (!randomizer.is_empty()).then(|| Seed::new(Secret::new(randomizer.to_vec()))));
    let asked = match &seed {
        None if !digest.is_empty() => KeyRequest::SignDigest(digest.clone()),
        None => KeyRequest::Sign(message),
        Some(seed) => KeyRequest::SignRandomized { message, seed: Arc::clone(seed) },
    };
    Ok((asked, seed))
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
