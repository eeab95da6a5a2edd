//! Every request passes here before any of it is decoded.
//!
//! The gate identifies the caller by what comes before the body (the connection's certificate, the proof of a token), takes a place
//! among the caller's or refuses, finds the service, and counts the answer. A request whose signature is in its body takes
//! a stranger's place, or that of the caller that relays it, until it is decoded. The policy decides after that; only
//! health checks and reflection need no permission.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use hyper::{Request, Response, body::Body as _};
use theta_authority::Authority;
use theta_wire::rpc;
use tokio::sync::oneshot;
use tonic::{
    Code, Status,
    body::Body,
    codegen::{BoxFuture, Service},
    server::NamedService,
};
use tracing::{Instrument, field};

use super::door::{Admission, Caller, Connections, Place, RequestBody, ResponseBody, TokenCheck};
use crate::metrics::ApiMetrics;

/// The request's place, which the gate passes to the services. It is kept as long as anybody holds it.
pub(crate) type Arrival = Arc<Place>;

/// All services behind one gate.
pub(crate) struct Gate<H, R, A>(Arc<Services<H, R, A>>);

pub(crate) struct Services<H, R, A> {
    /// Those of `theta.v1`.
    pub(crate) own: [rpc::Server; 5],
    pub(crate) health: H,
    pub(crate) reflection: R,
    /// The same service under its older name, which most tools still use.
    pub(crate) reflection_v1alpha: A,
    pub(crate) authority: Arc<Authority>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) tokens: TokenCheck,
    pub(crate) metrics: ApiMetrics,
}

impl<H, R, A> Gate<H, R, A> {
    pub(crate) fn new(services: Services<H, R, A>) -> Self {
        Self(Arc::new(services))
    }
}

impl<H, R, A> Clone for Gate<H, R, A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The metric label of what is none of our methods.
const UNKNOWN: &str = "unknown";

type Answer = BoxFuture<Response<Body>, Infallible>;

/// A service as tonic generates it: boxed answers, and statuses as the only errors.
pub(crate) trait GrpcService:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future = Answer>
    + NamedService
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> GrpcService for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future = Answer>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static
{
}

impl<H: GrpcService, R: GrpcService, A: GrpcService> Service<Request<Body>> for Gate<H, R, A> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let services = &self.0;
        let (service, method) = split_path(request.uri().path());
        if let Some(own) = services.own.iter().find(|own| own.name() == service) {
            let method = known_method(own.methods(), method);
            self.admitted(&mut |request| own.answer(request), method, request)
        } else if service == H::NAME {
            self.admitted(&mut |request| services.health.clone().call(request), UNKNOWN, request)
        } else if service == R::NAME {
            self.admitted(&mut |request| services.reflection.clone().call(request), UNKNOWN, request)
        } else if service == A::NAME {
            self.admitted(&mut |request| services.reflection_v1alpha.clone().call(request), UNKNOWN, request)
        } else {
            refuse(Status::unimplemented("no such service: ask the reflection service for those there are"))
        }
    }
}

impl<H, R, A> Gate<H, R, A> {
    /// Takes a place for the request, and lets it be served.
    fn admitted(
        &self,
        serve: &mut dyn FnMut(Request<Body>) -> Answer,
        method: &'static str,
        mut request: Request<Body>,
    ) -> Answer {
        let at = Instant::now();
        let metrics = self.0.metrics.clone();
        let (place, shed) = match self.place(&mut request) {
            Ok((place, shed)) => (Arc::new(place), shed),
            Err(refusal) => {
                metrics.answered(method, refusal.code(), at.elapsed());
                return refuse(refusal);
            }
        };
        // For lines of level debug: at level info none is written here, and each request would pay for a span that nobody reads.
        let span = tracing::debug_span!("request", method, client = field::Empty);
        request.extensions_mut().insert::<Arrival>(Arc::clone(&place));
        let request = request.map(|body| Body::new(RequestBody::new(body, Arc::clone(&place), shed)));
        let answer = serve(request);
        let future = async move {
            let answer = answer.await.map(blame_caller_for_garbage);
            if let Ok(response) = &answer {
                let (code, took) = (code_of(response), at.elapsed());
                metrics.answered(method, code, took);
                tracing::debug!(?code, ?took, "answered");
            }
            // A refusal is in the headers and has no body to wait for.
            answer.map(|response| match response.body().is_end_stream() {
                true => response,
                false => response.map(|body| Body::new(ResponseBody::new(body, place))),
            })
        };
        Box::pin(future.instrument(span))
    }
}

impl<H, R, A> Gate<H, R, A> {
    /// Identifies the caller and takes a place.
    fn place(&self, request: &mut Request<Body>) -> Result<(Place, oneshot::Receiver<()>), Status> {
        let caller = request.extensions().get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Status::internal("bug: a request without a connection; please report it"))?;
        let client = self.0.authority.recognise(&self.0.tokens.presented(&caller, request));
        if let Some(client) = &client {
            self.0.connections.recognise(&caller.connection, client);
        }
        self.0.admission.admit(client.as_ref(), &caller.connection)
    }
}

/// A refusal's code is in the headers. Any other answer counts as a success, as far as is known before its body is sent.
fn code_of(response: &Response<Body>) -> Code {
    response.headers().get("grpc-status").map_or(Code::Ok, |status| Code::from_bytes(status.as_bytes()))
}

/// Bytes that are no message are the caller's mistake, although tonic reports them as an internal error of the server.
fn blame_caller_for_garbage(response: Response<Body>) -> Response<Body> {
    match Status::from_header_map(response.headers()) {
        Some(status) if status.code() == Code::Internal && status.message().starts_with("failed to decode") => {
            Status::invalid_argument(format!("{}: send the message that the .proto files define", status.message()))
                .into_http()
        }
        _ => response,
    }
}

fn refuse(status: Status) -> Answer {
    Box::pin(std::future::ready(Ok(status.into_http())))
}

/// The service and method of `/package.Service/Method`.
fn split_path(path: &str) -> (&str, &str) {
    path.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default()
}

/// The method's name as a metric label: one of the service's, whatever the caller wrote.
fn known_method(methods: &'static [&'static str], method: &str) -> &'static str {
    methods.iter().find(|known| **known == method).copied().unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_the_callers_mistake_and_our_bugs_are_ours() {
        let code = |status: Status| code_of(&blame_caller_for_garbage(status.into_http()));
        let garbage = <theta_wire::v1::SignRequest as prost::Message>::decode(&[0xff; 9][..]).unwrap_err();
        assert_eq!(code(Status::internal(garbage.to_string())), Code::InvalidArgument);
        assert_eq!(code(Status::internal("bug: a request's validation panicked")), Code::Internal);
        assert_eq!(code(Status::not_found("no key")), Code::NotFound);
    }

    #[test]
    fn paths() {
        assert_eq!(split_path("/theta.v1.ThresholdProtocol/Sign"), ("theta.v1.ThresholdProtocol", "Sign"));
        for odd in ["", "/", "x/y", "/x", "//"] {
            assert_ne!(split_path(odd).0, "theta.v1.ThresholdProtocol");
        }
        let known =
            |method| known_method(theta_wire::v1::threshold_protocol_server::ThresholdProtocolServer::METHODS, method);
        assert_eq!((known("Sign"), known("sign\n")), ("Sign", UNKNOWN));
    }
}
