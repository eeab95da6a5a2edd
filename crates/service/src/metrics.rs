//! Serves the monitoring system: `GET /metrics`, `/healthz` and `/readyz` over plain HTTP on a loopback address.

mod api;
mod doors;
#[cfg(feature = "gossip")]
mod gossip;
mod keys;
mod peers;
mod process;

use std::{convert::Infallible, sync::Arc, time::Duration};

use hyper::{Method, Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::{encoding::text::encode, registry::Registry};
use theta_network::doorway::Occasionally;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time,
};

#[cfg(feature = "gossip")]
pub(crate) use self::gossip::GossipCollector;
pub(crate) use self::{
    api::ApiMetrics, doors::DoorCollector, keys::KeysCollector, peers::PeersCollector, process::ProcessCollector,
};

/// Whether the node can serve requests: a warning for the operator, if any, or the reason why not.
pub(crate) type Readiness = Arc<dyn Fn() -> Result<Option<String>, String> + Send + Sync>;

/// The most connections at once. Scrapes come one at a time, so more are a mistake.
const MAX_CONNECTIONS: usize = 32;

/// Answers scrapes until dropped.
pub(crate) async fn serve(listener: TcpListener, registry: Arc<Registry>, ready: Readiness) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let full = Occasionally::every(Duration::from_secs(60));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let tcp = match listener.accept().await {
            Ok((tcp, _)) => tcp,
            Err(error) => {
                full.warn(format_args!("cannot accept a metrics connection: {error}"));
                time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (registry, ready) = (Arc::clone(&registry), Arc::clone(&ready));
        tokio::spawn(async move {
            connection(tcp, &registry, &ready).await;
            drop(place);
        });
    }
}

async fn connection(tcp: TcpStream, registry: &Registry, ready: &Readiness) {
    let service = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&request, registry, ready))));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(5))
        .max_buf_size(16 << 10)
        .serve_connection(TokioIo::new(tcp), service);
    if let Ok(Err(error)) = time::timeout(Duration::from_secs(300), connection).await {
        tracing::debug!(%error, "metrics connection");
    }
}

fn answer(request: &Request<Incoming>, registry: &Registry, ready: &Readiness) -> Response<String> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "use GET\n".to_owned());
    }
    match request.uri().path() {
        "/metrics" => scrape(registry),
        "/healthz" => text(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => match ready() {
            Ok(None) => text(StatusCode::OK, "ready\n".to_owned()),
            Ok(Some(warning)) => text(StatusCode::OK, format!("ready\nwarning: {warning}\n")),
            Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")),
        },
        _ => text(StatusCode::NOT_FOUND, "there is /metrics, /healthz and /readyz\n".to_owned()),
    }
}

fn scrape(registry: &Registry) -> Response<String> {
    let mut body = String::new();
    // Writing to a string fails only if one of our collectors does.
    if encode(&mut body, registry).is_err() {
        return text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written\n".to_owned());
    }
    let mut response = Response::new(body);
    let kind = header::HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn text(status: StatusCode, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
