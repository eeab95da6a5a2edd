//! Messages behind their lengths, as TCP carries them (RFC 1035, section 4.2.2).

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// How long the other side may take to answer a connection, or to send the next bytes.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// Sends a message behind its length.
pub(super) fn send(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).unwrap_or(u16::MAX).to_be_bytes();
    stream.write_all(&[&length[..], message].concat())
}

/// Fills bytes until a time. Whoever sends a byte now and then gains none. [`io::ErrorKind::TimedOut`] if it takes longer,
/// [`io::ErrorKind::UnexpectedEof`] if the connection ends before.
pub(super) fn fill(stream: &mut TcpStream, mut bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now()).min(SILENCE);
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes = bytes.get_mut(read..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
