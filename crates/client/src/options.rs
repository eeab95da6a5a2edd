//! How a client behaves.

use std::path::PathBuf;
use std::time::Duration;

/// How a client behaves.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How long an operation may take; the nodes receive it as their deadline. Default 30 s.
    pub timeout: Duration,
    /// How long connecting to a node may take. Default 5 s.
    pub connect_timeout: Duration,
    /// How long a ceremony may take, including the time that unreachable nodes have to come back. Default 5 min.
    pub ceremony_timeout: Duration,
    /// The largest message in either direction, in bytes. Default 32 MiB.
    pub max_message_bytes: usize,
    /// The file in which to keep what was checked of the group's ledger, so that it is not read again at the next start. Default: in the
    /// client's folder, or none for clients without one. Changing the file fools nobody.
    pub ledger: Option<PathBuf>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            ceremony_timeout: Duration::from_secs(300),
            max_message_bytes: 32 << 20,
            ledger: None,
        }
    }
}
