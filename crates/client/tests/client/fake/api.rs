//! What a node of this test's group answers.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use theta_wire::v1::{self, governance_server as governance, threshold_protocol_server as protocol};
use tonic::{
    Request, Response, Status,
    body::Body,
    codegen::{BoxFuture, BoxStream, Context, Poll, Service, http},
};

use super::{Rest, Said};

/// Both services at one address.
#[derive(Clone)]
pub(super) struct Both {
    protocol: protocol::ThresholdProtocolServer,
    governance: governance::GovernanceServer,
}

impl Both {
    pub(super) fn new(said: &Arc<Mutex<Said>>) -> Self {
        Self {
            protocol: protocol::ThresholdProtocolServer::new(Api(Arc::clone(said))),
            governance: governance::GovernanceServer::new(Api(Arc::clone(said))),
        }
    }
}

impl Service<http::Request<Body>> for Both {
    type Response = http::Response<Body>;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path().starts_with("/theta.v1.Governance/") {
            return self.governance.call(request);
        }
        self.protocol.call(request)
    }
}

struct Api(Arc<Mutex<Said>>);

fn nothing<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented(""))
}

#[tonic::async_trait]
impl governance::Governance for Api {
    async fn read_ledger(
        &self,
        request: Request<v1::ReadLedgerRequest>,
    ) -> Result<Response<BoxStream<v1::LedgerEntry>>, Status> {
        let after = request.get_ref().after;
        let (entries, delay, rest) = {
            let mut said = self.0.lock().unwrap();
            said.asked.push(after);
            let entries = said.entries.iter().skip(usize::try_from(after).unwrap());
            let entries: Vec<_> = entries.map(|entry| Ok(v1::LedgerEntry { entry: entry.encode().into() })).collect();
            (entries, said.ledger_delay, said.rest)
        };
        tokio::time::sleep(delay).await;
        match rest {
            Rest::Never if after > 0 => Ok(Response::new(Box::pin(tokio_stream::pending()))),
            Rest::Every(pause) if after > 0 => {
                let (sender, receiver) = tokio::sync::mpsc::channel(1);
                tokio::spawn(async move {
                    for entry in entries {
                        tokio::time::sleep(pause).await;
                        if sender.send(entry).await.is_err() {
                            break;
                        }
                    }
                });
                Ok(Response::new(Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))))
            }
            _ => Ok(Response::new(Box::pin(tokio_stream::iter(entries)))),
        }
    }

    async fn read_audit(
        &self,
        _: Request<v1::ReadAuditRequest>,
    ) -> Result<Response<BoxStream<v1::AuditEntry>>, Status> {
        nothing()
    }
    async fn prune_audit(&self, _: Request<v1::PruneAuditRequest>) -> Result<Response<v1::PruneAuditResponse>, Status> {
        nothing()
    }
    async fn change_members(
        &self,
        _: Request<v1::ChangeMembersRequest>,
    ) -> Result<Response<v1::MembersStatus>, Status> {
        self.members()
    }
    async fn take_back_change(
        &self,
        _: Request<v1::TakeBackChangeRequest>,
    ) -> Result<Response<v1::MembersStatus>, Status> {
        nothing()
    }
    async fn bring_warrant(&self, _: Request<v1::BringWarrantRequest>) -> Result<Response<v1::MembersStatus>, Status> {
        nothing()
    }
    async fn explain_policy(
        &self,
        _: Request<v1::ExplainPolicyRequest>,
    ) -> Result<Response<v1::ExplainPolicyResponse>, Status> {
        nothing()
    }
    async fn get_policy(&self, _: Request<v1::GetPolicyRequest>) -> Result<Response<v1::GetPolicyResponse>, Status> {
        nothing()
    }
}

impl Api {
    fn members(&self) -> Result<Response<v1::MembersStatus>, Status> {
        self.0.lock().unwrap().members.clone().map(Response::new).ok_or_else(|| Status::unimplemented(""))
    }

    /// Takes its time, and refuses if it is to.
    async fn consider(&self) -> Result<(), Status> {
        let (refusal, delay) = {
            let said = self.0.lock().unwrap();
            (said.refusal.clone(), said.delay)
        };
        tokio::time::sleep(delay).await;
        refusal.map_or(Ok(()), Err)
    }

    /// Never comes back if the node is to be silent about keys.
    async fn fall_silent(&self) {
        let silent = self.0.lock().unwrap().silent_about_keys;
        if silent {
            std::future::pending::<()>().await;
        }
    }

    fn outcome(&self) -> (Bytes, Option<v1::Outcome>) {
        (Bytes::from_static(&[1; 32]), self.0.lock().unwrap().outcome.clone())
    }
}

#[tonic::async_trait]
impl protocol::ThresholdProtocol for Api {
    async fn sign(&self, _: Request<v1::SignRequest>) -> Result<Response<v1::SignResponse>, Status> {
        {
            let mut said = self.0.lock().unwrap();
            said.requests += 1;
            if let Some(left) = said.not_ready.checked_sub(1) {
                said.not_ready = left;
                let mut status = Status::unavailable("this machine reads the ledger");
                status.metadata_mut().insert("theta-not-ready", "1".parse().unwrap());
                return Err(status);
            }
        }
        self.consider().await?;
        let (instance_id, outcome) = self.outcome();
        Ok(Response::new(v1::SignResponse { instance_id, outcome, ..Default::default() }))
    }
    async fn flip_coin(&self, _: Request<v1::FlipCoinRequest>) -> Result<Response<v1::FlipCoinResponse>, Status> {
        let (instance_id, outcome) = self.outcome();
        Ok(Response::new(v1::FlipCoinResponse { instance_id, outcome }))
    }
    async fn get_public_key(
        &self,
        request: Request<v1::GetPublicKeyRequest>,
    ) -> Result<Response<v1::GetPublicKeyResponse>, Status> {
        self.fall_silent().await;
        if self.0.lock().unwrap().tells_no_keys {
            std::future::pending::<()>().await;
        }
        let (public_key_file, refusal) = {
            let said = self.0.lock().unwrap();
            let told = said.versions.get(&request.get_ref().key).cloned().unwrap_or_else(|| Ok(said.public.clone()));
            (told?, said.public_refusal.clone())
        };
        refusal.map_or(Ok(()), Err)?;
        let public_key_file = public_key_file.ok_or_else(|| Status::not_found("there is no such key"))?;
        let info = Some(v1::KeyInfo { holders: vec![1, 2, 3, 4], ..Default::default() });
        Ok(Response::new(v1::GetPublicKeyResponse { info, public_key_file }))
    }
    async fn decrypt(&self, _: Request<v1::DecryptRequest>) -> Result<Response<v1::DecryptResponse>, Status> {
        nothing()
    }
    async fn decapsulate(
        &self,
        _: Request<v1::DecapsulateRequest>,
    ) -> Result<Response<v1::DecapsulateResponse>, Status> {
        self.consider().await?;
        let (instance_id, outcome) = self.outcome();
        Ok(Response::new(v1::DecapsulateResponse { instance_id, outcome }))
    }
    /// Whoever is not ready says so about every second request, as often as it was told to.
    async fn batch(&self, request: Request<v1::BatchRequest>) -> Result<Response<BoxStream<v1::BatchAnswer>>, Status> {
        use v1::batch_answer::Answer;
        let not_ready = {
            let mut said = self.0.lock().unwrap();
            said.requests += 1;
            let left = said.not_ready;
            said.not_ready = left.saturating_sub(1);
            left > 0
        };
        let refused = v1::Refused {
            code: tonic::Code::Unavailable.into(),
            message: "this machine reads the ledger".to_owned(),
            metadata: [("theta-not-ready".to_owned(), "1".to_owned())].into(),
        };
        let considered = self.consider().await;
        let is_header = |item: usize| {
            let asked = request.get_ref().items.get(item).and_then(|item| item.request.as_ref());
            matches!(asked, Some(v1::batch_item::Request::Decapsulate(_)))
        };
        let answer = |item: usize| {
            let (instance_id, outcome) = self.outcome();
            let answer = match (not_ready && item % 2 == 1, &considered) {
                (true, _) => Answer::Refused(refused.clone()),
                (_, Err(status)) => Answer::Refused(v1::Refused {
                    code: status.code().into(),
                    message: status.message().to_owned(),
                    ..Default::default()
                }),
                (false, Ok(())) if is_header(item) => {
                    Answer::Decapsulate(v1::DecapsulateResponse { instance_id, outcome })
                }
                (false, Ok(())) => Answer::Sign(v1::SignResponse { instance_id, outcome, ..Default::default() }),
            };
            Ok(v1::BatchAnswer { item: u32::try_from(item).unwrap(), answer: Some(answer) })
        };
        let answers: Vec<_> = (0..request.get_ref().items.len()).map(answer).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(answers))))
    }
    async fn get_result(&self, _: Request<v1::GetResultRequest>) -> Result<Response<v1::InstanceStatus>, Status> {
        nothing()
    }
    async fn watch_instance(
        &self,
        _: Request<v1::WatchInstanceRequest>,
    ) -> Result<Response<BoxStream<v1::InstanceStatus>>, Status> {
        nothing()
    }
    async fn list_keys(&self, _: Request<v1::ListKeysRequest>) -> Result<Response<v1::ListKeysResponse>, Status> {
        self.fall_silent().await;
        let (keys, refusal, delay) = {
            let said = self.0.lock().unwrap();
            (said.keys.clone(), said.list_refusal.clone(), said.list_delay)
        };
        tokio::time::sleep(delay).await;
        refusal.map_or_else(|| Ok(Response::new(v1::ListKeysResponse { keys })), Err)
    }
    async fn get_status(&self, _: Request<v1::GetStatusRequest>) -> Result<Response<v1::GetStatusResponse>, Status> {
        nothing()
    }
}
