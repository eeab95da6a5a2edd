//! What agents share (`spec/policy.md`, Agents): each is a program of its own, and serves its operator's node on a socket. What it consents to is
//! its own matter.

use std::{
    env,
    fmt::Display,
    fs,
    io::{self, ErrorKind, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use socket2::{Domain, SockAddr, Socket, Type};
use theta_wire::agent::agent_server;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

/// The socket cannot be served on.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve on {}: {reason}", path.display())]
pub struct SocketError {
    /// The socket.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

impl SocketError {
    fn new(path: &Path, reason: &impl ToString) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Serves on a socket until it ends. One that an agent has left there is replaced.
///
/// # Errors
/// [`SocketError`].
pub async fn serve(agent: impl agent_server::Agent, socket: &Path) -> Result<(), SocketError> {
    make_way(socket)?;
    let listener = UnixListener::bind(socket).map_err(|error| SocketError::new(socket, &error))?;
    let server = Server::builder().add_service(agent_server::AgentServer::new(agent));
    let served = server.serve_with_incoming(UnixListenerStream::new(listener)).await;
    served.map_err(|error| SocketError::new(socket, &error))
}

/// The same in a program that does nothing else.
///
/// # Errors
/// [`SocketError`].
pub fn serve_alone(agent: impl agent_server::Agent, socket: &Path) -> Result<(), SocketError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| SocketError::new(socket, &error))?.block_on(serve(agent, socket))
}

/// The frame of a program: its log goes to standard error, where it also says what it failed by; in colour for people alone.
pub fn program<A: Parser, E: Display>(run: impl FnOnce(A) -> Result<(), E>) -> ExitCode {
    let colour = io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    tracing_subscriber::fmt().with_writer(io::stderr).with_target(false).with_ansi(colour).init();
    match run(A::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Takes a socket away on which nobody serves any more.
///
/// # Errors
/// [`SocketError`].
pub fn make_way(socket: &Path) -> Result<(), SocketError> {
    if is_left_over(socket) {
        fs::remove_file(socket).map_err(|error| SocketError::new(socket, &error))?;
    }
    Ok(())
}

/// Whether this is a socket on which nobody serves any more.
fn is_left_over(socket: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let is_socket = fs::symlink_metadata(socket).is_ok_and(|data| data.file_type().is_socket());
    // Whoever is too busy to take one more connection serves; so may one to whom this program may not connect.
    is_socket && knock(socket).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Connects without waiting for a place in the queue.
fn knock(socket: &Path) -> io::Result<()> {
    let knocking = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    knocking.set_nonblocking(true)?;
    knocking.connect(&SockAddr::unix(socket)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_is_left_over_when_nobody_serves_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, file) = (folder.path().join("socket"), folder.path().join("file"));
        fs::write(&file, "text").unwrap();
        assert!(!is_left_over(&socket) && !is_left_over(&file), "there is none, or it is no socket");
        let served = UnixListener::bind(&socket).unwrap();
        assert!(!is_left_over(&socket));
        drop(served);
        assert!(is_left_over(&socket));
    }

    /// One that takes no connections for a while, with a full queue, is no reason to wait, nor to take its place.
    #[test]
    fn whoever_is_too_busy_serves() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let busy = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        busy.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        busy.listen(0).unwrap();
        let waiting: Vec<Socket> = (0..8)
            .map(|_| {
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
                socket.set_nonblocking(true).unwrap();
                let _ = socket.connect(&SockAddr::unix(&path).unwrap());
                socket
            })
            .collect();
        assert!(!is_left_over(&path));
        drop((busy, waiting));
        assert!(is_left_over(&path));
    }
}
