//! The connection to the host.

use core::time::Duration;
use std::{io, sync::Arc};

use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::HostConfig;
use crate::{
    places,
    tls::{self, UnpinnedCertificate},
};

/// What may be under way to this node and is not read.
const WINDOW: u32 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("its address is not one: write host:port")]
    Address,
    #[error("TLS cannot be configured: {0}")]
    Tls(#[from] rustls::Error),
    #[error("{0}")]
    Unreached(String),
}

pub(super) async fn connect(config: &HostConfig) -> Result<Channel, ConnectError> {
    let tls = tls::client_config(&config.identity, config.certificate, &[b"h2"])?;
    // The connector below does TLS itself, so tonic sees a plain connection.
    let endpoint = Endpoint::from_shared(format!("http://{}", config.address))
        .map_err(|_| ConnectError::Address)?
        .connect_timeout(PATIENCE)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .http2_keep_alive_interval(PATIENCE)
        .keep_alive_timeout(PATIENCE)
        .keep_alive_while_idle(true);
    let address: Arc<str> = Arc::from(config.address.as_str());
    let connector = service_fn(move |_| open(Arc::clone(&address), Arc::clone(&tls)));
    endpoint.connect_with_connector(connector).await.map_err(|error| ConnectError::Unreached(in_words(&error)))
}

async fn open(address: Arc<str>, tls: Arc<ClientConfig>) -> io::Result<TokioIo<TlsStream<TcpStream>>> {
    let tcp = places::connect_to(&*address).await?;
    tcp.set_nodelay(true)?;
    Ok(TokioIo::new(TlsConnector::from(tls).connect(tls::server_name(), tcp).await?))
}

/// Whether the host closes the connection because it does not know this node's certificate. In TLS 1.3 the node hears of that only after its own
/// part of the handshake is done, as the first thing that it reads; and what is above has lost it by then.
pub(super) async fn is_turned_away(config: &HostConfig) -> bool {
    let Ok(tls) = tls::client_config(&config.identity, config.certificate, &[b"h2"]) else { return false };
    let ask = async { open(Arc::from(config.address.as_str()), tls).await?.into_inner().read_u8().await };
    matches!(timeout(PATIENCE, ask).await, Ok(Err(error)) if tls::certificate_refused(&error))
}

/// The innermost reason, in one line.
pub(super) fn in_words(error: &(dyn core::error::Error + 'static)) -> String {
    if let Some(unpinned) = UnpinnedCertificate::cause(error) {
        return format!("another machine answers there: {unpinned}");
    }
    if tls::certificate_refused(error) {
        return "it does not know this node's certificate".to_owned();
    }
    let (mut innermost, mut next) = (error, error.source());
    while let Some(inner) = next {
        (innermost, next) = (inner, inner.source());
    }
    let text = innermost.to_string();
    text.split_once(" (os error").map_or_else(|| text.clone(), |(words, _)| words.to_lowercase())
}
