//! Asks, once on each connection.

use std::{
    io::{self, BufReader},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    frames::{Digest, Question},
    timed::Timed,
};

/// Why there are no digests.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody answers there, or says what is no answer.
    #[error("nobody answers at {}: {reason}", socket.display())]
    Absent {
        /// The socket.
        socket: PathBuf,
        /// The system's reason, or what is wrong with the answer.
        reason: io::Error,
    },
    /// The digest is not known there.
    #[error("{}: {words}", socket.display())]
    Unknown {
        /// The socket.
        socket: PathBuf,
        /// Why.
        words: String,
    },
}

/// Asks at a socket, and waits so long at most.
///
/// # Errors
/// [`AskError`].
pub fn ask(socket: &Path, question: &Question, patience: Duration) -> Result<Vec<Digest>, AskError> {
    let answered = Timed::connect(socket, patience).and_then(|mut stream| {
        question.write(&mut stream)?;
        question.read_answer(&mut BufReader::new(stream))
    });
    match answered {
        Ok(Ok(digests)) => Ok(digests),
        Ok(Err(words)) => Err(AskError::Unknown { socket: socket.to_owned(), words }),
        Err(reason) => Err(AskError::Absent { socket: socket.to_owned(), reason }),
    }
}

/// Asks for nothing, to see whether somebody is there.
///
/// # Errors
/// [`AskError::Absent`].
pub fn is_served(socket: &Path, patience: Duration) -> Result<(), AskError> {
    let nothing = Question { digest: Digest::default(), before: 0, most: 0 };
    match ask(socket, &nothing, patience) {
        // Whoever says why it knows nothing is there.
        Ok(_) | Err(AskError::Unknown { .. }) => Ok(()),
        Err(absent @ AskError::Absent { .. }) => Err(absent),
    }
}
