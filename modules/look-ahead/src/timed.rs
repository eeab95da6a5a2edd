//! A connection whose reads and writes all have to be over at one time.

use std::{
    io::{ErrorKind, Read, Result, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

/// Such a connection. However little comes at a time, or is taken, it has no more time.
pub(crate) struct Timed {
    stream: UnixStream,
    deadline: Instant,
}

impl Timed {
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
