//! Connections made by hand: TCP, TLS and HTTP/2 as an attacker uses them.

use bytes::{Bytes, BytesMut};
use h2::client::SendRequest;
use http::{Method, Request};
use prost::Message;
use theta_network::{Identity, group::GroupNode, tls};
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::attack::Trouble;

/// The client certificate of a connection.
pub(crate) enum Shown<'a> {
    /// No certificate.
    Nothing,
    /// This one.
    Certificate(&'a Identity),
}

/// An HTTP/2 connection to a node's API.
pub(crate) struct Http {
    pub(crate) requests: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

/// The flow control of an HTTP/2 client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Bytes that the node may send on a stream, and on the connection, before this client reads.
    pub(crate) stream: u32,
    pub(crate) connection: u32,
}

impl Default for Windows {
    fn default() -> Self {
        Self { stream: 1 << 20, connection: 4 << 20 }
    }
}

/// A TLS connection to a node's API.
pub(crate) async fn connect(node: &GroupNode, shown: &Shown<'_>) -> Result<TlsStream<TcpStream>, Trouble> {
    let config = match shown {
        Shown::Nothing => tls::anonymous_client_config(node.certificate, &[b"h2"]),
        Shown::Certificate(identity) => tls::client_config(identity, node.certificate, &[b"h2"]),
    };
    let config = config.map_err(|error| Trouble::new(error.to_string()))?;
    let tcp = TcpStream::connect(&node.api_address).await?;
    tcp.set_nodelay(true)?;
    Ok(TlsConnector::from(config).connect(tls::server_name(), tcp).await?)
}

impl Http {
    /// Connects. The connection lives as long as this value and its requests.
    pub(crate) async fn open(node: &GroupNode, shown: &Shown<'_>, windows: Windows) -> Result<Self, Trouble> {
        let tls = connect(node, shown).await?;
        let (requests, connection) = h2::client::Builder::new()
            .initial_window_size(windows.stream)
            .initial_connection_window_size(windows.connection)
            .initial_max_send_streams(100_000)
            .handshake(tls)
            .await?;
        // Requests fail when the connection ends, so its result is not needed.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { requests, driver })
    }

    /// Sends a whole gRPC request. Returns whether the node reports success.
    pub(crate) async fn call(&self, path: &str, message: &impl Message) -> Result<bool, Trouble> {
        let mut requests = self.requests.clone().ready().await?;
        let (answer, mut body) = requests.send_request(headers(path)?, false)?;
        body.send_data(framed(message), true)?;
        let answer = answer.await?;
        let done = |headers: &http::HeaderMap| headers.get("grpc-status").map(|status| status.as_bytes() == b"0");
        if let Some(done) = done(answer.headers()) {
            return Ok(done);
        }
        let mut body = answer.into_body();
        while let Some(piece) = body.data().await {
            let _ = body.flow_control().release_capacity(piece?.len());
        }
        Ok(body.trailers().await?.as_ref().and_then(done).unwrap_or(false))
    }

    /// Whether the node has ended the connection.
    pub(crate) fn is_over(&self) -> bool {
        self.driver.is_finished()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The headers of a gRPC request.
pub(crate) fn headers(path: &str) -> Result<Request<()>, Trouble> {
    Request::builder()
        .method(Method::POST)
        .uri(format!("http://node{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .map_err(|error| Trouble::new(error.to_string()))
}

/// A message in the framing of gRPC.
pub(crate) fn framed(message: &impl Message) -> Bytes {
    let encoded = message.encode_to_vec();
    let mut framed = BytesMut::with_capacity(encoded.len().saturating_add(5));
    framed.extend_from_slice(&[0]);
    framed.extend_from_slice(&u32::try_from(encoded.len()).unwrap_or(u32::MAX).to_be_bytes());
    framed.extend_from_slice(&encoded);
    framed.freeze()
}
