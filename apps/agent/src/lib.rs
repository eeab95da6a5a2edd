//! What agents share (`spec/policy.md`, Agents): each is a program of its own, and serves its operator's node on a socket. What it consents to is
//! its own matter.

use std::{
    fmt::Display,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
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

/// The frame of a program: its log goes to standard error, where it also says what it failed by.
pub fn program<A: Parser, E: Display>(run: impl FnOnce(A) -> Result<(), E>) -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
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
    use std::os::unix::{fs::FileTypeExt as _, net::UnixStream};
    let is_socket = fs::symlink_metadata(socket).is_ok_and(|data| data.file_type().is_socket());
    is_socket && UnixStream::connect(socket).is_err()
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
}
