//! Messages over TCP (RFC 1035, section 4.2.2), bounded in bytes and time.

use std::{
    io,
    net::{TcpStream, ToSocketAddrs as _},
    time::{Duration, Instant},
};

use super::{
    TransferError,
    framing::{SILENCE, fill, send},
};

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
        send(&mut self.stream, message).map_err(TransferError::Connection)
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

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), TransferError> {
        fill(&mut self.stream, bytes, self.deadline).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => TransferError::Late,
            io::ErrorKind::UnexpectedEof => TransferError::Ended,
            _ => TransferError::Connection(error),
        })
    }
}
