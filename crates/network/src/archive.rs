//! Reading a node's records over its peer address, one connection for each question.
//!
//! A machine that left a group while it was off is let into the mesh by nobody, and so would never hear that it has left. This is how it
//! asks: over the same address, with the same keys, and with another application protocol. The node greets with the byte 1; it sends a number in eight bytes, big-endian; the node
//! sends the records that follow, each behind its length in four bytes, and closes. What they mean is not known here: whoever reads them
//! believes nobody, since they prove themselves.

use core::{fmt, time::Duration};
use std::{io, sync::Arc};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task,
    time::timeout,
};
use tokio_rustls::{TlsConnector, server};

use crate::{
    Fingerprint, Identity, places,
    tls::{self, UnpinnedCertificate},
};

/// The application protocol.
pub(crate) const ALPN: &[u8] = b"theta-archive/1";
/// What the node says first, when it has let somebody in.
const GREETING: u8 = 1;
/// The longest record in bytes.
const MOST_RECORD: usize = 6 << 20;
/// What each record takes beside its bytes.
const RECORD_COSTS: usize = 1 << 10;
/// The most bytes of records that are read over one connection, with what they take.
const MOST_READ: usize = 16 << 20;
/// How long one connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a node lets others read. It is asked in every handshake, since its answers may change.
pub trait Archive: fmt::Debug + Send + Sync {
    /// Whether the owner of this certificate, who is no peer, may read something.
    fn admits(&self, certificate: &Fingerprint) -> bool;

    /// Some records that come after a number, for the owner of this certificate, who may be a peer. Blocks.
    fn read(&self, certificate: &Fingerprint, is_peer: bool, after: u64) -> Vec<Bytes>;
}

/// Why nothing was read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The certificate is not the one that was expected.
    #[error("another node answers at its address: {0}")]
    Unpinned(UnpinnedCertificate),
    /// The node closed the connection: it does not know who asks.
    #[error("it does not let this machine read: it does not know its certificate")]
    Refused,
    /// The network or the other side.
    #[error("{0}")]
    Io(io::Error),
    /// It took too long.
    #[error("no answer within {0:?}")]
    Late(Duration),
    /// More than any honest node sends.
    #[error("it sends more than there can be")]
    TooMuch,
    /// The TLS library refused the configuration.
    #[error("TLS cannot be configured: {0}")]
    Tls(rustls::Error),
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        match UnpinnedCertificate::cause(&error) {
            Some(unpinned) => Self::Unpinned(unpinned),
            None if tls::certificate_refused(&error) => Self::Refused,
            None => Self::Io(error),
        }
    }
}

/// Reads the records after a number from the node at this peer address, which has to show the certificate that is `expected`. Where nothing is
/// expected any node will do: then only the records themselves tell whether they are worth anything.
///
/// # Errors
/// [`ArchiveError`].
pub async fn read(
    identity: &Identity,
    address: &str,
    expected: Option<Fingerprint>,
    after: u64,
) -> Result<Vec<Bytes>, ArchiveError> {
    let config = match expected {
        Some(expected) => tls::client_config(identity, expected, &[ALPN]),
        None => tls::trusting_client_config(identity, &[ALPN]),
    };
    let connector = TlsConnector::from(config.map_err(ArchiveError::Tls)?);
    let asked = async {
        let tcp = places::connect_to(address).await?;
        tcp.set_nodelay(true)?;
        let mut stream = connector.connect(tls::server_name(), tcp).await?;
        // Whoever is not let in hears that before it has said anything, so that nothing unread makes its connection break.
        let mut greeting = [0; 1];
        stream.read_exact(&mut greeting).await?;
        stream.write_all(&after.to_be_bytes()).await?;
        stream.flush().await?;
        let (mut records, mut size) = (Vec::new(), 0_usize);
        while let Some(length) = length_of_next(&mut stream).await? {
            // An empty record takes memory, too.
            size = size.saturating_add(length).saturating_add(RECORD_COSTS);
            if length > MOST_RECORD || size > MOST_READ {
                return Err(ArchiveError::TooMuch);
            }
            let mut record = vec![0; length];
            stream.read_exact(&mut record).await?;
            records.push(Bytes::from(record));
        }
        Ok(records)
    };
    timeout(PATIENCE, asked).await.unwrap_or(Err(ArchiveError::Late(PATIENCE)))
}

/// The length of the next record; `None` at the end.
async fn length_of_next(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<Option<usize>> {
    let mut length = [0; 4];
    let first = stream.read(&mut length).await?;
    if first == 0 {
        return Ok(None);
    }
    let rest = length.get_mut(first..).unwrap_or_default();
    stream.read_exact(rest).await?;
    Ok(Some(usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX)))
}

/// Answers one question. `turn`: what the reader holds until it has its answer; it may ask again at once when it sees the end of it.
pub(crate) async fn answer(
    archive: Arc<dyn Archive>,
    mut stream: server::TlsStream<TcpStream>,
    (certificate, is_peer): (Fingerprint, bool),
    turn: impl Send,
) -> io::Result<()> {
    stream.write_all(&[GREETING]).await?;
    stream.flush().await?;
    let mut after = [0; 8];
    stream.read_exact(&mut after).await?;
    let after = u64::from_be_bytes(after);
    let records = task::spawn_blocking(move || archive.read(&certificate, is_peer, after)).await?;
    for record in records {
        let length = u32::try_from(record.len()).map_err(io::Error::other)?;
        stream.write_all(&length.to_be_bytes()).await?;
        stream.write_all(&record).await?;
    }
    stream.flush().await?;
    drop(turn);
    stream.shutdown().await
}
