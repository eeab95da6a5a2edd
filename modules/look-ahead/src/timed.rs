//! A connection whose reads and writes all have to be over at one time.

use std::{
    io::{ErrorKind, Read, Result, Write},
    os::unix::net::UnixStream,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use socket2::{Domain, SockAddr, Socket, Type};

/// How long is waited between two attempts to connect to a socket whose queue is full.
const BREATH: Duration = Duration::from_millis(5);

/// Such a connection. However little comes at a time, or is taken, it has no more time.
pub(crate) struct Timed {
    stream: UnixStream,
    deadline: Instant,
}

impl Timed {
    /// Connects. Where whoever serves takes no connections, and its queue is full, that has an end, too.
    pub(crate) fn connect(path: &Path, patience: Duration) -> Result<Self> {
        let deadline = Instant::now() + patience;
        let (socket, address) = (Socket::new(Domain::UNIX, Type::STREAM, None)?, SockAddr::unix(path)?);
        // One that blocks would wait for a place in the queue without end. Nothing tells when there is one (connect(2), EAGAIN).
        socket.set_nonblocking(true)?;
        loop {
            match socket.connect(&address) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < deadline => {
                    thread::sleep(BREATH)
                }
                Err(error) => return timed(Err(error)),
            }
        }
        socket.set_nonblocking(false)?;
        Ok(Self { stream: socket.into(), deadline })
    }

    pub(crate) fn new(stream: UnixStream, patience: Duration) -> Self {
        Self { stream, deadline: Instant::now() + patience }
    }

    fn left(&self) -> Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // No time at all would mean without end.
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

/// The system says of a connection without a word in time that it would block.
fn timed<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| if error.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { error })
}

impl Read for Timed {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        timed(self.stream.read(bytes))
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        timed(self.stream.write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.stream.flush()
    }
}
