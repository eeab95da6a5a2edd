//! The scheme API: this node's share of a key, for hosts that carry the messages themselves. All computations run on the
//! orchestrator's CPU pool, never on I/O threads.

use std::sync::Arc;

use bytes::Bytes;
use theta_authority::{KeyRequest, Place};
use theta_orchestration::KeyEntry;
use theta_payload::{Aead, Encrypt as _, EncryptError, Header, sealed_len};
use theta_schemes::{
    Statement, StatementBytes,
    keys::{AnyPublicKey, Combined, SchemeError},
};
use theta_sharing::ShareIndex;
use theta_wire::v1::{self, statement};
use tonic::{Request, Response, Status};

use super::{
    deadline, refusal,
    state::{NodeState, header_of},
};

mod shares;

/// Serves `theta.v1.ThresholdScheme`.
pub(crate) struct Scheme {
    node: Arc<NodeState>,
}

impl Scheme {
    pub(crate) const fn new(node: Arc<NodeState>) -> Self {
        Self { node }
    }

    /// A key for a public computation, and its place, for callers that may see it and have not had too many of them.
    async fn key<T>(&self, request: &Request<T>, key: &str) -> Result<(Arc<KeyEntry>, Place), Status> {
        self.node.key_to_compute_with(request, key).await
    }

    /// The public part of a key.
    async fn public_key<T>(&self, request: &Request<T>, key: &str) -> Result<(AnyPublicKey, Place), Status> {
        let (entry, place) = self.key(request, key).await?;
        Ok((entry.public.clone(), place))
    }
}

#[tonic::async_trait]
impl v1::threshold_scheme_server::ThresholdScheme for Scheme {
    async fn encrypt(&self, request: Request<v1::EncryptRequest>) -> Result<Response<v1::EncryptResponse>, Status> {
        let (public, place) = self.public_key(&request, &request.get_ref().key).await?;
        let v1::EncryptRequest { key: _, plaintext, label, aead } = request.into_inner();
        let aead = parse_aead(&aead)?;
        let encrypt = move |rng: &mut dyn rand_core::CryptoRng| public.encrypt(&plaintext, &label, aead, rng);
        let ciphertext = self.node.compute_at(place, encrypt).await?.map_err(|error| match error {
            EncryptError::Request(error) => refusal::request(&error),
            EncryptError::Io(error) => refusal::invalid(error.to_string()),
        })?;
        Ok(Response::new(v1::EncryptResponse { ciphertext: ciphertext.into() }))
    }

    async fn verify_ciphertext(
        &self,
        request: Request<v1::VerifyCiphertextRequest>,
    ) -> Result<Response<v1::VerifyCiphertextResponse>, Status> {
        let (public, place) = self.public_key(&request, &request.get_ref().key).await?;
        let v1::VerifyCiphertextRequest { key: _, ciphertext } = request.into_inner();
        let check = move |_: &mut dyn rand_core::CryptoRng| {
            let parsed = header_of(&ciphertext).map_err(|error| error.to_string())?;
            public.check_request(Statement::Header(&parsed)).map_err(|error| error.to_string())?;
            let header = parsed.header();
            check_payload(&header, ciphertext.get(parsed.bytes().len()..).unwrap_or_default())?;
            Ok::<_, String>(Bytes::copy_from_slice(header.label().bytes()))
        };
        Ok(Response::new(match self.node.compute_at(place, check).await? {
            Ok(label) => v1::VerifyCiphertextResponse { valid: true, reason: String::new(), label },
            Err(reason) => v1::VerifyCiphertextResponse { valid: false, reason, label: Bytes::new() },
        }))
    }

    async fn create_share(
        &self,
        request: Request<v1::CreateShareRequest>,
    ) -> Result<Response<v1::CreateShareResponse>, Status> {
        let v1::CreateShareRequest { key, statement, signed_request, approvals, slot } = request.get_ref();
        let asked = match parse_statement(statement.clone())? {
            StatementBytes::Decapsulate(header) => KeyRequest::Decapsulate(header),
            StatementBytes::Sign(message) => KeyRequest::Sign(message),
            StatementBytes::FlipCoin(name) => KeyRequest::FlipCoin(name),
        };
        let key_use = self.node.key_use(key, asked, *slot)?;
        let granted = self.node.decide_use(&request, (signed_request, approvals), key_use).await?;
        let place = self.node.computation(granted.client())?;
        let certified = self.node.certified(granted, deadline::patience(request.metadata())).await?;
        let entry = Arc::clone(certified.entry());
        let share = entry.expose_share().cloned().ok_or_else(|| refusal::no_share(&entry))?;
        let node = shares::node(&entry, share.index())?;
        let create = move |rng: &mut dyn rand_core::CryptoRng| {
            let statement = certified.request().statement().as_statement();
            certified.entry().public.create_share(&share, statement, rng)
        };
        let share = self.node.compute_at(place, create).await?.map_err(|error| shares::refusal(&error, &entry))?;
        Ok(Response::new(v1::CreateShareResponse { node, share: share.into() }))
    }

    async fn verify_share(
        &self,
        request: Request<v1::VerifyShareRequest>,
    ) -> Result<Response<v1::VerifyShareResponse>, Status> {
        let (entry, place) = self.key(&request, &request.get_ref().key).await?;
        let v1::VerifyShareRequest { key: _, statement, node, share } = request.into_inner();
        let (statement, index) = (parse_statement(statement)?, shares::index(&entry, node)?);
        let verify = {
            let public = entry.public.clone();
            move |rng: &mut dyn rand_core::CryptoRng| public.verify_share(&statement, index, &share, rng)
        };
        match self.node.compute_at(place, verify).await? {
            Ok(()) => Ok(Response::new(v1::VerifyShareResponse { valid: true, reason: String::new() })),
            Err(error @ (SchemeError::FalseShares(_) | SchemeError::MalformedShare { .. })) => {
                Ok(Response::new(v1::VerifyShareResponse { valid: false, reason: shares::words(&error, &entry)? }))
            }
            Err(error) => Err(shares::refusal(&error, &entry)),
        }
    }

    async fn combine(&self, request: Request<v1::CombineRequest>) -> Result<Response<v1::CombineResponse>, Status> {
        let (entry, place) = self.key(&request, &request.get_ref().key).await?;
        let v1::CombineRequest { key: _, statement, shares } = request.into_inner();
        let statement = parse_statement(statement)?;
        let threshold = entry.public.threshold();
        if shares.len() > usize::from(threshold.n()) {
            return Err(refusal::invalid(format!(
                "{} shares, but the key has {} parties",
                shares.len(),
                threshold.n()
            )));
        }
        let shares = shares
            .into_iter()
            .map(|share| Ok((shares::index(&entry, share.node)?, share.share)))
            .collect::<Result<Vec<_>, Status>>()?;
        let contributors = shares
            .iter()
            .take(usize::from(threshold.k()))
            .map(|(index, _)| shares::node(&entry, *index))
            .collect::<Result<_, _>>()?;
        let combine = {
            let public = entry.public.clone();
            move |rng: &mut dyn rand_core::CryptoRng| {
                let shares: Vec<(ShareIndex, &[u8])> = shares.iter().map(|(index, share)| (*index, &**share)).collect();
                public.combine(&statement, &shares, rng)
            }
        };
        let combined = self.node.compute_at(place, combine).await?;
        let Combined { result, proof } = combined.map_err(|error| shares::refusal(&error, &entry))?;
        let result = Bytes::copy_from_slice(result.expose());
        let outcome = v1::Outcome { result, proof: proof.into(), contributors, culprits: Vec::new() };
        Ok(Response::new(v1::CombineResponse { outcome: Some(outcome) }))
    }

    async fn verify(&self, request: Request<v1::VerifyRequest>) -> Result<Response<v1::VerifyResponse>, Status> {
        let (entry, place) = self.key(&request, &request.get_ref().key).await?;
        let public = entry.public.clone();
        let v1::VerifyRequest { key: _, message, result, proof } = request.into_inner();
        let verify = move |_: &mut dyn rand_core::CryptoRng| public.verify(&message, &result, &proof);
        match self.node.compute_at(place, verify).await? {
            Ok(()) => Ok(Response::new(v1::VerifyResponse { valid: true, reason: String::new() })),
            Err(SchemeError::Verify(reason)) => {
                Ok(Response::new(v1::VerifyResponse { valid: false, reason: reason.to_string() }))
            }
            Err(error) => Err(shares::refusal(&error, &entry)),
        }
    }
}

/// If there is a payload, checks that it belongs to the header.
fn check_payload(header: &Header<'_>, payload: &[u8]) -> Result<(), String> {
    if payload.is_empty() {
        return Ok(());
    }
    let expected = sealed_len(header.payload().plaintext_len());
    if u64::try_from(payload.len()) != Ok(expected) {
        return Err(format!("the payload has {} bytes, by the header it has {expected}", payload.len()));
    }
    if blake3::hash(payload) != *header.payload().hash() {
        return Err("the payload is not the one that the header was made with".to_owned());
    }
    Ok(())
}

fn parse_aead(name: &str) -> Result<Aead, Status> {
    if name.is_empty() {
        return Ok(Aead::default());
    }
    name.parse().map_err(|error: theta_payload::UnknownAead| refusal::invalid(error.to_string()))
}

fn parse_statement(statement: Option<v1::Statement>) -> Result<StatementBytes, Status> {
    match statement.and_then(|statement| statement.statement) {
        Some(statement::Statement::CiphertextHeader(bytes)) => Ok(StatementBytes::Decapsulate(bytes)),
        Some(statement::Statement::Message(bytes)) => Ok(StatementBytes::Sign(bytes)),
        Some(statement::Statement::CoinName(bytes)) => Ok(StatementBytes::FlipCoin(bytes)),
        None => Err(refusal::invalid("the statement is missing: give ciphertext_header, message or coin_name")),
    }
}
