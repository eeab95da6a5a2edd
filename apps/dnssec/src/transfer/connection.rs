//! Messages over TCP (RFC 1035, section 4.2.2), bounded in bytes and time.

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::{Duration, Instant},
};

use super::TransferError;

/// How long the other side may take to answer a connection, or to send the next bytes.
const SILENCE: Duration = Duration::from_secs(10);

pub(super) struct Connection {
    stream: TcpStream,
    deadline: Instant,
    left: u64,
}

impl Connection {
    /// Connects to the first address that answers. All that follows takes so long, and has so many bytes, at most.
    pub(super) fn open(address: &str, longest: Duration, most: u64) -> Result<Self, TransferError> {
        let deadline = Instant::now().checked_add(longest).ok_or(TransferError::Late)?;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for place in address.to_socket_addrs().map_err(TransferError::Connection)? {
            match TcpStream::connect_timeout(&place, SILENCE) {
                Ok(stream) => {
                    stream.set_write_timeout(Some(SILENCE)).map_err(TransferError::Connection)?;
                    return Ok(Self { stream, deadline, left: most });
                }
                Err(error) => last = error,
            }
        }
        Err(TransferError::Connection(last))
    }

    pub(super) fn send(&mut self, message: &[u8]) -> Result<(), TransferError> {
        let length = u16::try_from(message.len()).unwrap_or(u16::MAX).to_be_bytes();
        self.stream.write_all(&[&length[..], message].concat()).map_err(TransferError::Connection)
    }

    /// The next message.
    pub(super) fn receive(&mut self) -> Result<Vec<u8>, TransferError> {
        let mut length = [0; 2];
        self.fill(&mut length)?;
        let length = u16::from_be_bytes(length);
        self.left = self.left.checked_sub(u64::from(length)).ok_or(TransferError::Long)?;
        let mut message = vec![0; usize::from(length)];
        self.fill(&mut message)?;
        Ok(message)
    }

    /// Whoever sends a byte now and then gains no time.
    fn fill(&mut self, mut bytes: &mut [u8]) -> Result<(), TransferError> {
        while !bytes.is_empty() {
            let left = self.deadline.saturating_duration_since(Instant::now()).min(SILENCE);
            if left.is_zero() {
                return Err(TransferError::Late);
            }
            self.stream.set_read_timeout(Some(left)).map_err(TransferError::Connection)?;
            match self.stream.read(bytes) {
                Ok(0) => return Err(TransferError::Ended),
                Ok(read) => bytes = bytes.get_mut(read..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(TransferError::Late);
                }
                Err(error) => return Err(TransferError::Connection(error)),
            }
        }
        Ok(())
    }
}
