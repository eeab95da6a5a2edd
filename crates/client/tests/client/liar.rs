//! A false API with node 1's own certificate that answers at once, and falsely.

use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use theta_keyfiles::PublicKeyText as _;
use theta_network::{
    Identity,
    tls::{self, Pinned},
};
use theta_schemes::{Suite, keys::deal_any};
use theta_sharing::Threshold;
use theta_wire::v1::{self, threshold_protocol_server as server};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, codegen::BoxStream, transport::Server};

use crate::{connection::Connection, group::TestGroup};

struct Liar;

pub(crate) fn serve(group: &TestGroup, listener: TcpListener) {
    let folder = group.folder.path().join("node-1");
    let identity = Identity::load(&folder.join("node.crt"), &folder.join("node.key")).unwrap();
    let clients = group.group.clients().iter();
    let pins = clients.map(|client| (client.certificate, Pinned::Client(Arc::from("tester")))).collect();
    let acceptor = TlsAcceptor::from(tls::server_config(&identity, pins, &[b"h2"]).unwrap());
    let (accepted, connections) = mpsc::channel(8);
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            if let Ok(tls) = acceptor.accept(tcp).await {
                let _ = accepted.send(Ok::<_, std::io::Error>(Connection(tls))).await;
            }
        }
    });
    let service = server::ThresholdProtocolServer::new(Liar);
    tokio::spawn(Server::builder().serve_with_incoming(service, ReceiverStream::new(connections)));
}

fn lie(result: usize) -> Option<v1::Outcome> {
    Some(v1::Outcome { result: vec![5; result].into(), contributors: vec![1, 2], ..Default::default() })
}

fn id() -> Bytes {
    Bytes::from_static(&[1; 32])
}

#[tonic::async_trait]
impl server::ThresholdProtocol for Liar {
    async fn decrypt(&self, _: Request<v1::DecryptRequest>) -> Result<Response<v1::DecryptResponse>, Status> {
        Ok(Response::new(v1::DecryptResponse { instance_id: id(), outcome: lie(10) }))
    }
    async fn decapsulate(
        &self,
        _: Request<v1::DecapsulateRequest>,
    ) -> Result<Response<v1::DecapsulateResponse>, Status> {
        Ok(Response::new(v1::DecapsulateResponse { instance_id: id(), outcome: lie(32) }))
    }
    async fn sign(&self, _: Request<v1::SignRequest>) -> Result<Response<v1::SignResponse>, Status> {
        Ok(Response::new(v1::SignResponse { instance_id: id(), outcome: lie(96), ..Default::default() }))
    }
    async fn flip_coin(&self, _: Request<v1::FlipCoinRequest>) -> Result<Response<v1::FlipCoinResponse>, Status> {
        Ok(Response::new(v1::FlipCoinResponse { instance_id: id(), outcome: lie(32) }))
    }
    /// Lies about all, answers the last twice, and says something about a request that nobody sent.
    async fn batch(&self, request: Request<v1::BatchRequest>) -> Result<Response<BoxStream<v1::BatchAnswer>>, Status> {
        use v1::{batch_answer::Answer, batch_item::Request as Item};
        let lies = |(number, item): (u32, v1::BatchItem)| {
            let answer = match item.request {
                Some(Item::Decapsulate(_)) => {
                    Answer::Decapsulate(v1::DecapsulateResponse { instance_id: id(), outcome: lie(32) })
                }
                Some(Item::FlipCoin(_)) => {
                    Answer::FlipCoin(v1::FlipCoinResponse { instance_id: id(), outcome: lie(32) })
                }
                _ => Answer::Sign(v1::SignResponse { instance_id: id(), outcome: lie(96), ..Default::default() }),
            };
            Ok(v1::BatchAnswer { item: number, answer: Some(answer) })
        };
        let mut answers: Vec<Result<v1::BatchAnswer, Status>> =
            (0..).zip(request.into_inner().items).map(lies).collect();
        let last = answers.pop().unwrap().unwrap();
        let empty = v1::BatchAnswer { item: last.item, answer: None };
        answers.extend([last.clone(), v1::BatchAnswer { item: 1_000_000, ..last }, empty].map(Ok));
        Ok(Response::new(Box::pin(tokio_stream::iter(answers))))
    }
    async fn get_result(&self, _: Request<v1::GetResultRequest>) -> Result<Response<v1::InstanceStatus>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn watch_instance(
        &self,
        _: Request<v1::WatchInstanceRequest>,
    ) -> Result<Response<BoxStream<v1::InstanceStatus>>, Status> {
        Err(Status::unimplemented(""))
    }
    async fn list_keys(&self, _: Request<v1::ListKeysRequest>) -> Result<Response<v1::ListKeysResponse>, Status> {
        Ok(Response::new(v1::ListKeysResponse::default()))
    }
    async fn get_public_key(
        &self,
        request: Request<v1::GetPublicKeyRequest>,
    ) -> Result<Response<v1::GetPublicKeyResponse>, Status> {
        // A well-formed key of that name with which the liar could sign alone.
        let name = request.get_ref().key.parse().unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(99);
        let (public, _) = deal_any(Suite::Bls04MinPk, Threshold::new(2, 4).unwrap(), &mut rng);
        let public_key_file = public.to_text(&name);
        Ok(Response::new(v1::GetPublicKeyResponse { info: None, public_key_file }))
    }
    async fn get_status(&self, _: Request<v1::GetStatusRequest>) -> Result<Response<v1::GetStatusResponse>, Status> {
        Ok(Response::new(v1::GetStatusResponse::default()))
    }
}
