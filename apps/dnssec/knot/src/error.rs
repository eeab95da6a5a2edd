//! What goes wrong with programs of others.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

/// Why there is no name server, or why it does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum KnotError {
    /// A program is not there, or does not start.
    #[error("{program} is missing: install Debian's package {package}, or let cargo xtask dns unpack it")]
    Missing {
        /// The program.
        program: String,
        /// The package that has it.
        package: &'static str,
    },
    /// A file cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// No port is free for both UDP and TCP.
    #[error("no loopback port is free for a name server: {0}")]
    Port(io::Error),
    /// A program does not start.
    #[error("{program} does not start: {reason}")]
    Start {
        /// The program.
        program: String,
        /// The system's reason.
        reason: io::Error,
    },
    /// A program has failed.
    #[error("{command} failed ({status}): {said}")]
    Tool {
        /// The program with its words.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        said: String,
    },
    /// The name server has ended.
    #[error("the name server has ended: {0}")]
    Ended(String),
    /// Something has not come about in time.
    #[error("it has not come about within {} s that {what}: see {}", patience.as_secs(), log.display())]
    Late {
        /// What should be so.
        what: &'static str,
        /// How long it was waited for.
        patience: Duration,
        /// The server's log.
        log: PathBuf,
    },
    /// The verifier of another house does not accept the zone.
    #[error("ldns-verify-zone does not accept the zone: {0}")]
    Unverified(String),
}
